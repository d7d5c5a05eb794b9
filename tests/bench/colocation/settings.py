"""Every number of the load, in one place.

Covers: load levels, best-effort work, lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Threads of the service, and CPU milliseconds of one request.
THREADS = 4
REQUEST_MS = 1.0
#: A FIFO thread that comes later than this (ms) was not let run: the host had the processor.
LATE_MS = 0.3
#: Seconds of a block, and of the quiet before it, in which an agent that was stopped wakes up.
SECONDS, SETTLE = 4.0, 1.0
#: The quiet where an agent sets the class of threads of the service, which wait for requests.
NOTICE = 2.5
#: CPUs that others may use in a block, the agent and what watches the host among them; beyond that
#: the block is void and comes again, at most so often in a run.
OTHERS, VOID = 0.12, 30
#: Seconds that an agent runs beside load and best-effort work before the first block.
WARM_UP = 60.0


@dataclass(frozen=True, slots=True)
class Level:
    """One load: its name, parts of the machine's CPUs with their shares of a block, services."""

    name: str
    parts: tuple[tuple[float, float], ...]
    services: int = 1

    def schedule(self, cpus: int, seconds: float, settle: float = 0.0) -> str:
        """As each service's clients want it: requests per second and seconds, after a quiet."""
        most = cpus * 1000 / REQUEST_MS / self.services
        parts = ((load * most, share * seconds) for load, share in self.parts)
        return ",".join(f"{rate:.1f}:{length:.3f}" for rate, length in ((0.0, settle), *parts))


LEVELS = {
    level.name: level
    for level in (
        Level("10%", ((0.10, 1.0),)),
        Level("20%", ((0.20, 1.0),)),
        Level("45%", ((0.45, 1.0),)),
        Level("70%", ((0.70, 1.0),)),
        Level("steps", ((0.20, 0.25), (0.60, 0.25), (0.20, 0.25), (0.60, 0.25))),
        Level("spikes", ((0.30, 0.4), (0.90, 0.1), (0.30, 0.4), (0.90, 0.1))),
        Level("three", ((0.45, 1.0),), services=3),
    )
}
#: Best-effort work: kind, threads for each CPU, and what the program wants to know.
HOGS = {
    "cpu": (2.0, ()),
    "memory": (1.0, ("64",)),
    "cache": (1.0, ("FILE",)),
    "io": (1.0, ("FILE",)),
    "fork": (1.0, ()),
}
#: What is measured where nothing is asked for, and what each change is checked with.
REPORT = ("20%", "45%", "70%", "steps", "spikes", "three")
GATE = ("45%", "70%")
