"""CPU policies: pools, exclusive CPUs, CPU time."""
