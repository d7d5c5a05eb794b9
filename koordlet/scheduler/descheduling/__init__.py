"""The descheduler: which pods should leave their nodes, by the rules of both peers.

Covers: configuration of both dialects, strategies, who may be evicted, limits of a round. All of it
is a function of the cluster's state and of the answers of whoever evicts. Does not cover: evicting
(``loop.evictions``), which pod goes where afterwards (the scheduler).
"""
