"""The newest samples of many series that are taken together: one row for each moment.

Covers: appending a row, the samples of one series in a window. Pure; time is passed in.
Does not cover: which series there are (``history.space``), averages and quantiles (``window``).

A row is one block of memory, so taking 1 000 samples is one call, and one series is every n-th
cell. A cell has 4 bytes: seven digits. Times are kept once.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Mapping, Sequence
from itertools import compress
from math import isnan

_NAN = math.nan


class Rows:
    """``length`` rows of ``width`` cells, the oldest overwritten first. A missing cell is NaN."""

    __slots__ = ("_asked", "_at", "_cells", "_next", "_row", "_span", "length", "width")

    def __init__(self, length: int, width: int = 0) -> None:
        self.length = length
        self.width = width
        self._cells = array("f", [_NAN]) * (length * width)
        self._row = struct.Struct(f"{width}f")
        self._at = array("d", [-math.inf]) * length
        self._span = array("d", bytes(8 * length))
        self._next = 0
        #: The moment that was asked for last, where the rows after it begin, their seconds and the
        #: sum of them: a tick asks many series for one.
        self._asked: tuple[float, list[int], list[float], float] | None = None

    @property
    def newest(self) -> float:
        """When the newest row was taken; minus infinity before the first."""
        return self._at[self._next - 1]

    def append(self, at: float, span: float, row: Sequence[float]) -> None:
        """Add a row, which stands for the ``span`` seconds before it."""
        # In place, and native: what is too large for a cell is infinite, as in an array.
        self._row.pack_into(self._cells, self._next * self._row.size, *row)
        self._at[self._next] = at
        self._span[self._next] = span
        self._next = (self._next + 1) % self.length
        self._asked = None

    def samples(self, slot: int, after: float) -> tuple[list[float], float]:
        """The samples of a series after a moment, in no order, and the seconds they stand for."""
        if self._asked is None or self._asked[0] != after:
            chosen = [row for row, at in enumerate(self._at) if at > after]
            spans = [self._span[row] for row in chosen]
            self._asked = after, [row * self.width for row in chosen], spans, sum(spans)
        _, starts, spans, covered = self._asked
        cells = self._cells
        values = [cells[start + slot] for start in starts]
        known = [value == value for value in values]  # noqa: PLR0124 -- NaN differs from itself
        if all(known):
            return values, covered
        return list(compress(values, known)), sum(compress(spans, known))

    def tail(self, after: float) -> tuple[list[array[float]], float]:
        """The rows after a moment, and the seconds they stand for."""
        rows, covered = [], 0.0
        for position, at in enumerate(self._at):
            if at > after:
                start = position * self.width
                rows.append(self._cells[start : start + self.width])
                covered += self._span[position]
        return rows, covered

    def saved(
        self, slots: Sequence[int], after: float = -math.inf
    ) -> tuple[list[float], list[float], list[array[float]]]:
        """Oldest first: when rows were taken, for how long they stand, and each of some series."""
        known = sum(at > after for at in self._at)
        order = [(self._next - known + number) % self.length for number in range(known)]
        columns = [self._cells[slot :: self.width] for slot in slots]
        return (
            [self._at[row] for row in order],
            [self._span[row] for row in order],
            [array("f", [column[row] for row in order]) for column in columns],
        )

    def recall(
        self, at: Sequence[float], span: Sequence[float], columns: Mapping[int, array[float]]
    ) -> None:
        """Begin with rows that were saved, by slot; the oldest are left out where they are many."""
        known = min(len(at), self.length)
        first = len(at) - known
        self._at[:known], self._span[:known] = array("d", at[first:]), array("d", span[first:])
        for slot, column in columns.items():
            self._cells[slot : known * self.width : self.width] = column[first:]
        self._next = known % self.length
        self._asked = None

    def clear(self, slot: int) -> None:
        """The series begins anew."""
        self._cells[slot :: self.width] = array("f", [_NAN]) * self.length

    def resize(self, width: int) -> None:
        """More series, or fewer: those beyond are dropped."""
        kept, old = min(width, self.width), self._cells
        self._cells = array("f", [_NAN]) * (self.length * width)
        for row in range(self.length):
            self._cells[row * width : row * width + kept] = old[
                row * self.width : row * self.width + kept
            ]
        self.width = width
        self._row = struct.Struct(f"{width}f")
        self._asked = None

    def age(self, seconds: float) -> None:
        """Make everything older: the clock stood still for so long."""
        self._at = array("d", [at - seconds for at in self._at])
        self._asked = None


def means(taken: Sequence[array[float]]) -> list[float]:
    """The mean of each series over some rows.

    A series is missing where fewer than half of its samples are there.
    """
    sums = list(map(sum, zip(*taken, strict=True)))
    averages = [total / len(taken) for total in sums]
    for slot, total in enumerate(sums):
        if isnan(total):
            cells = [cell for row in taken if (cell := row[slot]) == cell]
            enough = bool(cells) and 2 * len(cells) >= len(taken)
            averages[slot] = sum(cells) / len(cells) if enough else _NAN
    return averages
