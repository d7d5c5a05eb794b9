"""The demo's story: a line when what best-effort work has has moved, and no others."""

from __future__ import annotations

import dataclasses
from array import array

from koordlet.cli import welcome
from koordlet.demo import latency
from koordlet.model import best_effort, counters, meter
from koordlet.report import view
from tests.kit import views


def moment(at: float, milli: int | None, used: float | None = 1.5) -> view.ReportView:
    """A view at a time, with a limit and what latency-sensitive work uses; seven CPUs."""
    shown = views.view(at=at)
    limit = best_effort.Limit(
        policy="adaptive", actuator="", milli=milli, be_milli=7000, reason="it waits"
    )
    columns = {} if used is None else {meter.CPU_SHARE: array("d", [used])}
    shares = counters.Table(slots={"LS": 0}, columns=columns)
    return dataclasses.replace(
        shown,
        plan=dataclasses.replace(shown.plan, limit=limit),
        used=dataclasses.replace(shown.used, shares=shares),
    )


def test_the_story() -> None:
    """Use, limit, which way it went, and the reason."""
    one = welcome.Narrator()

    assert one.line(moment(-4.0, None)) is None
    first, second = one.line(moment(1.0, None)), one.line(moment(4.0, 2000))
    third = one.line(moment(7.0, 5000))

    assert first is not None
    assert second is not None
    assert third is not None
    assert "latency-sensitive work uses 1.50 of 7 CPUs" in first
    assert "best-effort work uses 7.00: it waits" in first
    assert "may have 2.00 CPUs, less than before: it waits" in second
    assert "may have 5.00 CPUs, more: it waits" in third


def test_nothing_new() -> None:
    """A small step, a step too soon, and what is not known."""
    one = welcome.Narrator()

    assert one.line(moment(0.0, 2000, used=None)) is None
    assert one.line(views.view()) is None
    assert one.line(moment(200.0, 2000)) is not None
    assert one.line(moment(209.0, 2100)) is None
    assert one.line(moment(200.0 + welcome.PAUSE / 2, 5000)) is None
    assert one.line(moment(200.0 + welcome.PAUSE, 5000)) is not None


def test_requests_are_told_while_nothing_moves() -> None:
    """Every five seconds, with what they took; the limit has not moved and is not said to."""
    one = welcome.Narrator()
    took = latency.Latency(answered=100, p50=3.04, p99=8.0)
    one.line(moment(0.0, 2000), took)
    first = one.line(moment(welcome.PAUSE, 2000), took)

    assert first is not None
    assert "(100 requests/s, p50 3.0 ms, p99 8.0 ms)" in first
    assert one.line(moment(welcome.PAUSE + 4.0, 2000), took) is None
    later = one.line(moment(welcome.PAUSE + welcome.SILENCE, 2000), took)
    assert later is not None
    assert "may have 2.00 CPUs: it waits" in later


def test_who_does_not_act_is_said_not_to_act() -> None:
    """In shadow a policy says what it would do, with or without a limit."""
    shown = moment(0.0, None)
    quota = moment(0.0, 2000)
    for view_, words in (
        (shown, "best-effort work uses 7.00, and does not yield: adaptive is in shadow"),
        (quota, "is not limited, adaptive would let it have 2.00 CPUs, and does not yield"),
    ):
        assert view_.plan.limit is not None
        limit = dataclasses.replace(view_.plan.limit, idle="adaptive is in shadow")
        narrator = welcome.Narrator()
        told = [
            narrator.line(
                dataclasses.replace(
                    view_,
                    plan=dataclasses.replace(view_.plan, limit=limit),
                    snapshot=dataclasses.replace(view_.snapshot, at=at),
                )
            )
            for at in (0.0, welcome.PAUSE)
        ]
        assert words in str(told[-1])
