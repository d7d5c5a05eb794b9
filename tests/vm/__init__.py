"""A harness of virtual machines."""
