"""A bounded series of (time, value).

Covers: appending, windows. Does not cover: which series exist (``history.series``).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator


class Ring:
    """The newest ``capacity`` samples, 16 bytes each, oldest overwritten first."""

    __slots__ = ("_at", "_count", "_next", "_value")

    def __init__(self, capacity: int) -> None:
        self._at = array("d", bytes(8 * capacity))
        self._value = array("d", bytes(8 * capacity))
        self._next = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, at: float, value: float) -> None:
        """Add a sample. One that is not newer than the last is dropped: clocks may stand still."""
        if self._count and at <= self._at[self._next - 1]:
            return
        self._at[self._next] = at
        self._value[self._next] = value
        self._next = (self._next + 1) % len(self._at)
        self._count = min(self._count + 1, len(self._at))

    def since(self, start: float) -> Iterator[tuple[float, float]]:
        """Samples at or after ``start``, newest first."""
        for back in range(1, self._count + 1):
            at = self._at[self._next - back]
            if at < start:
                return
            yield at, self._value[self._next - back]

    def last(self) -> tuple[float, float] | None:
        """The newest sample."""
        return (self._at[self._next - 1], self._value[self._next - 1]) if self._count else None
