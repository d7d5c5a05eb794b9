"""The policy of cache ways and memory bandwidth."""
