"""CPU waiting of latency-sensitive work, read ten times a second.

Covers: the value. Does not cover: reading it (``host.counters.strain``), what follows
(``policy.best_effort.adaptive``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Strain:
    """Waiting since the last pass, use since the last look."""

    #: Monotonic time of the look.
    at: float
    #: Cores that latency-sensitive work has used since the last look; ``None`` while not known.
    ls_lately: float | None = None
    #: Seconds that runnable latency-sensitive threads waited for a CPU, for each second of CPU that
    #: they had; ``None`` where nothing tells. Of the sampled threads, or of pressure files.
    waiting: float | None = None
    #: What was read: ``threads``, ``pressure``; empty where nothing tells.
    signal: str = ""
