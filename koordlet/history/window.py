"""What samples amount to: average, quantiles, maximum. Pure.

Covers: the values of one series in one window; the newest samples of one number, kept in order.
Does not cover: collecting them, ages (``history.rows``).

Rule: a window is reported when its samples stand for at least half of it.
"""

from __future__ import annotations

import bisect
import math
from array import array
from collections import deque

from koordlet.model.record import dataclass

#: The quantiles that reports name, as the peer does.
REPORTED = (0.5, 0.9, 0.95, 0.99)
#: Clocks are not exact: so much may be missing of the half.
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Window:
    """The samples of a window, sorted. There is at least one."""

    values: tuple[float, ...]
    #: For how many seconds the samples stand.
    covered: float

    @property
    def average(self) -> float:
        """The mean."""
        return sum(self.values) / len(self.values)

    def quantile(self, part: float) -> float:
        """The quantile, by the peer's rule: the value at ``int(n * part) - 1``, in 32-bit floats.

        So the 90th percentile of nine values is the eighth of them, and the median the fourth.
        """
        rank = int(_single(_single(len(self.values)) * _single(part)))
        return self.values[max(0, rank - 1)]


def make(values: list[float], covered: float, seconds: float) -> Window | None:
    """The window, or ``None`` where less than half of it is covered."""
    if not values or covered < seconds / 2 - _TOLERANCE:
        return None
    return Window(tuple(sorted(values)), covered)


def _single(value: float) -> float:
    """Rounded to 32 bits."""
    return array("f", [value])[0]


class Recent:
    """The last ``length`` samples. Adding one takes a microsecond, a quantile less."""

    def __init__(self, length: int) -> None:
        self._arrived: deque[float] = deque(maxlen=length)
        self._ordered: list[float] = []

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, value: float) -> None:
        """Take one; the oldest goes when there are enough."""
        if len(self._arrived) == self._arrived.maxlen:
            del self._ordered[bisect.bisect_left(self._ordered, self._arrived[0])]
        self._arrived.append(value)
        bisect.insort(self._ordered, value)

    def quantile(self, share: float) -> float | None:
        """The smallest sample that so many are not above (nearest rank); ``None`` without any."""
        if not self._ordered:
            return None
        return self._ordered[max(0, math.ceil(share * len(self._ordered)) - 1)]
