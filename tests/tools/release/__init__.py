"""What makes a release."""
