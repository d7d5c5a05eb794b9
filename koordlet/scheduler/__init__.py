"""The scheduler: assigns pods to nodes, in a process of its own, over ``kubeapi.objects``.

Covers: the store of a standalone node or group of nodes. A dead scheduler never affects what the
agent enforces.
"""
