"""Rows: many series in one block, each found again."""

from __future__ import annotations

import math
from array import array

import hypothesis
from hypothesis import strategies as st

from koordlet.history import rows


def filled(*moments: tuple[float, tuple[float, ...]], length: int = 3) -> rows.Rows:
    """Rows of one second each."""
    made = rows.Rows(length, len(moments[0][1]))
    for at, values in moments:
        made.append(at, 1.0, array("d", values))
    return made


def test_each_series_is_found_again() -> None:
    """A series is its own cells, after the moment that was asked for."""
    made = filled((1, (1, 10)), (2, (2, 20)))

    assert made.samples(0, 0) == ([1, 2], 2.0)
    assert made.samples(1, 1) == ([20], 1.0)


def test_the_oldest_row_goes_first() -> None:
    """There are never more rows than were asked for."""
    made = filled(*((n, (n,)) for n in range(1, 6)))

    assert (set(made.samples(0, 0)[0]), made.samples(0, 0)[1]) == ({3, 4, 5}, 3.0)
    assert made.newest == 5


def test_a_missing_cell_covers_nothing() -> None:
    """NaN is no sample, and its time is not covered."""
    assert filled((1, (math.nan,)), (2, (2,))).samples(0, 0) == ([2], 1.0)


def test_a_series_that_begins_anew() -> None:
    """Clearing a series leaves the others as they are."""
    made = filled((1, (1, 10)), (2, (2, 20)))
    made.clear(0)

    assert made.samples(0, 0) == ([], 0)
    assert made.samples(1, 0) == ([10, 20], 2.0)


def test_what_comes_after_a_question_is_in_the_next_answer() -> None:
    """The rows of a moment are found once for all series, and anew when there is another row."""
    made = filled((1, (1, 10)), (2, (2, 20)))
    assert [made.samples(slot, 1) for slot in (0, 1)] == [([2], 1.0), ([20], 1.0)]
    made.append(3, 2.0, array("d", [math.nan, 30]))

    assert [made.samples(slot, 1) for slot in (0, 1)] == [([2], 1.0), ([20, 30], 3.0)]


def test_growing_older() -> None:
    """What is made older falls out of a window that it was in."""
    made = filled((10, (1,)))
    assert made.samples(0, 6) == ([1], 1.0)
    made.age(5)

    assert made.samples(0, 6) == ([], 0)
    assert made.samples(0, 4) == ([1], 1.0)


@hypothesis.given(
    widths=st.lists(st.integers(1, 9), min_size=1, max_size=6), length=st.integers(1, 5)
)
def test_resizing_keeps_what_stays(widths: list[int], length: int) -> None:
    """However the width changes, a series that was there all the time is whole."""
    made = rows.Rows(length, widths[0])
    for n, width in enumerate(widths):
        made.resize(width)
        made.append(n, 1.0, array("d", [n * 100 + slot for slot in range(width)]))
    for slot in range(widths[-1]):
        # Since when the series was there without a break.
        first = max([n for n, width in enumerate(widths) if width <= slot], default=-1) + 1
        newest = range(max(first, len(widths) - length), len(widths))

        assert sorted(n * 100 + slot for n in newest) == sorted(made.samples(slot, -1)[0])
