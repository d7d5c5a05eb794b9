"""Ratios of rounds with intervals, and which requests count."""

from __future__ import annotations

import pytest

from koordlet.demo import intervals
from koordlet.demo.intervals import Block, Interval


def blocks(p99: list[float], work: float = 100.0) -> list[Block]:
    """Rounds of which all requests took so long."""
    return [Block(clean=[took] * 50, requests=50, work=work, share=0.9) for took in p99]


STEADY = blocks([4.0, 4.1, 4.0, 4.1, 4.0, 4.1])


def test_an_interval_is_of_all_rounds_and_holds_its_figure() -> None:
    """It is a point where rounds do not differ, and as wide as they are apart."""
    assert intervals.latency(STEADY, STEADY) == Interval(1.0, 1.0, 1.0)
    ratio = intervals.latency(blocks([4.0, 8.0, 4.0, 4.0]), blocks([4.0, 4.0, 4.0, 4.0]))
    assert (ratio.low, ratio.high) == (1.0, 2.0)
    assert ratio.low <= ratio.value <= ratio.high


def test_rounds_are_drawn_as_pairs() -> None:
    """What a round does to both arms alike takes no part in their ratio."""
    both = [4.0, 9.0, 3.0, 6.0]

    assert intervals.work(blocks(both), blocks(both)) == Interval(1.0, 1.0, 1.0)
    assert intervals.latency(blocks(both), blocks(both)) == Interval(1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("part", "took"), [(0.5, 50), (0.99, 99), (0.991, 100), (1.0, 100), (0.0, 1)]
)
def test_a_quantile_is_the_least_value_that_so_many_do_not_exceed(part: float, took: int) -> None:
    """Of all blocks together, in whatever block a request was."""
    several = [
        Block(clean=list(map(float, range(first, 101, 3))), requests=34, work=1.0)
        for first in (1, 2, 3)
    ]

    assert intervals.quantile(several, part) == took


def test_a_request_that_met_a_gap_is_left_out() -> None:
    """One during it, one across it, and one in the queue that it leaves; not those far from it."""
    gap = (10.0, 10.5)
    requests = [(9.0, 9.1), (9.9, 10.1), (10.2, 10.6), (10.505, 10.6), (10.52, 10.53), (9.0, 11.0)]

    assert intervals.clean(requests, [gap]) == pytest.approx([0.01, 0.1])
    assert len(intervals.clean(requests, [])) == 6
