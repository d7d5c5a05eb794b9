"""The demo in words: the comparison, then a line when what best-effort work has has moved."""

from __future__ import annotations

import dataclasses
from array import array
from typing import Any

import pytest

from koordlet.cli import narration
from koordlet.demo import latency
from koordlet.model import best_effort, counters, meter
from koordlet.report import view
from tests.kit import demos, views


def moment(at: float, milli: int | None, used: float | None = 1.5) -> view.ReportView:
    """A view at a time, with a limit and what latency-sensitive work uses; seven CPUs."""
    base = views.view(at=at)
    limit = best_effort.Limit(
        policy="adaptive", actuator="", milli=milli, be_milli=7000, reason="it waits"
    )
    columns = {} if used is None else {meter.CPU_SHARE: array("d", [used])}
    shares = counters.Table(slots={"LS": 0}, columns=columns)
    return dataclasses.replace(
        base,
        plan=dataclasses.replace(base.plan, limit=limit),
        used=dataclasses.replace(base.used, shares=shares),
    )


def test_narrator_reports_direction_and_reason_of_each_limit_change() -> None:
    """The first line has what is used; nothing is said before the demo's work runs."""
    narrator = narration.Narrator()

    assert narrator.line(moment(-4.0, None)) is None
    first, second = narrator.line(moment(1.0, None)), narrator.line(moment(4.0, 2000))
    third = narrator.line(moment(7.0, 5000))

    assert first is not None
    assert second is not None
    assert third is not None
    assert "latency-sensitive work uses 1.50 of 7 CPUs" in first
    assert "best-effort work uses 7.00: it waits" in first
    assert "may have 2.00 CPUs, less than before: it waits" in second
    assert "may have 5.00 CPUs, more: it waits" in third


def test_nothing_new() -> None:
    """A small step, a step too soon, and what is not known."""
    narrator = narration.Narrator()

    assert narrator.line(moment(0.0, 2000, used=None)) is None
    assert narrator.line(views.view()) is None
    assert narrator.line(moment(200.0, 2000)) is not None
    assert narrator.line(moment(209.0, 2100)) is None
    assert narrator.line(moment(200.0 + narration.PAUSE / 2, 5000)) is None
    assert narrator.line(moment(200.0 + narration.PAUSE, 5000)) is not None


def test_requests_are_told_while_nothing_moves() -> None:
    """Every five seconds, with what they took; the limit has not moved and is not said to."""
    narrator = narration.Narrator()
    took = latency.Latency(answered=100, p50=3.04, p99=8.0)
    narrator.line(moment(0.0, 2000), took)
    first = narrator.line(moment(narration.PAUSE, 2000), took)

    assert first is not None
    assert "(100 requests/s, p50 3.0 ms, p99 8.0 ms)" in first
    assert narrator.line(moment(narration.PAUSE + 4.0, 2000), took) is None
    later = narrator.line(moment(narration.PAUSE + narration.SILENCE, 2000), took)
    assert later is not None
    assert "may have 2.00 CPUs: it waits" in later


def test_who_does_not_act_is_said_not_to_act() -> None:
    """In shadow a policy says what it would do, with or without a limit."""
    unlimited = moment(0.0, None)
    limited = moment(0.0, 2000)
    for view_, words in (
        (unlimited, "best-effort work uses 7.00, and does not yield: adaptive is in shadow"),
        (limited, "is not limited, adaptive would let it have 2.00 CPUs, and does not yield"),
    ):
        assert view_.plan.limit is not None
        limit = dataclasses.replace(view_.plan.limit, idle="adaptive is in shadow")
        narrator = narration.Narrator()
        lines = [
            narrator.line(
                dataclasses.replace(
                    view_,
                    plan=dataclasses.replace(view_.plan, limit=limit),
                    snapshot=dataclasses.replace(view_.snapshot, at=at),
                )
            )
            for at in (0.0, narration.PAUSE)
        ]
        assert words in str(lines[-1])


def test_a_comparison_switches_in_turn_and_ends_with_a_summary() -> None:
    """A line for each phase, ratios with intervals, a sentence; koordlet stays on after it."""
    stage = demos.Stage(off=0.1, on=0.01)
    text, comparing = demos.compared(stage)

    assert comparing.over
    assert stage.switched == [False, True] * 5
    assert [text.count(f"  {word} ") for word in ("off", "on")] == [5, 5]
    p99 = next(line for line in text.splitlines() if line.startswith("  p99"))
    assert p99.split()[4:] == ["100.0", "ms", "10.0", "ms", "0.10", "[0.10,", "0.10]"]
    assert "With koordlet the p99 of the service is 10.0 times shorter" in text
    assert "best-effort work gets as much." in text
    assert "0.0% of the requests, which met a gap of the host" in text


def test_the_head_of_the_phases_stands_right_above_the_first() -> None:
    """What else is printed while the first phase lasts does not come between."""
    play = demos.Stage(off=0.1, on=0.01)
    assert demos.compared(play, seconds=3)[0] == ""
    lines = demos.compared(demos.Stage(off=0.1, on=0.01))[0].splitlines()
    assert lines[0].split() == ["TIME", "KOORDLET", "P50", "P99", "REFUSED", "BEST-EFFORT"]
    assert lines[1].split()[1] == "off"
    assert lines.count(lines[0]) == 1


@pytest.mark.parametrize(
    ("off", "on", "words"),
    [
        (0.01, 0.01, "No difference was seen in the p99 of the service"),
        (0.01, 0.03, "With koordlet the p99 of the service is 3.0 times LONGER"),
    ],
)
def test_no_difference_and_a_worse_one_are_said(off: float, on: float, words: str) -> None:
    """A demo that only knows success shows nothing."""
    text, _ = demos.compared(demos.Stage(off=off, on=on))

    assert words in text


def test_a_comparison_that_is_stopped_says_what_it_has() -> None:
    """The complete rounds, or that there are too few."""
    _, soon = demos.compared(demos.Stage(off=0.1, on=0.01), seconds=14)
    _, later = demos.compared(demos.Stage(off=0.1, on=0.01), seconds=26)

    assert [*soon.summary()] == [
        "Nothing to compare yet: that takes two rounds without and with koordlet."
    ]
    assert "2 times 6 s without and with koordlet" in "\n".join(later.summary())


def test_the_console_has_the_figures_and_the_summary_that_the_terminal_prints() -> None:
    """Of each phase as soon as it has any, with its time on the clock of now."""
    text, comparing = demos.compared(demos.Stage(off=0.1, on=0.01), seconds=11)
    at = demos.seen(110.0)
    document: Any = comparing.document(at)

    off, on, *later = document["phases"]
    assert [word in text for word in off["figures"].values()] == [True] * 4
    assert (on["on"], on["figures"]["p99"]) == (True, "10.0 ms")
    assert on["from"] - at.snapshot.wall == pytest.approx(-4.0, abs=0.1)
    assert on["to"] - at.snapshot.wall == pytest.approx(2.0, abs=0.1)
    assert [phase["figures"] for phase in later] == [None] * 8
    assert (document["running"], document["verdict"], document["summary"]) == (1, "", [])

    text, comparing = demos.compared(demos.Stage(off=0.1, on=0.01))
    document = comparing.document(demos.seen(162.0))

    assert document["running"] is None
    assert "\n".join(document["summary"]) in text
    assert document["verdict"] in document["summary"]
    assert document["verdict"].startswith("With koordlet the p99 of the service is 10.0 times")
