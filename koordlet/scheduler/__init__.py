"""Which pod goes to which node: a process of its own, over the port ``kubeapi.objects``.

Covers: the store of a standalone node or group of nodes. A dead scheduler never affects what the
agent enforces.
"""
