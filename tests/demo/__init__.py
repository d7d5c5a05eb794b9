"""The demo: its groups, its processes, and the machine that it plays on without root."""
