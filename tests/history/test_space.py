"""Spaces: right rates whatever clocks and counters do, windows, slots that change hands."""

from __future__ import annotations

import math

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import space
from koordlet.model import meter
from tests.kit import counting


def counted(*readings: tuple[float, float], suspended: float = 0.0) -> space.Space:
    """One counter of one subject: when it was read, and what it said."""
    made = space.Space()
    for at, total in readings:
        made.take(counting.reading(at, {meter.CPU: [total]}, suspended=suspended))
    return made


def test_the_newest_rate() -> None:
    """It is the difference of the two newest readings over the time between them."""
    assert counted((0, 10), (1, 11), (3, 14)).last("a", meter.CPU) == 1.5
    assert None is counted((0, 10)).last("a", meter.CPU)
    assert None is counted((0, 10), (1, 11)).last("b", meter.CPU)
    assert counted((0, 10), (3, 14)).total("a", meter.CPU) == 14


def test_many_at_once() -> None:
    """The same as one by one: what is not known is none, whoever or whatever it is of."""
    made = space.Space()
    for at, totals in ((0, [1, 5]), (2, [3, math.nan])):
        made.take(counting.reading(at, {meter.CPU: totals}, names="ab"))
    names = ["b", "nobody", "a"]

    assert made.lasts(names, meter.CPU) == [None, None, 1.0]
    assert made.totals(names, meter.CPU) == [None, None, 3.0]
    assert made.lasts(names, meter.PIDS) == [None] * 3


def test_a_list_of_subjects_means_the_slots_of_now() -> None:
    """The slots of a list are remembered, but not beyond the subjects that had them."""
    made, names = space.Space(), list("abcdefghij")
    for at, order, some in (
        (0, "abcdefghij", names),
        (1, "jihgfedcba", names),
        (2, "bcdefghi", names),
    ):
        made.take(counting.reading(at, {meter.MEMORY: list(range(len(order)))}, names=order))
        wanted = [order.index(name) if name in order else None for name in some]
        assert made.lasts(some, meter.MEMORY) == wanted
        assert made.lasts(some, meter.MEMORY) == wanted


def test_a_counter_that_starts_over() -> None:
    """A total that falls is no rate; the next one is counted from there."""
    made = counted((0, 10), (1, 2))
    assert made.last("a", meter.CPU) is None

    made.take(counting.reading(2, {meter.CPU: [5]}))
    assert made.last("a", meter.CPU) == 3


def test_a_read_that_failed() -> None:
    """A missing total leaves two rates missing, and nothing wrong."""
    made = counted((0, 10), (1, math.nan))
    assert made.last("a", meter.CPU) is None
    made.take(counting.reading(2, {meter.CPU: [50]}))
    assert made.last("a", meter.CPU) is None
    made.take(counting.reading(3, {meter.CPU: [51]}))

    assert made.last("a", meter.CPU) == 1


def test_time_that_stands_still() -> None:
    """Two readings of one moment are no interval."""
    assert counted((1, 10), (1, 12)).last("a", meter.CPU) is None
    assert counted((0, 10), (1e-308, 12)).last("a", meter.CPU) is None


@hypothesis.given(
    st.lists(
        st.tuples(
            st.floats(0, 1e4),
            st.one_of(st.floats(0, 1e15), st.just(math.nan)),
            st.floats(0, 1e5),
        ),
        max_size=30,
    )
)
def test_no_rate_is_ever_negative(steps: list[tuple[float, float, float]]) -> None:
    """Resets, missed ticks, clocks that stand, suspend: what is shown is a rate, or nothing."""
    made = space.Space()
    at = suspended = 0.0
    for gap, total, asleep in steps:
        at, suspended = at + gap, suspended + asleep
        made.take(counting.reading(at, {meter.CPU: [total]}, suspended=suspended))
        shown = made.last("a", meter.CPU)
        seen = made.window("a", meter.CPU, at, 60)

        assert shown is None or 0 <= shown < math.inf
        assert seen is None or seen.values[0] >= 0


@hypothesis.given(
    rate=st.floats(0, 512), gaps=st.lists(st.floats(0.6, 40), min_size=2, max_size=50)
)
def test_a_steady_rate_whatever_ticks_are_missed(rate: float, gaps: list[float]) -> None:
    """A counter that grows steadily shows its rate after short and after long pauses."""
    made, at = space.Space(), 1000.0
    made.take(counting.reading(at, {meter.CPU: [0.0]}))
    for gap in gaps:
        at += gap
        made.take(counting.reading(at, {meter.CPU: [rate * (at - 1000.0)]}))

        assert made.last("a", meter.CPU) == pytest.approx(rate, rel=1e-6, abs=1e-9)


