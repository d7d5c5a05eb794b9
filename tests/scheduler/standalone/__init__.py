"""What a standalone scheduler does in place of a cluster's controllers."""
