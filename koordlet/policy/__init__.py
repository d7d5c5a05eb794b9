"""Policies: one module per capability, named by its stem, and the registry that orders them.

Covers: ``decide(snapshot, history, settings, state) -> Decision``, pure: no I/O, no clock, no log,
no randomness. The same input gives the same decision, byte for byte.
Does not cover: reading (``host``) and doing (``apply``).
"""
