"""Rates from counters: never negative, never from too little, forgotten with their group."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series


def counted(*readings: tuple[float, float]) -> series.History:
    """A history of one counter."""
    past = series.History()
    for at, total in readings:
        past.count("c", at, total)
    return past


def test_the_newest_rate() -> None:
    """The rate is the growth between the two newest readings, per second."""
    assert 1.5 == counted((0, 10), (1, 11), (3, 14)).last_rate("c")
    assert None is counted((0, 10)).last_rate("c")
    assert None is counted().last_rate("c")


def test_a_counter_that_starts_over() -> None:
    """A counter that went backwards, or a clock that stood still, gives no rate."""
    past = counted((0, 10), (1, 2), (1, 9), (2, 10))

    assert 1.0 == past.last_rate("c")


@hypothesis.given(readings=st.lists(st.tuples(st.floats(0, 50), st.floats(0, 1e6)), max_size=20))
def test_no_rate_is_ever_negative(readings: list[tuple[float, float]]) -> None:
    """Whatever is read, rates are not negative."""
    past = counted(*readings)
    rates = [past.last_rate("c"), past.rate("c", 50, 100)]

    assert all(rate is None or rate >= 0 for rate in rates)


@pytest.mark.parametrize(("start", "known"), [(6, False), (4, True), (0, True)])
def test_half_a_window_must_be_covered(start: int, known: bool) -> None:  # noqa: FBT001
    """An average needs samples over at least half of its window."""
    past = counted(*((at, 2.0 * at) for at in range(start, 11)))
    rate = past.rate("c", 10, 10)

    assert (2.0 if known else None) == rate


def test_what_is_gone_is_forgotten() -> None:
    """Series of groups that are gone hold no memory."""
    past = counted((0, 1), (1, 2))
    past.forget({"other"})

    assert None is past.last_rate("c")
    past.count("c", 2, 5)
    assert None is past.last_rate("c")
