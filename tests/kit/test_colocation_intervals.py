"""The verdict of the co-location gate: on intervals, against the best other arm."""

from __future__ import annotations

import pytest

from tests.bench.colocation import intervals
from tests.bench.colocation.arms import Block


def pairs(p99: list[float], be: list[float], alone: float = 4.0) -> list[intervals.Pair]:
    """Blocks beside LS-alone blocks that use one CPU of two."""
    beside = Block(1.0, alone, alone, ls_cpus=1.0, be_cpus=0.0, work=0.0)
    return [
        intervals.Pair(beside, Block(1.0, one, one, ls_cpus=1.0, be_cpus=work, work=work))
        for one, work in zip(p99, be, strict=True)
    ]


GOOD = pairs([4.4, 4.5, 4.4, 4.6], [0.9, 0.9, 0.95, 0.9])


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        pytest.param(GOOD, [], id="as good"),
        pytest.param(pairs([4.0, 9.0, 4.1, 4.2], [0.9] * 4), [], id="one outlier is no verdict"),
        pytest.param(pairs([5.4] * 4, [0.9] * 4), ["p99"], id="clearly slower"),
        pytest.param(pairs([4.6] * 4, [0.5] * 4), ["best-effort"], id="less work, no faster"),
        pytest.param(pairs([3.9] * 4, [0.5] * 4), [], id="less work, but faster"),
    ],
)
def test_the_verdict(ours: list[intervals.Pair], words: list[str]) -> None:
    """It fails only where a whole interval is on the wrong side."""
    others = {"weights": GOOD, "quota": pairs([8.0] * 4, [0.3] * 4)}
    problems = intervals.verdict(ours, others, 2)

    assert len(words) == len(problems)
    assert all(word in problem for word, problem in zip(words, problems, strict=True))
    assert all("weights" in problem for problem in problems)


def test_a_noisy_run_is_void() -> None:
    """LS-alone blocks that differ by more than 30 % judge nobody."""
    assert intervals.void(GOOD) == 1.0
    assert intervals.void([*GOOD, *pairs([4.0], [0.9], alone=5.5)]) > intervals.VOID


def test_an_interval_holds_its_mean() -> None:
    """And is a point where nothing varies."""
    one = intervals.interval([1.0, 1.2, 1.1])

    assert one.low <= one.mean <= one.high
    assert intervals.interval([1.0, 1.0]) == intervals.Interval(1.0, 1.0, 1.0)