def test_suspend_makes_older_but_bends_no_rate() -> None:
    """The monotonic clock stands still with the counters; what was before is older by the sleep."""
    made = space.Space()
    for at in range(61):
        made.take(counting.reading(at, {meter.CPU: [2.0 * at]}))
    before = made.window("a", meter.CPU, 60, 60)
    made.take(counting.reading(61, {meter.CPU: [122.0]}, suspended=3600))

    assert before is not None
    assert made.last("a", meter.CPU) == 2
    assert made.window("a", meter.CPU, 61, 60) is None
    assert made.window("a", meter.CPU, 61, 2) is not None


def test_a_window_needs_half_of_itself() -> None:
    """Thirty seconds are half a minute, and no window of two."""
    made = counted(*((at, at) for at in range(31)))
    window = made.window("a", meter.CPU, 30, 60)

    assert window is not None
    assert (window.average, window.quantile(0.99), len(window.values)) == (1.0, 1.0, 30)
    assert made.window("a", meter.CPU, 30, 120) is None


def test_a_gap_is_not_covered() -> None:
    """Ten minutes without a tick are not ten minutes of the value after them."""
    made = counted((0, 0), (1, 1), (601, 601), (602, 602))

    assert made.window("a", meter.CPU, 602, 300) is None


def test_half_an_hour_in_steps() -> None:
    """Beyond what is remembered one by one, averages of 15 seconds stand for the samples."""
    made, total = space.Space(), 0.0
    for at in range(1800):
        total += 4.0 if at % 15 == 0 else 1.0
        made.take(counting.reading(at, {meter.CPU: [total]}))
    window = made.window("a", meter.CPU, 1799, 1800)

    assert window is not None
    assert window.average == pytest.approx(1.2, rel=0.01)
    assert window.quantile(0.99) == pytest.approx(1.2, rel=0.1)


def test_the_node_remembers_half_an_hour_one_by_one() -> None:
    """With depth, the quantiles of half an hour are of single samples."""
    made, total = space.Space(depth=6), 0.0
    for at in range(1800):
        total += 4.0 if at % 15 == 0 else 1.0
        made.take(counting.reading(at, {meter.CPU: [total]}))
    window = made.window("a", meter.CPU, 1799, 1800)

    assert window is not None
    assert (window.quantile(0.9), window.quantile(0.95)) == (1.0, 4.0)


def test_a_slot_that_changes_hands() -> None:
    """The new subject inherits neither totals nor samples."""
    made = counted(*((at, 100.0 * at) for at in range(40)))
    made.take(counting.reading(40, {meter.CPU: [4001.0]}, names=("b",), renewed=(0,)))

    assert (made.last("a", meter.CPU), made.last("b", meter.CPU)) == (None, None)
    made.take(counting.reading(41, {meter.CPU: [4002.0]}, names=("b",)))
    assert made.last("b", meter.CPU) == 1
    assert made.window("b", meter.CPU, 41, 60) is None


def test_more_and_fewer_subjects() -> None:
    """Columns follow the subjects; who stays keeps what it has."""
    made = space.Space()
    for at in range(31):
        names = ("a", "b") if at % 2 else ("a",)
        made.take(counting.reading(at, {meter.CPU: [at] * len(names)}, names=names))

    window = made.window("a", meter.CPU, 30, 60)
    assert window is not None
    assert len(window.values) == 30


def test_working_set_and_throttling() -> None:
    """Use without the inactive cache, never below zero; throttled periods of all periods."""
    made = space.Space()
    for at, periods, throttled in ((0, 0, 0), (1, 10, 5), (2, 10, 5)):
        values = {
            meter.MEMORY: [100.0, 10.0],
            meter.MEMORY_INACTIVE_FILE: [30.0, 11.0],
            meter.PERIODS: [periods, math.nan],
            meter.THROTTLED_PERIODS: [throttled, math.nan],
        }
        made.take(counting.reading(at, values, names=("a", "b")))
        if at == 1:
            assert made.last("a", meter.THROTTLED) == 0.5

    assert [made.last(name, meter.WORKING_SET) for name in ("a", "b")] == [70.0, 0.0]
    assert (made.last("a", meter.THROTTLED), made.last("b", meter.THROTTLED)) == (0.0, None)


def test_what_is_not_read_any_more_is_not_known() -> None:
    """A meter whose file went away is old at first, then gone."""
    made = counted((0, 0), (1, 1))
    made.take(counting.reading(60, {meter.PIDS: [3.0]}))
    assert (made.last("a", meter.CPU), made.age(meter.CPU, 60)) == (1, 59)
    made.take(counting.reading(92, {meter.PIDS: [3.0]}))

    assert (
        made.last("a", meter.CPU),
        made.age(meter.CPU, 92),
        made.last("a", meter.PIDS),
    ) == (None, None, 3)


