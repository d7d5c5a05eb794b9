"""The newest samples of one number, and their quantiles at any moment.

Covers: a bounded number of samples, kept in order. Pure. Does not cover: ages (``history.rows``).
"""

from __future__ import annotations

import bisect
import math
from collections import deque


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
