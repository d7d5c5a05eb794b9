"""The demo's story: a line when what best-effort work may have has moved, and no others."""

from __future__ import annotations

import dataclasses
from array import array

from koordlet.cli import narration
from koordlet.model import best_effort, counters, meter
from koordlet.report import view
from tests.kit import views


def moment(at: float, milli: int | None, used: float | None = 1.5) -> view.View:
    """A view at a time, with a limit and what latency-sensitive work uses; seven CPUs."""
    shown = views.view(at=at)
    limit = best_effort.Limit(policy="adaptive", actuator="", milli=milli, reason="it waits")
    columns = {} if used is None else {meter.CPU_SHARE: array("d", [used])}
    shares = counters.Table(slots={"LS": 0}, columns=columns)
    return dataclasses.replace(
        shown,
        plan=dataclasses.replace(shown.plan, limit=limit),
        used=dataclasses.replace(shown.used, shares=shares),
    )


def test_the_story() -> None:
    """Use, limit, which way it went, and the reason."""
    one = narration.Narrator()

    assert one.line(moment(-4.0, None)) is None
    first, second = one.line(moment(1.0, None)), one.line(moment(4.0, 2000))
    third = one.line(moment(7.0, 5000))

    assert first is not None
    assert second is not None
    assert third is not None
    assert "latency-sensitive work uses 1.50 of 7 CPUs" in first
    assert "best-effort work may have 7.00: it waits" in first
    assert "may have 2.00, less than before: it waits" in second
    assert "may have 5.00, more: it waits" in third


def test_nothing_new() -> None:
    """A small step, a step too soon, and what is not known."""
    one = narration.Narrator()

    assert one.line(moment(0.0, 2000, used=None)) is None
    assert one.line(views.view()) is None
    assert one.line(moment(200.0, 2000)) is not None
    assert one.line(moment(209.0, 2100)) is None
    assert one.line(moment(200.0 + narration.PAUSE / 2, 5000)) is None
    assert one.line(moment(200.0 + narration.PAUSE, 5000)) is not None
