"""Request latency of the demo's service as text.

Covers: the figures of one interval.
Does not cover: measuring (``load``), comparing (``comparison``), telling (``cli.narration``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from koordlet.demo import intervals
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency of the requests answered in some seconds."""

    #: In each of them.
    answered: int
    #: Half of them took at most so long, and 99 of 100; milliseconds.
    p50: float
    p99: float
    #: Requests that found a full queue.
    refused: int = 0

    @classmethod
    def of(cls, requests: Iterable[intervals.Span], seconds: float) -> Latency | None:
        """The figures of these requests; ``None`` where none was answered."""
        every = list(requests)
        took = sorted(end - begin for begin, end in every if end < math.inf)
        if not took:
            return None
        block = intervals.Block(clean=took, requests=len(every), work=0.0)
        p50, p99 = (1000 * intervals.quantile([block], part) for part in (0.5, 0.99))
        refused = len(every) - len(took)
        return cls(answered=round(len(took) / seconds), p50=p50, p99=p99, refused=refused)

    def __str__(self) -> str:
        lost = f", {self.refused} refused" if self.refused else ""
        return f"{self.answered} requests/s, p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms{lost}"
