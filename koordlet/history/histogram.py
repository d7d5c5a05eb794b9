"""A histogram that forgets: weights halve with time, buckets grow with the value. Pure.

Covers: adding samples, percentiles, saving and reviving.
Does not cover: what is sampled, and when (``history.expectation``).

Bucket n begins at ``first * (growth ** n - 1) / (growth - 1)``: small values are told apart finely,
large ones coarsely, and 160 buckets reach from 25 thousandths of a core to a thousand cores.
Instead of making all weights smaller as time passes, new samples weigh more; before numbers grow
too large, everything is scaled down once.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

from koordlet.model.record import dataclass

#: Half-lives until weights are scaled down.
_SCALE_AFTER = 50.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The buckets of a histogram and how fast it forgets."""

    first: float
    most: float
    half_life: float
    growth: float = 1.05

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return self.bucket(self.most) + 2

    def bucket(self, value: float) -> int:
        """The bucket of a value; what is too large is in the last."""
        if value < self.first:
            return 0
        inside = min(value, self.most) * (self.growth - 1) / self.first + 1
        return int(math.log(inside) / math.log(self.growth))

    def start(self, bucket: int) -> float:
        """The lowest value of a bucket."""
        return float(self.first * (self.growth**bucket - 1) / (self.growth - 1))


#: As the peer predicts: up to 1024 cores and 2 TiB.
CPU = Shape(first=0.025, most=1024.0, half_life=12 * 3600.0)
MEMORY = Shape(first=5.0 * (1 << 20), most=float(1 << 41), half_life=24 * 3600.0)


class Histogram:
    """Weights by bucket. Times are seconds on any clock that only moves forward."""

    __slots__ = ("_from", "_shape", "_weights")

    def __init__(self, shape: Shape, now: float) -> None:
        self._shape = shape
        #: A sample of this moment weighs 1.
        self._from = now
        self._weights = array("d", bytes(8 * shape.buckets))

    def add(self, value: float, now: float) -> None:
        """Add a sample."""
        lives = (now - self._from) / self._shape.half_life
        if lives > _SCALE_AFTER:
            smaller = 2.0**-lives
            self._weights = array("d", [weight * smaller for weight in self._weights])
            self._from, lives = now, 0.0
        self._weights[self._shape.bucket(value)] += 2.0 ** max(lives, -_SCALE_AFTER)

    def percentile(self, part: float) -> float | None:
        """The upper end of the bucket in which so much of the weight is reached."""
        total = sum(self._weights)
        if total <= 0:
            return None
        reached = 0.0
        for bucket, weight in enumerate(self._weights):
            reached += weight
            if reached >= part * total:
                return self._shape.start(bucket + 1)
        return self._shape.most

    def save(self, now: float) -> dict[str, object]:
        """As plain data; the age is kept instead of the clock's time."""
        kept = {str(n): weight for n, weight in enumerate(self._weights) if weight > 0}
        return {"age": now - self._from, "weights": kept}

    @classmethod
    def revive(cls, shape: Shape, body: object, now: float, elapsed: float) -> Histogram:
        """The histogram that was saved ``elapsed`` seconds ago. ``ValueError`` for damage."""
        if not isinstance(body, Mapping) or not isinstance(body.get("weights"), Mapping):
            raise ValueError("not a histogram")
        age = number(body.get("age"))
        made = cls(shape, now - age - max(0.0, elapsed))
        for name, weight in body["weights"].items():
            bucket = int(name)
            if not 0 <= bucket < shape.buckets:
                raise ValueError(f"bucket {bucket} of {shape.buckets}")
            made._weights[bucket] = number(weight)
        return made


def number(value: object) -> float:
    """A saved weight or age; ``ValueError`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"not a number: {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"not a weight or an age: {value!r}")
    return float(value)
