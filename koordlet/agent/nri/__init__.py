"""The agent beside a container runtime: what new containers get before their first instruction.

Does not cover: the connection (``workloads.nri``).
"""
