"""Cycles per instruction: what is usual, and who is told to be slower than that."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.history import series
from koordlet.model import meter, snapshot
from koordlet.policy.best_effort import adaptive
from koordlet.policy.best_effort.adaptive import Work
from tests.kit import counting
from tests.policy.best_effort import test_adaptive

MINUTE = 60.0
BEGIN = 1000.0


def past(*ratios: float, web: float = 1e9, **others: tuple[float, float]) -> series.History:
    """Windows of ``web``, one a minute, the last now; others: cycles and the last ratio."""
    history = series.History()
    for number, ratio in enumerate(ratios):
        at = BEGIN + MINUTE * number
        rows = {"web": (web, ratio)} | others
        columns = {
            meter.CYCLES: [cycles for cycles, _ in rows.values()],
            meter.INSTRUCTIONS: [cycles / each for cycles, each in rows.values()],
            meter.CPI: [each for _, each in rows.values()],
        }
        history.take({"work": counting.reading(at, columns, names=tuple(rows))})
    return history


def moment(windows: int) -> snapshot.Snapshot:
    """When the last of so many windows was read."""
    return test_adaptive.moment(at=BEGIN + MINUTE * (windows - 1))


def seen(*ratios: float) -> Work:
    """What one look at these windows finds."""
    return adaptive.look_at_work(moment(len(ratios)), past(*ratios), Work())


def test_the_usual_is_what_it_needs_while_it_is_left_alone() -> None:
    """The lower quartile of its own half an hour; less than it needed then is no pain."""
    assert seen(*[1.0] * 20, 1.5).excess == pytest.approx(0.5)
    assert seen(*[1.0, 2.0] * 10, 2.0).excess == pytest.approx(1.0)
    assert seen(*[1.0] * 20, 0.5).excess == 0


def test_half_of_it_must_be_known() -> None:
    """Nothing is usual after ten minutes."""
    assert seen(*[1.0] * 9, 3.0).excess == 0


def test_who_hardly_works_hardly_counts() -> None:
    """The mean of containers is weighted by cycles."""
    history = past(*[1.0] * 20, 2.0, web=1e6, job=(1e9, 9.0))
    other = dataclasses.replace(test_adaptive.WEB, name="big", uid="big", group="big")
    now = moment(21)
    both = dataclasses.replace(now, pods=(*now.pods, other))

    assert adaptive.excess(both, history) == pytest.approx(1.0), "best-effort work is not asked"
    busy = past(*[1.0] * 20, 2.0, web=1e6, big=(999e6, 1.0))
    assert adaptive.excess(both, busy) == pytest.approx(0.001)


def test_old_windows_say_nothing() -> None:
    """Nor does a machine that does not count."""
    late = dataclasses.replace(moment(21), at=BEGIN + 20 * MINUTE + 200)

    assert Work() == adaptive.look_at_work(late, past(*[1.0] * 20, 2.0), seen(*[1.0] * 20, 2.0))


def test_who_is_slowed_beside_best_effort_work_is_told() -> None:
    """Above the tolerance, while best-effort work runs; 0 switches it off; words stay."""
    slow = seen(*[1.0] * 20, 1.5)
    slower = seen(*[1.0] * 20, 1.7)

    assert [condition.type for condition in adaptive.work_conditions(slow, 0.25, 1000)] == [
        "LatencySensitiveSlowed"
    ]
    words = adaptive.work_conditions(slow, 0.25, 1000)
    assert adaptive.work_conditions(slower, 0.25, 2000) == words
    assert adaptive.work_conditions(slow, 0.5, 1000) == ()
    assert adaptive.work_conditions(slow, 0.0, 1000) == ()
    assert adaptive.work_conditions(slow, 0.25, 0) == ()
    assert adaptive.work_conditions(Work(), 0.25, 1000) == ()


def test_the_signal_says_what_the_newest_window_said() -> None:
    """Nothing where nobody counts."""
    (signal,) = adaptive.work_signal(seen(*[1.0] * 20, 1.5), 0.25)

    assert (signal.observed, signal.met) == ("50% more than usual", True)
    assert adaptive.work_signal(Work(), 0.25) == ()
