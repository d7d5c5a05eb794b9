"""Backoff for refused and contested writes.

Covers: one exponential delay per target. Does not cover: what to retry (the plan says so anew).
"""

from __future__ import annotations

from koordlet.model.record import dataclass

FIRST = 1.0
LONGEST = 60.0


@dataclass(frozen=True, slots=True)
class _Wait:
    until: float
    delay: float


class Backoff:
    """Exponential delays of targets that failed. Time is passed in."""

    def __init__(self) -> None:
        #: Target to its wait; empty where all is well.
        self.waits: dict[str, _Wait] = {}

    def waiting(self, target: str, now: float) -> float:
        """Seconds still to wait, 0 when it may be tried."""
        wait = self.waits.get(target)
        return max(0.0, wait.until - now) if wait is not None else 0.0

    def failed(self, target: str, now: float) -> float:
        """Note a failure: the delay doubles each time up to ``LONGEST``."""
        before = self.waits.get(target)
        delay = FIRST if before is None else min(LONGEST, before.delay * 2)
        self.waits[target] = _Wait(until=now + delay, delay=delay)
        return delay

    def succeeded(self, target: str, now: float) -> None:
        """Forget a target once it has been quiet for as long as its last delay."""
        wait = self.waits.get(target)
        if wait is not None and now >= wait.until + wait.delay:
            del self.waits[target]

    def keep_only(self, targets: set[str]) -> None:
        """Drop targets that no plan wants, so that memory stays bounded."""
        for target in [target for target in self.waits if target not in targets]:
            del self.waits[target]
