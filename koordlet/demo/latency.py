"""Request latency of the demo's service as text.

Covers: the figures of one interval, and the line that ``load`` prints of them.
Does not cover: measuring (``load``), telling (``cli.welcome``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency of the requests answered in one second."""

    answered: int
    #: Half of them took at most so long, and 99 of 100; milliseconds.
    p50: float
    p99: float
    #: Requests that found a full queue.
    refused: int = 0

    @classmethod
    def parse(cls, line: str) -> Latency:
        """Parse four numbers in a line; ``ValueError`` if the line has another form."""
        answered, p50, p99, refused = line.split()
        return cls(answered=int(answered), p50=float(p50), p99=float(p99), refused=int(refused))

    def __str__(self) -> str:
        lost = f", {self.refused} refused" if self.refused else ""
        return f"{self.answered} requests/s, p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms{lost}"
