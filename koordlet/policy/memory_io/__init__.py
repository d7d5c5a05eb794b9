"""Policies about memory, block devices and the network."""
