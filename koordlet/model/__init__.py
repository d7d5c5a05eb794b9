"""The data model: frozen values shared by all rooms.

Covers: what a CPU set, a topology, a group, a pod, a snapshot, an action and a plan are.
Does not cover: where they come from (``host``), what to do with them (``policy``), doing it
(``apply``). This room imports nothing of ours from outside itself.
"""
