"""What a ratio is, and when it fails.

Covers: interleaved repeats, the minimum of each side, quantiles, tries, the report.
Does not cover: what is measured (one module for each budget), in which order (``__main__``).

Rules:
1. Computation is process CPU time, the minimum of at least five repeats that alternate with the
   reference's: noise only ever adds. Fewer are enough where each slice of a repeat has a minimum,
   and where a ratio is half of its limit.
2. A gate fails when three tries out of three exceed the limit: two at once, and the third after all
   other gates, because three in succession are one neighbour's minute.
3. A measurement below the resolution of its clock is an error, not a pass.
4. A budget that is not held yet is a goal: what is measured is printed beside it, and a limit above
   it is held, so that it comes no worse.
5. A budget in CPU seconds holds at this machine's pace of the same minutes (``pace``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

REPEATS = 5
#: In succession; whoever is over its limit then has one more when all others are done.
TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One comparison."""

    name: str
    ours: float
    reference: float
    limit: float
    unit: str
    against: str
    #: The budget, where the limit is not it.
    goal: float | None = None

    @property
    def value(self) -> float:
        """Ours in units of the reference."""
        return self.ours / self.reference

    @property
    def ok(self) -> bool:
        """Within the budget."""
        return self.value <= self.limit

    def __str__(self) -> str:
        word = "ok  " if self.ok else "OVER"
        goal = "" if self.goal is None else f", goal {self.goal:g}"
        return (
            f"{word} {self.name}: {self.value:.2f} x {self.against} (limit {self.limit:g}{goal});"
            f" {self.ours:.4g} / {self.reference:.4g} {self.unit}"
        )


#: What one run measures.
Measured = Ratio | Iterable[Ratio]


def interleaved(
    ours: Callable[[], float], reference: Callable[[], float], repeats: int = REPEATS
) -> tuple[float, float]:
    """The minimum of each side, measured alternately."""
    pairs = [(ours(), reference()) for _ in range(repeats)]
    best = min(own for own, _ in pairs), min(other for _, other in pairs)
    if min(best) <= 0:
        msg = f"measured {best}: below the resolution of the clock"
        raise ValueError(msg)
    return best


def sliced(
    ours: Callable[[], Iterator[float]],
    reference: Callable[[], Iterator[float]],
    repeats: int = REPEATS,
) -> tuple[float, float]:
    """The sum of each side's slices, of each the minimum; both sides do theirs in turn.

    A neighbour who comes for a second slows some slices of some repeats, of either side alike.
    """
    runs = [list(zip(ours(), reference(), strict=True)) for _ in range(repeats)]
    slices = [
        [min(times) for times in zip(*pairs, strict=True)] for pairs in zip(*runs, strict=True)
    ]
    own, other = (math.fsum(side) for side in zip(*slices, strict=True))
    return own, other


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of them does not exceed: one that was really measured."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def hold(measure: Callable[[], Measured], say: Callable[[str], None], tries: int = TRIES) -> bool:
    """Up to so many tries; ``True`` as soon as one is within all its limits."""
    for attempt in range(1, tries + 1):
        measured, held = measure(), list[bool]()
        for ratio in (measured,) if isinstance(measured, Ratio) else measured:
            say(f"{ratio}" + (f"  (try {attempt})" if attempt > 1 else ""))
            held.append(ratio.ok)
        if held and all(held):
            return True
    return False


def verdict(names: Sequence[str], held: Callable[[str, int], bool]) -> list[str]:
    """Who failed: ``held`` is asked for all with some tries, and for the failed ones once more."""
    failed = [name for name in names if not held(name, TRIES)]
    return [name for name in failed if not held(name, 1)]
