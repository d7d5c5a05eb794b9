"""Concrete CPUs, NUMA amounts and devices of one node: what is free, and who would get which."""
