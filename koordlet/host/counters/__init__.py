"""Counters of cgroups and of the machine: usage and stalls."""
