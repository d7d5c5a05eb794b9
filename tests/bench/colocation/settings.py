"""Every number of the load, in one place.

Covers: load levels, lengths, seeds. Whoever looks for better parameters uses ``SEARCH_SEEDS``; what
is published comes from ``REPORT_SEEDS``, which no search has seen.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Threads of the server, and CPU milliseconds of one request.
WORKERS = 4
REQUEST_MS = 1.0
#: Threads of best-effort work: processor, memory, input and output.
HOGS = (("cpu", 2, ()), ("memory", 1, ("32",)), ("io", 1, ()))

SEARCH_SEEDS = range(1, 1000)
REPORT_SEEDS = range(1001, 2000)


@dataclass(frozen=True, slots=True)
class Level:
    """One load: its name, and parts of the machine's CPUs with their shares of a block."""

    name: str
    parts: tuple[tuple[float, float], ...]

    def schedule(self, cpus: int, seconds: float) -> str:
        """As the server wants it: requests per second and seconds."""
        rates = ((load * cpus * 1000 / REQUEST_MS, share * seconds) for load, share in self.parts)
        return ",".join(f"{rate:.1f}:{length:.3f}" for rate, length in rates)


LEVELS = (
    Level("20 %", ((0.20, 1.0),)),
    Level("45 %", ((0.45, 1.0),)),
    Level("70 %", ((0.70, 1.0),)),
    Level("steps 20-60 %", ((0.20, 0.25), (0.60, 0.25), (0.20, 0.25), (0.60, 0.25))),
    Level("spikes 30-90 %", ((0.30, 0.4), (0.90, 0.1), (0.30, 0.4), (0.90, 0.1))),
)
#: The one of continuous integration.
GATE = LEVELS[1]
#: Seconds of a block that counts, and of what runs before it, with an agent and without.
SECONDS, WARM_UP, SHORT_WARM_UP = 5.0, 2.0, 0.5
#: ABBA rounds of a report, and of the gate.
ROUNDS, GATE_ROUNDS = 2, 2
