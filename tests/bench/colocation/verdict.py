"""The verdict of one load, by intervals of ratios (``koordlet.demo.intervals``). Pure.

Rule: ours fails where the lower end of its 95 % interval by the better of the others is above
``LIMIT``, and misses the goal where both ends do. An interval wider than ``WIDE`` to either side
decides nothing: that is neither.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from koordlet.demo import intervals
from koordlet.demo.intervals import Block, Interval

LIMIT = 1.05
WIDE = 0.10
#: The goal of co-location: p99 by alone, and best-effort work's part of the CPU that is left.
GOAL, GOAL_PART = 1.10, 0.90

Blocks = Mapping[str, Sequence[Block]]


class Verdict(enum.Enum):
    """Of one load."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "inconclusive"


def better(blocks: Blocks, names: Sequence[str]) -> str:
    """Of the arms that ours is compared with, the one whose service answers sooner."""
    return min(names, key=lambda name: intervals.quantile(blocks[name], 0.99))


def verdict(ratios: Sequence[Interval]) -> Verdict:
    """Of ratios of which more is worse."""
    if any(ratio.low > LIMIT for ratio in ratios):
        return Verdict.FAILS
    wide = any(ratio.width > WIDE for ratio in ratios)
    return Verdict.OPEN if wide else Verdict.HOLDS


def goal(latency: Interval, part: Interval) -> Verdict:
    """Of a service by itself alone, and of what best-effort work gets beside it."""
    if latency.low > GOAL or part.high < GOAL_PART:
        return Verdict.FAILS
    return Verdict.OPEN if max(latency.width, part.width) > WIDE else Verdict.HOLDS


def inverse(ratio: Interval) -> Interval:
    """Of a ratio of which less is worse."""
    return Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
