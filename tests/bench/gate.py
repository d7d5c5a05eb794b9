"""What a ratio is, and when it fails.

Covers: interleaved repeats, the minimum of each side, three tries, the report.
Does not cover: what is measured (one module for each budget).

Rules:
1. Computation is process CPU time, the minimum of at least five repeats that alternate with the
   reference's: noise only ever adds.
2. A gate fails when three tries out of three exceed the limit.
3. A measurement below the resolution of its clock is an error, not a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

REPEATS = 5
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One comparison."""

    name: str
    ours: float
    reference: float
    limit: float
    unit: str
    against: str

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
        return (
            f"{word} {self.name}: {self.value:.2f} x {self.against} (limit {self.limit:g});"
            f" {self.ours:.4g} / {self.reference:.4g} {self.unit}"
        )


def interleaved(
    ours: Callable[[], float], reference: Callable[[], float], repeats: int = REPEATS
) -> tuple[float, float]:
    """The minimum of each side, measured alternately."""
    pairs = [(ours(), reference()) for _ in range(repeats)]
    best = min(one for one, _ in pairs), min(other for _, other in pairs)
    if min(best) <= 0:
        msg = f"measured {best}: below the resolution of the clock"
        raise ValueError(msg)
    return best


def hold(measure: Callable[[], Ratio], say: Callable[[str], None]) -> bool:
    """Up to three tries; ``True`` as soon as one is within the limit."""
    for attempt in range(1, TRIES + 1):
        ratio = measure()
        say(f"{ratio}" + (f"  (try {attempt})" if attempt > 1 else ""))
        if ratio.ok:
            return True
    return False
