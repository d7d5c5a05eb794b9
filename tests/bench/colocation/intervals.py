"""From blocks to ratios with intervals, and to a verdict. Pure; chance is seeded.

Covers: quantiles of pooled requests, bootstrap over rounds, the verdict of one load.

Rules:
1. A round has one block of each arm. Rounds are drawn anew, whole, so that what a round had in
   common stays in common: a ratio of two arms is of the same rounds.
2. Ours fails where the lower end of its 95 % interval by the better of the others is above
   ``LIMIT``. An interval wider than ``WIDE`` to either side decides nothing: that is neither.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

DRAWS = 1000
LIMIT = 1.05
WIDE = 0.10
_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Block:
    """What one block showed."""

    #: Seconds of each request that met no gap of the host, in order of size.
    clean: _Numbers
    #: How many requests there were.
    requests: int
    #: Rounds of best-effort work.
    work: float
    #: Of the CPU that the service left, the part that best-effort work had.
    share: float
    #: CPUs that somebody else used meanwhile.
    others: float = 0.0


Blocks = Mapping[str, Sequence[Block]]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure of all rounds and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """How far the interval goes to its longer side, as a part of the figure."""
        return max(self.high - self.value, self.value - self.low) / self.value

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


class Verdict(enum.Enum):
    """Of one load."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "inconclusive"


def latency(mine: Sequence[Block], other: Sequence[Block], part: float = 0.99) -> Interval:
    """A quantile of one arm by that of another one."""
    draws = _draws(len(mine))
    return _interval([_pooled(mine, draw, part) / _pooled(other, draw, part) for draw in draws])


def work(mine: Sequence[Block], other: Sequence[Block]) -> Interval:
    """Best-effort work of one arm by that of another one."""
    draws = _draws(len(mine))
    one, two = ([block.work for block in blocks] for blocks in (mine, other))
    return _interval([sum(one[i] for i in draw) / sum(two[i] for i in draw) for draw in draws])


def share(mine: Sequence[Block]) -> Interval:
    """Best-effort work's part of the CPU that the service leaves."""
    return _interval([sum(mine[i].share for i in draw) / len(draw) for draw in _draws(len(mine))])


def better(blocks: Blocks, names: Sequence[str]) -> str:
    """Of the arms that ours is compared with, the one whose service answers sooner."""
    return min(names, key=lambda name: _pooled(blocks[name], range(len(blocks[name])), 0.99))


def verdict(ratios: Sequence[Interval]) -> Verdict:
    """Of ratios of which more is worse."""
    if any(ratio.low > LIMIT for ratio in ratios):
        return Verdict.FAILS
    wide = any(ratio.width > WIDE for ratio in ratios)
    return Verdict.OPEN if wide else Verdict.HOLDS


def inverse(ratio: Interval) -> Interval:
    """Of a ratio of which less is worse."""
    return Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)


def _draws(rounds: int) -> list[Sequence[int]]:
    """All rounds as they were, and then so many drawn ones."""
    chance = np.random.default_rng(1)
    return [range(rounds), *chance.integers(rounds, size=(DRAWS, rounds)).tolist()]


def _pooled(blocks: Sequence[Block], draw: Sequence[int], part: float) -> float:
    return float(np.quantile(np.concatenate([blocks[i].clean for i in draw]), part))


def _interval(values: Sequence[float]) -> Interval:
    low, high = np.quantile(values[1:], (0.025, 0.975))
    return Interval(values[0], float(low), float(high))
