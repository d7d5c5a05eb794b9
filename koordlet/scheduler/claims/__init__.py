"""Resource claims (``resource.k8s.io/v1``): which devices of a node a claim gets.

Covers: pools of devices as a node sees them, selectors, the search for devices, what is in use.
Does not cover: decoding (``scheduler.objects``), the life of a claim (``scheduler.plugins``).
"""
