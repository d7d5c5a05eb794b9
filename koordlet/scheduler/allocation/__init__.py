"""Allocation of CPUs, NUMA amounts and devices of one node."""
