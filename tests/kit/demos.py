"""A demo's comparison over views of a test.

Covers: a stage that answers as fast as a test says, the views of each second, the comparison
itself, and a demo that shows it to the console.
Does not cover: workloads (``koordlet.demo``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

from koordlet.cli import narration
from koordlet.demo import stage
from koordlet.report import view
from tests.kit import views

#: When a comparison begins.
START = 100.0


class Stage:
    """A stage that remembers how it was switched, and answers faster while koordlet is on."""

    def __init__(self, *, off: float, on: float) -> None:
        self.tick = SimpleNamespace(host=SimpleNamespace(live=True))
        self.took = {False: off, True: on}
        self.switched: list[bool] = []

    def switch(self, *, on: bool) -> None:
        """As a stage does."""
        self.switched.append(on)

    def gaps(self) -> list[tuple[float, float]]:
        """None was seen."""
        return []

    def asked(self, at: float) -> list[tuple[float, float]]:
        """Requests of the second before."""
        took = self.took[not self.switched or self.switched[-1]]
        return [(at - n / 20, at - n / 20 + took) for n in range(20)]


def seen(at: float) -> view.ReportView:
    """What the agent publishes at a time; seven CPUs."""
    shown = views.view(at=at)
    usage = {"koordlet-demo/be": 1.0, "koordlet-demo/ls": 0.5}
    return dataclasses.replace(
        shown, usage=usage, snapshot=dataclasses.replace(shown.snapshot, at=at)
    )


def compared(play: Stage, *, seconds: int = 63) -> tuple[str, narration.Comparing]:
    """All that is printed of a comparison, and the comparison."""
    comparing = narration.Comparing(cast("stage.Stage", play))
    lines: list[str] = []
    for second in range(seconds):
        if not comparing.over:
            at = START + second
            lines += comparing.advance(seen(at), play.asked(at))
    return "\n".join(lines), comparing


class Demo:
    """What the console is told of a comparison."""

    def __init__(self, comparing: narration.Comparing) -> None:
        self._comparing = comparing

    def latency(self) -> float | None:
        """Not measured."""
        return None

    def comparison(self, now: view.ReportView) -> Mapping[str, object] | None:
        """As the demo tells it."""
        return self._comparing.document(now)
