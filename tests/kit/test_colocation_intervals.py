"""The verdict of the co-location gate: intervals of rounds, and what they do not decide."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bench.colocation import intervals
from tests.bench.colocation.intervals import Block, Interval, Verdict


def blocks(p99: list[float], work: float = 100.0) -> list[Block]:
    """Rounds of which all requests took so long."""
    return [Block(np.full(50, one), 50, work, share=0.9) for one in p99]


STEADY = blocks([4.0, 4.1, 4.0, 4.1, 4.0, 4.1])
SLOWER = blocks([4.6, 4.7, 4.6, 4.7, 4.6, 4.7])


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


def test_ours_is_compared_with_the_arm_that_answers_sooner() -> None:
    """Whatever is done in its rounds."""
    arms = {"weights": SLOWER, "idle": blocks([4.0] * 6, work=1.0)}

    assert intervals.better(arms, ("weights", "idle")) == "idle"


@pytest.mark.parametrize(
    ("ours", "others", "verdict"),
    [
        pytest.param(STEADY, STEADY, Verdict.HOLDS, id="as good"),
        pytest.param(SLOWER, STEADY, Verdict.FAILS, id="slower in each round"),
        pytest.param(blocks([4.0] * 6, 80.0), STEADY, Verdict.FAILS, id="less work done"),
        pytest.param(
            blocks([4.0, 4.0, 9.0, 4.0, 4.0, 4.0]), STEADY, Verdict.OPEN, id="one bad round"
        ),
        pytest.param(STEADY, SLOWER, Verdict.HOLDS, id="better"),
    ],
)
def test_the_verdict(ours: list[Block], others: list[Block], verdict: Verdict) -> None:
    """It fails where the lower end says so, and is open where the interval is wide."""
    less = intervals.inverse(intervals.work(ours, others))

    assert intervals.verdict([intervals.latency(ours, others), less]) is verdict


def test_the_inverse_of_a_ratio_turns_its_ends() -> None:
    """Less work done, by the other one's, is more work of the other one."""
    assert intervals.inverse(Interval(0.8, 0.5, 1.0)) == Interval(1.25, 1.0, 2.0)
