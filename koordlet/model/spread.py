"""How long something took, each time: a histogram that only grows.

Covers: the value. Does not cover: writing it (``report.metrics``).
"""

from __future__ import annotations

from collections.abc import Sequence

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Counts by upper bound (the last one is of all), and the sum."""

    bounds: tuple[float, ...]
    #: Cumulative, as Prometheus wants them: one for each bound, and one more.
    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def empty(cls, bounds: Sequence[float]) -> Spread:
        """Nothing was counted."""
        return cls(tuple(bounds), (0,) * (len(bounds) + 1))

    def with_one(self, value: float) -> Spread:
        """One more."""
        higher = [value <= bound for bound in self.bounds]
        counts = (count + more for count, more in zip(self.counts, [*higher, True], strict=True))
        return Spread(self.bounds, tuple(counts), self.total + value)
