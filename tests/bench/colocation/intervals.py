"""From blocks to ratios with intervals, and to the gate's verdict. Pure; chance is seeded.

Covers: ratios to the LS-alone block beside each block, bootstrap intervals, the void rule.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.colocation.arms import Block

_DRAWS = 2000
#: LS-alone blocks that differ by more than this say that the machine was not quiet.
VOID = 1.30


@dataclass(frozen=True, slots=True)
class Interval:
    """A geometric mean and its 90 % bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Pair:
    """A block and the LS-alone block beside it."""

    alone: Block
    block: Block

    def ratio(self, name: str) -> float:
        """Of a quantile, to alone."""
        mine, other = getattr(self.block, name), getattr(self.alone, name)
        return float(mine / max(other, 1e-9))

    def share(self, cpus: int) -> float:
        """Best-effort CPU time of what was idle in the LS-alone block."""
        return self.block.be_cpus / max(cpus - self.alone.ls_cpus, 1e-9)


def interval(ratios: Sequence[float]) -> Interval:
    """Of positive numbers."""
    logs = [math.log(max(one, 1e-6)) for one in ratios]
    chance = random.Random(1)
    means = sorted(sum(chance.choices(logs, k=len(logs))) / len(logs) for _ in range(_DRAWS))
    low, high = means[int(0.05 * _DRAWS)], means[int(0.95 * _DRAWS) - 1]
    return Interval(*(math.exp(one) for one in (sum(logs) / len(logs), low, high)))


def void(pairs: Sequence[Pair]) -> float:
    """How far the LS-alone blocks are apart; more than ``VOID`` is a void run."""
    found = [one.alone.p99 for one in pairs]
    return max(found) / min(found)


def verdict(ours: Sequence[Pair], others: Mapping[str, Sequence[Pair]], cpus: int) -> list[str]:
    """Why the gate fails; empty where it does not."""
    problems: list[str] = []

    def p99(pairs: Sequence[Pair]) -> float:
        return interval([one.ratio("p99") for one in pairs]).mean

    best = min(others, key=lambda name: p99(others[name]))
    both = list(zip(ours, others[best], strict=True))
    latency = interval([a.ratio("p99") / b.ratio("p99") for a, b in both])
    work = interval([a.share(cpus) / max(b.share(cpus), 1e-6) for a, b in both])
    if latency.low > 1.10:
        problems.append(f"p99 is {latency} times that of {best}")
    if work.high < 0.90 and latency.mean >= 1:
        problems.append(f"best-effort work is {work} times that of {best}, at no better p99")
    return problems
