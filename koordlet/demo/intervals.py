"""From blocks of measurement to ratios with 95 % intervals. Pure; chance is seeded.

Covers: requests that met a gap of the host, quantiles of pooled requests, bootstrap over rounds.
Does not cover: what is measured when (``comparison``; the bench of co-location).

Rules:
1. A round has one block of each arm. Rounds are drawn anew, whole, so that what a round had in
   common stays in common: a ratio of two arms is of the same rounds.
2. A gap is a time in which the host let nobody run on a CPU and did not say so. A request that was
   there in a gap, or in the queue that it left, says nothing about either arm: it is left out.
"""

from __future__ import annotations

import bisect
import functools
import math
import random
from collections.abc import Iterable, Sequence

from koordlet.model.record import dataclass

DRAWS = 1000
#: A request may feel the queue that a gap has left, for so many seconds.
ECHO = 0.01

#: Begin and end, in seconds of the monotonic clock.
Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What one block showed."""

    #: Seconds of each request that met no gap of the host, in order of size.
    clean: Sequence[float]
    #: How many requests there were.
    requests: int
    #: Best-effort work that was done, in any unit.
    work: float
    #: Of the CPU that the service left, the part that best-effort work had.
    share: float = 0.0
    #: CPUs that somebody else used meanwhile.
    others: float = 0.0


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


def clean(requests: Iterable[Span], gaps: Iterable[Span]) -> list[float]:
    """How long the requests took that met no gap, in order of size (rule 2)."""
    away = sorted(gaps)
    return sorted(end - begin for begin, end in requests if not _met(away, begin, end))


def _met(gaps: Sequence[Span], begin: float, end: float) -> bool:
    before = bisect.bisect_right(gaps, (end, end))
    return any(gap[1] > begin - ECHO for gap in gaps[max(0, before - 8) : before])


def latency(mine: Sequence[Block], other: Sequence[Block], part: float = 0.99) -> Interval:
    """A quantile of one arm by that of another one."""
    draws = _draws(len(mine))
    ours, theirs = (_Pool(blocks) for blocks in (mine, other))
    return _interval([ours.quantile(draw, part) / theirs.quantile(draw, part) for draw in draws])


def work(mine: Sequence[Block], other: Sequence[Block]) -> Interval:
    """Best-effort work of one arm by that of another one."""
    ours, theirs = ([block.work for block in blocks] for blocks in (mine, other))
    return _interval(
        [sum(ours[i] for i in draw) / sum(theirs[i] for i in draw) for draw in _draws(len(mine))]
    )


def share(mine: Sequence[Block]) -> Interval:
    """Best-effort work's part of the CPU that the service leaves."""
    return _interval([sum(mine[i].share for i in draw) / len(draw) for draw in _draws(len(mine))])


def quantile(blocks: Sequence[Block], part: float) -> float:
    """The least of all their requests that at least this part of them does not exceed."""
    return _Pool(blocks).quantile(range(len(blocks)), part)


class _Pool:
    """Requests of several blocks, longest first, each with the block that it is of."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._sizes = [len(block.clean) for block in blocks]
        every = ((took, number) for number, block in enumerate(blocks) for took in block.clean)
        self._longest = sorted(every, reverse=True)

    def quantile(self, draw: Sequence[int], part: float) -> float:
        """A quantile of the drawn blocks; one that was drawn twice counts twice."""
        times = [0] * len(self._sizes)
        for number in draw:
            times[number] += 1
        size = sum(count * size for count, size in zip(times, self._sizes, strict=True))
        above = size - max(1, math.ceil(part * size - 1e-9))
        for took, number in self._longest:
            above -= times[number]
            if above < 0:
                return took
        raise ValueError("no requests")


@functools.cache
def _draws(rounds: int) -> list[Sequence[int]]:
    """All rounds as they were, and then so many drawn ones."""
    chance = random.Random(1)  # noqa: S311 -- the same draws each time
    return [range(rounds), *(chance.choices(range(rounds), k=rounds) for _ in range(DRAWS))]


def _interval(values: Sequence[float]) -> Interval:
    drawn = sorted(values[1:])
    low, high = (drawn[round(part * (len(drawn) - 1))] for part in (0.025, 0.975))
    return Interval(values[0], low, high)
