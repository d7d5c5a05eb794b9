"""Arrays over nodes, and the short memory of what changed in them.

Covers: names of the array types, a bounded log, tallies of pods per node, their sums per domain,
the two-level maximum. Does not cover: what is counted (``columns``), why (the plugins).
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]

T = TypeVar("T")

#: Entries that a log keeps; who lags further behind builds anew, which is cheaper by then.
MEMORY = 4096
#: Nodes in one block of the two-level maximum: near the root of 100 000.
BLOCK = 256


def compact(values: Ints) -> npt.NDArray[np.integer[Any]]:
    """The same numbers in the smallest type that has them all: for what is kept and seldom read."""
    # The largest is as far from nothing as its complement, which makes the type one with a sign.
    least = min(values.min(initial=-1), ~values.max(initial=0))
    return values.astype(np.min_scalar_type(least))


def distinct(numbers: Rows) -> Rows:
    """The distinct ones in order; none is negative.

    ``np.unique`` loads numpy's masked arrays: 14 ms and 1.6 MB for nothing.
    """
    return np.flatnonzero(np.bincount(numbers))


class ChangeLog(Generic[T]):
    """A bounded log of changes; the oldest are forgotten."""

    __slots__ = ("base", "entries")

    def __init__(self) -> None:
        self.base = 0
        self.entries: list[T] = []

    @property
    def end(self) -> int:
        """The position behind the newest entry."""
        return self.base + len(self.entries)

    def append(self, entry: T) -> None:
        """Append an entry."""
        self.entries.append(entry)
        if len(self.entries) > 2 * MEMORY:
            self.base += MEMORY
            del self.entries[:MEMORY]

    def forget(self) -> None:
        """Everything may have changed: nobody goes on from a position before this."""
        self.base = self.end + 1
        self.entries.clear()

    def since(self, position: int) -> list[T] | None:
        """Everything from a position on; ``None`` where some of it is forgotten."""
        return self.entries[position - self.base :] if position >= self.base else None


class Tally:
    """How many pods of one class are on each node."""

    __slots__ = ("counts", "log", "total")

    def __init__(self, size: int) -> None:
        self.counts: Ints = np.zeros(size, np.int64)
        self.log: ChangeLog[tuple[int, int]] = ChangeLog()
        self.total = 0

    def add(self, row: int, change: int) -> None:
        """Count a pod that was added to a node, or removed."""
        if row >= self.counts.size:
            self.counts = np.concatenate((self.counts, np.zeros(row + 1, np.int64)))
        self.counts[row] += change
        self.total += change
        self.log.append((row, change))

    def upto(self, size: int) -> Ints:
        """The counts of the first ``size`` nodes."""
        if self.counts.size < size:
            grown = np.zeros(2 * size, np.int64)
            grown[: self.counts.size] = self.counts
            self.counts = grown
        return self.counts[:size]


class DomainSums:
    """A tally summed over the domains of one topology key; catches up when it is asked.

    ``domains`` has -1 for nodes without the key: they index the last slot, which stays zero.
    """

    __slots__ = ("_at", "_eligible", "_tally", "_totals", "domains")

    def __init__(self, tally: Tally, domains: Rows, size: int, eligible: Bools | None) -> None:
        self._tally = tally
        self.domains = domains
        self._eligible = eligible
        self._totals: Ints = np.zeros(size + 1, np.int64)
        self._build()

    def _build(self) -> None:
        chosen = self.domains >= 0
        if self._eligible is not None:
            chosen &= self._eligible
        counts = self._tally.upto(self.domains.size)
        summed = np.bincount(
            self.domains[chosen], weights=counts[chosen], minlength=self._totals.size
        )
        self._totals = summed.astype(np.int64)
        self._at = self._tally.log.end

    def totals(self) -> Ints:
        """Pods in each domain, and a zero behind them."""
        log = self._tally.log
        if self._at != log.end:
            news = log.since(self._at)
            if news is None:
                self._build()
            else:
                for row, change in news:
                    domain = self.domains[row]
                    if domain >= 0 and (self._eligible is None or self._eligible[row]):
                        self._totals[domain] += change
                self._at = log.end
        return self._totals


class Best:
    """The largest of many values, found again cheaply after a few have changed; lowest row wins."""

    __slots__ = ("_blocks", "_tops", "values")

    def __init__(self, values: Ints) -> None:
        blocks = max(1, -(-values.size // BLOCK))
        padded: Ints = np.full(blocks * BLOCK, -1, np.int64)
        #: To read; ``put`` and ``update`` change them.
        self.values = padded[: values.size]
        self.values[:] = values
        self._blocks = padded.reshape(blocks, BLOCK)
        self._tops: Ints = self._blocks.max(axis=1)

    def update(self, rows: Rows, values: Ints) -> None:
        """Set the values of some rows."""
        self.values[rows] = values
        blocks = distinct(rows // BLOCK)
        self._tops[blocks] = self._blocks[blocks].max(axis=1)

    def put(self, row: int, value: int) -> None:
        """Set the value of one row."""
        block = row // BLOCK
        before, top = self.values[row], self._tops[block]
        self.values[row] = value
        if value >= top:
            self._tops[block] = value
        elif before == top:
            self._tops[block] = self._blocks[block].max()

    def row(self) -> int:
        """The lowest row of the largest value; -1 where all are negative."""
        block = int(self._tops.argmax())
        if self._tops[block] < 0:
            return -1
        return block * BLOCK + int(self._blocks[block].argmax())
