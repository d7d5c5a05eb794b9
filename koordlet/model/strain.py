"""CPU waiting of latency-sensitive work, read ten times a second.

Covers: the value. Does not cover: reading it (``host.counters.strain``), what follows
(``policy.best_effort.adaptive``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Strain:
    """Use and waiting since the last pass, and since the last look."""

    #: Monotonic time of the look.
    at: float
    #: Cores that latency-sensitive and best-effort work use; ``None`` while not known.
    ls_cores: float | None = None
    be_cores: float | None = None
    #: The same, since the last look.
    ls_lately: float | None = None
    be_lately: float | None = None
    #: Seconds that runnable latency-sensitive threads waited for a CPU, for each second of CPU that
    #: they had; ``None`` where nothing tells. Of the sampled threads, or of pressure files.
    waiting: float | None = None
    #: The same since the last look.
    waiting_lately: float | None = None
    #: What was read: ``threads``, ``pressure``; empty where nothing tells.
    signal: str = ""