def test_a_table_stays_as_it_was() -> None:
    """What was handed out does not change when the next reading comes."""
    made = counted((0, 0), (1, 1))
    table = made.table()
    made.take(counting.reading(2, {meter.CPU: [9.0]}))

    assert (table.value("a", meter.CPU), made.last("a", meter.CPU)) == (1, 8)
    assert list(table.values(meter.CPU)) == [("a", 1.0)]
    assert table.value("z", meter.CPU) is None


def test_samples_that_are_missing_count_for_nobody() -> None:
    """In steps of 15 seconds: the mean is that of the samples that are there."""
    made = space.Space()
    for at in range(1000):
        there = 1.0 + at // 2 % 4
        used = [there, math.nan if at % 3 == 0 else there, math.nan]
        readings = {meter.MEMORY: used, meter.MEMORY_INACTIVE_FILE: [0.0] * 3}
        made.take(counting.reading(at, readings, names="abc"))
    windows = [made.window(name, meter.WORKING_SET, 999.0, 1800.0) for name in "abc"]
    whole, part = windows[:2]

    assert whole is not None
    assert part is not None
    assert pytest.approx([whole.average, part.average], abs=0.05) == [2.5, 2.5]
    assert windows[2] is None


def test_a_value_that_nobody_read_is_no_sample() -> None:
    """It is shown for a while; repeated, it would fill a window that nobody looked at."""
    made = space.Space()
    for at in range(60):
        values = {meter.CPU: [2.0 * at], meter.WORKING_SET: [8.0]} if at <= 10 else {}
        made.take(counting.reading(at, {**values, meter.LOAD_1: [0.0]}))

    assert made.last("a", meter.CPU) == 2
    assert made.window("a", meter.CPU, 59, 60) is None
    assert made.window("a", meter.WORKING_SET, 59, 60) is None


def test_the_first_sample_stands_for_one_period() -> None:
    """Two of the five minutes of a meter that is read each minute are not half of them."""
    made = space.Space()
    for minute in range(3):
        before = made.window("a", meter.CPI, 60.0 * minute, 300)
        assert before is None
        made.take(counting.reading(60.0 * minute, {meter.CPI: [1.0]}))

    window = made.window("a", meter.CPI, 120, 300)
    assert window is not None
    assert len(window.values) == 3


def test_a_step_that_is_hardly_known() -> None:
    """Seconds of which fewer than half were seen do not stand for all of them."""
    made = space.Space()
    for at in range(1800):
        # Of two subjects one is read always, the other two times in fifteen.
        seen = float("nan") if at % 15 > 1 else 8.0
        made.take(counting.reading(at, {meter.WORKING_SET: [4.0, seen]}, names=("a", "b")))

    window = made.window("a", meter.WORKING_SET, 1799, 1800)
    assert window is not None
    assert window.average == 4
    assert made.window("b", meter.WORKING_SET, 1799, 1800) is None


@hypothesis.given(
    steps=st.lists(
        st.tuples(st.floats(0.6, 4.0), st.one_of(st.none(), st.floats(0, 64, width=32))),
        min_size=2,
        max_size=80,
    ),
    seconds=st.sampled_from([5.0, 10.0, 60.0]),
)
def test_windows_by_hand(steps: list[tuple[float, float | None]], seconds: float) -> None:
    """Average and quantiles of what was seen, where that is half; counted out one by one."""
    made, now = space.Space(), 0.0
    seen: list[tuple[float, float, float]] = []
    newest = None
    for gap, value in steps:
        now += gap
        missing = float("nan")
        made.take(
            counting.reading(now, {meter.MEMORY_SHARE: [missing if value is None else value]})
        )
        if newest is not None and now - newest < 0.75:
            continue
        span = 1.0 if newest is None else min(now - newest, 2.0)
        newest = now
        if value is not None:
            seen.append((now, span, value))
    inside = [sample for sample in seen if sample[0] > now - seconds]
    window = made.window("a", meter.MEMORY_SHARE, now, seconds)

    if not inside or sum(sample[1] for sample in inside) < seconds / 2 - 1e-6:
        assert window is None
        return
    assert window is not None
    values = sorted(sample[2] for sample in inside)
    assert window.average == pytest.approx(sum(values) / len(values))
    for percent in (50, 90, 95, 99):
        # Exact in whole numbers, but where 32-bit floats of the peer fall below.
        rank = len(values) * percent // 100
        assert window.quantile(percent / 100) in {
            values[max(0, rank - 1)],
            values[max(0, rank - 2)],
        }
