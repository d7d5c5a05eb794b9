"""The verdict of the co-location gate: intervals of rounds, and what they do not decide."""

from __future__ import annotations

import pytest

from koordlet.demo import intervals
from koordlet.demo.intervals import Block, Interval
from tests.bench.colocation import verdict
from tests.bench.colocation.verdict import Verdict


def blocks(p99: list[float], work: float = 100.0) -> list[Block]:
    """Rounds of which all requests took so long."""
    return [Block(clean=[took] * 50, requests=50, work=work, share=0.9) for took in p99]


STEADY = blocks([4.0, 4.1, 4.0, 4.1, 4.0, 4.1])
SLOWER = blocks([4.6, 4.7, 4.6, 4.7, 4.6, 4.7])


def test_ours_is_compared_with_the_arm_that_answers_sooner() -> None:
    """Whatever is done in its rounds."""
    arms = {"weights": SLOWER, "idle": blocks([4.0] * 6, work=1.0)}

    assert verdict.better(arms, ("weights", "idle")) == "idle"


@pytest.mark.parametrize(
    ("ours", "others", "expected"),
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
def test_the_verdict(ours: list[Block], others: list[Block], expected: Verdict) -> None:
    """It fails where the lower end says so, and is open where the interval is wide."""
    less = verdict.inverse(intervals.work(ours, others))

    assert verdict.verdict([intervals.latency(ours, others), less]) is expected


def test_the_inverse_of_a_ratio_turns_its_ends() -> None:
    """Less work done, by the other one's, is more work of the other one."""
    assert verdict.inverse(Interval(0.8, 0.5, 1.0)) == Interval(1.25, 1.0, 2.0)


@pytest.mark.parametrize(
    ("latency", "part", "expected"),
    [
        pytest.param(Interval(0.9, 0.88, 0.93), Interval(0.94, 0.92, 0.95), "HOLDS", id="met"),
        pytest.param(Interval(1.2, 1.12, 1.25), Interval(0.94, 0.92, 0.95), "FAILS", id="felt"),
        pytest.param(
            Interval(0.9, 0.88, 0.93), Interval(0.85, 0.8, 0.89), "FAILS", id="too little"
        ),
        pytest.param(Interval(1.0, 0.8, 1.3), Interval(0.94, 0.92, 0.95), "OPEN", id="wide"),
    ],
)
def test_the_goal(latency: Interval, part: Interval, expected: str) -> None:
    """Missed where the whole interval of either misses it; wide ones decide nothing."""
    assert verdict.goal(latency, part) is Verdict[expected]
