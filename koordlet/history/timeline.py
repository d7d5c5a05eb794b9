"""Series by name over a fixed span of time, in memory of a fixed size. Pure; time is passed in.

Covers: a row of samples each period, series that come and go, means over the newest rows.
Does not cover: which series there are (``report.recorder``), the rows themselves (``rows``).

Rule: all memory is taken at the start. A new series without a free column gets the one of the
series that was sampled longest ago; where all were sampled in this row, the new one is left out.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping

from koordlet.history import rows, space

_NAN = math.nan


class Timeline:
    """``length`` rows, one each ``period`` seconds, of at most ``capacity`` series."""

    def __init__(self, period: float, length: int, capacity: int) -> None:
        self.period, self.length = period, length
        self._rows = rows.Rows(length, capacity)
        self._slots: dict[str, int] = {}
        #: By slot, when its series was sampled last.
        self._sampled = array("d", [-math.inf]) * capacity
        self._blank = [_NAN] * capacity
        #: Samples that found no column.
        self.dropped = 0

    @property
    def newest(self) -> float:
        """When the newest row was taken; minus infinity before the first."""
        return self._rows.newest

    def take(self, at: float, samples: Mapping[str, float]) -> None:
        """Add a row. A series that is not named in it is missing there."""
        row = self._blank[:]
        for name, value in samples.items():
            slot = self._slots.get(name)
            if slot is None:
                slot = self._assign(name, at)
                if slot is None:
                    self.dropped += 1
                    continue
            row[slot] = value
            self._sampled[slot] = at
        self._rows.append(at, self.period, row)

    def _assign(self, name: str, at: float) -> int | None:
        if len(self._slots) < len(self._blank):
            slot = len(self._slots)
        else:
            oldest = min(self._slots, key=lambda known: self._sampled[self._slots[known]])
            if self._sampled[self._slots[oldest]] >= at:
                return None
            slot = self._slots.pop(oldest)
            self._rows.clear(slot)
        self._slots[name] = slot
        return slot

    def names(self, after: float = -math.inf) -> tuple[str, ...]:
        """The series that were sampled after a moment."""
        return tuple(name for name, slot in self._slots.items() if self._sampled[slot] > after)

    def samples(self, names: Iterable[str], after: float = -math.inf) -> space.Samples:
        """The samples of some series after a moment, oldest first; unknown names are left out."""
        slots = {name: self._slots[name] for name in names if name in self._slots}
        at, span, columns = self._rows.saved(list(slots.values()), after)
        return space.Samples(at, span, dict(zip(slots, columns, strict=True)))

    def means(self, after: float) -> dict[str, float]:
        """The mean of each series since a moment; none of what was missing half of the time."""
        taken, _ = self._rows.tail(after)
        if not taken:
            return {}
        means = rows.means(taken)
        return {name: mean for name, slot in self._slots.items() if (mean := means[slot]) == mean}
