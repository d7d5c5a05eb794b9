"""Execution: the only room that changes a machine.

Covers: merging decisions into a plan (``planner``), ordering it (``ordering``), the table of action
kinds (``kinds``), carrying it out with read-back, journal and audit (``executor``).
Does not cover: deciding (``policy``), storing (``state``).
"""
