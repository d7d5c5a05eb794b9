"""What groups and the machine use, and how long they wait."""
