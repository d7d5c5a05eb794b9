"""What the demo tells while it runs: one line when the story goes on.

Covers: which states are worth a line, the line. Does not cover: the greeting (``cli.welcome``).

Rules:
1. A line comes when what best-effort work may have has moved by a tenth of the machine since the
   line before, and not sooner than ``PAUSE`` seconds after it, or after the start: a person reads
   it, and the greeting first.
2. What is not known yet is not told.
"""

from __future__ import annotations

import time

from koordlet import surfaces
from koordlet.cli import output
from koordlet.model import meter, qos
from koordlet.report import view

PAUSE = 2.0
_STEP = 0.1


class Narrator:
    """Remembers what was told."""

    def __init__(self) -> None:
        self._told: float | None = None
        self._at: float | None = None

    def line(self, now: view.View) -> str | None:
        """The next line of the story, or nothing new."""
        whole = len(now.snapshot.topology.online)
        if self._at is None:
            self._at = now.snapshot.at
        felt = now.used.shares.value(qos.Qos.LS.value, meter.CPU_SHARE)
        limit = now.plan.limit
        if limit is None or felt is None or not whole:
            return None
        cores = whole if limit.milli is None else limit.milli / 1000
        moved = self._told is None or abs(cores - self._told) >= _STEP * whole
        if not moved or now.snapshot.at - self._at < PAUSE:
            return None
        way = "" if self._told is None else ", less than before" if cores < self._told else ", more"
        self._told, self._at = cores, now.snapshot.at
        clock = time.strftime("%H:%M:%S", time.localtime(now.snapshot.wall))
        why = output.visible(limit.reason)
        return (
            f"{clock}  latency-sensitive work uses {felt:.2f} of {whole} CPUs;"
            f" best-effort work may have {cores:.2f}{way}: {why}"
        )


class Narrated(surfaces.Surfaces):
    """Surfaces that tell a person about what they publish."""

    _narrator: Narrator | None = None

    def publish(self, now: view.View | None) -> None:
        """There is a new view."""
        super().publish(now)
        if now is None or not now.ready:
            return
        if self._narrator is None:
            self._narrator = Narrator()
        line = self._narrator.line(now)
        if line is not None:
            print(line, flush=True)
