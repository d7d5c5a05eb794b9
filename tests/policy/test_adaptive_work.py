"""Cycles per instruction as a pain: what is usual, what a window does, when it was not us."""

from __future__ import annotations

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import meter, snapshot
from koordlet.policy import adaptive, adaptive_work
from koordlet.policy.adaptive_work import State
from tests.kit import counting
from tests.policy import test_adaptive

MINUTE = 60.0
BEGIN = 1000.0


def past(*ratios: float, web: float = 1e9, **others: tuple[float, float]) -> series.History:
    """Windows of ``web``, one a minute, the last now; others: cycles and the last ratio."""
    found = series.History()
    for number, ratio in enumerate(ratios):
        at = BEGIN + MINUTE * number
        rows = {"web": (web, ratio)} | others
        columns = {
            meter.CYCLES: [cycles for cycles, _ in rows.values()],
            meter.INSTRUCTIONS: [cycles / each for cycles, each in rows.values()],
            meter.CPI: [each for _, each in rows.values()],
        }
        found.take({"work": counting.reading(at, columns, names=tuple(rows))})
    return found


def moment(windows: int) -> snapshot.Snapshot:
    """When the last of so many windows was read."""
    return test_adaptive.moment(at=BEGIN + MINUTE * (windows - 1))


def seen(*ratios: float) -> State:
    """What one look at these windows finds."""
    return adaptive_work.look(moment(len(ratios)), past(*ratios), State())


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
    found = past(*[1.0] * 20, 2.0, web=1e6, job=(1e9, 9.0))
    other = dataclasses.replace(test_adaptive.WEB, name="big", uid="big", group="big")
    now = moment(21)
    both = dataclasses.replace(now, pods=(*now.pods, other))

    assert adaptive_work.excess(both, found) == pytest.approx(1.0), "best-effort work is not asked"
    busy = past(*[1.0] * 20, 2.0, web=1e6, big=(999e6, 1.0))
    assert adaptive_work.excess(both, busy) == pytest.approx(0.001)


def test_old_windows_say_nothing() -> None:
    """Nor does a machine that does not count."""
    late = dataclasses.replace(moment(21), at=BEGIN + 20 * MINUTE + 200)

    assert State() == adaptive_work.look(late, past(*[1.0] * 20, 2.0), seen(*[1.0] * 20, 2.0))
    assert State() == adaptive_work.look(late, series.History(), State())


def test_a_window_cuts_once_and_then_holds() -> None:
    """Above one at the pass that sees it first, one until the next."""
    first = State(window_at=10.0, excess=0.5)

    assert (2.0, first) == adaptive_work.feel(State(), first, 10.0, 1.0, 0.25)
    assert (1.0, first) == adaptive_work.feel(first, first, 11.0, 1.0, 0.25)
    assert (0.0, first) == adaptive_work.feel(State(), first, 10.0, 0.0, 0.25), "not to blame"
    assert (0.0, first) == adaptive_work.feel(State(), first, 10.0, 1.0, 0.0), "not listened to"


def life(excesses: list[float]) -> tuple[list[float], State]:
    """Pains of windows, one a minute, each cut while it hurts."""
    state, pains = State(), []
    for number, each in enumerate(excesses):
        at = MINUTE * number
        looked = dataclasses.replace(state, window_at=at, excess=each)
        pain, state = adaptive_work.feel(state, looked, at, 1.0, 0.25)
        state = adaptive_work.cut(pain, state)
        pains.append(pain)
    return pains, state


def test_cuts_that_do_not_help_end() -> None:
    """After three windows as bad as before it is not felt for half an hour; then it is again."""
    pains, state = life([0.5] * 5)
    assert ([2.0, 2.0, 2.0, 0.0, 0.0], 3 * MINUTE + 1800) == (pains, state.deaf_until)
    assert 2.0 == life([0.5] * 34)[0][-1]


def test_cuts_that_help_go_on() -> None:
    """Less pain than before is what a cut is for, also where it is not enough yet."""
    pains, state = life([1.0, 0.8, 0.7, 0.5, 0.4, 0.3])
    assert [4.0, 3.2, 2.8, 2.0, 1.6, 1.2] == pytest.approx(pains)
    assert -1.0 == state.deaf_until


@hypothesis.given(st.lists(st.floats(0, 10), max_size=60))
def test_whatever_is_counted_most_of_it_is_not_ours(excesses: list[float]) -> None:
    """Pain is never negative and never more than the excess; deaf, it is none."""
    pains, _ = life(excesses)
    assert all(0 <= pain <= each / 0.25 for pain, each in zip(pains, excesses, strict=True))


def test_adaptive_cuts_for_it_and_says_so() -> None:
    """Nobody waits, and the limit falls all the same; the next pass does not cut again."""
    now, windows = moment(21), past(*[1.0] * 20, 2.0)
    used = test_adaptive.used(now.at)
    windows.groups, windows.node = used.groups, used.node
    free = test_adaptive.limited(8.0, at=now.at - 9)
    made = adaptive.decide(now, windows, adaptive.Settings(), free)

    assert made.limit is not None
    assert (4800, adaptive._CYCLES) == (made.limit.milli, made.limit.reason)
    assert {"cpu.waiting": False, "cpu.cycles": True} == {s.name: s.met for s in made.signals}
    later = dataclasses.replace(now, at=now.at + 5, strain=test_adaptive.felt(0.0, at=now.at + 5))
    again = adaptive.decide(later, windows, adaptive.Settings(), made.next_state)
    assert again.limit is not None
    assert 4800 == again.limit.milli
    deaf = adaptive.decide(now, windows, adaptive.Settings(work_tolerance=0), free)
    assert deaf.limit is not None
    assert deaf.limit.milli is None
