"""The machine's shape: CPUs, cores, sockets, NUMA nodes, caches, devices."""
