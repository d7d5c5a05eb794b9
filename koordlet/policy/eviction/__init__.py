"""Eviction policies: node pressure, and pods beyond what the node offers them."""
