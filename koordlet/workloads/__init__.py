"""Workloads of this node: optional sources, merged into one ``Pod`` model.

Covers: workloads declared in the configuration. Kubelet, API server and NRI join this room.
Does not cover: what they use (``host``), what they get (``policy``).
"""
