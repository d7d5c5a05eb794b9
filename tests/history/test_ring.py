"""A bounded series: the newest samples, in order, whatever the clock does."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st

from koordlet.history import ring

TIMES = st.lists(st.floats(0, 100, width=16), max_size=40)


@hypothesis.given(capacity=st.integers(1, 9), times=TIMES)
def test_it_holds_the_newest(capacity: int, times: list[float]) -> None:
    """It is a list of the newest samples, of those that were newer than all before them."""
    series = ring.Ring(capacity)
    kept: list[tuple[float, float]] = []
    for number, at in enumerate(times):
        series.append(at, number)
        if not kept or at > kept[-1][0]:
            kept.append((at, number))
    newest = kept[-capacity:][::-1]

    assert newest == list(series.since(-1))
    assert len(newest) == len(series)
    assert (newest[0] if newest else None) == series.last()


@hypothesis.given(times=TIMES, start=st.floats(0, 100, width=16))
def test_a_window_starts_where_told(times: list[float], start: float) -> None:
    """``since`` gives exactly the samples at or after the start."""
    series = ring.Ring(50)
    for at in times:
        series.append(at, 0)

    assert [one for one in series.since(-1) if one[0] >= start] == list(series.since(start))
