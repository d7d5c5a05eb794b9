"""Monotonic time that only a test moves.

Covers: one number, as code that is given a clock reads it. Does not cover: both of a machine's
clocks (``agents.Clock``).
"""

from __future__ import annotations


class Clock:
    """Seconds; ``now`` is what it shows."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
