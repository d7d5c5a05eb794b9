"""CPU time of groups, without reading those below a group that stands still.

Covers: the order of reads, which of them are left out, what stands for these.
Does not cover: descriptors and values (``lane``), which files are such sums (``files``).

The kernel charges CPU time to a group and to all groups above it (kernel/sched/cpuacct.c;
kernel/cgroup/rstat.c). Nothing of the kind holds for what else is counted: memory that one child
gives back and another takes leaves the sum as it was.

Rules:
1. A group is read before those below it. What is charged between the two reads is in the sum at
   the next read, so that the group below is read again, too.
2. Only groups without groups below are left out; the one above them is read each time.
3. None is left out longer than ``ROUND`` ticks: the file of v2 counts throttling as well, and a
   throttled group uses no CPU.
4. Where nearly all have to be read, it is some time until that is looked at again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

#: Ticks after which a group is read in any case, as ``cpu.stat`` of v1.
ROUND = 5
#: Ticks without a look after one in which fewer than an eighth was left out.
_RESTLESS, _WORTH = 10, 8

#: Descriptors and their slots.
Ready = tuple[list[int], list[int]]
Texts = list[bytes | None]
Read = Callable[[Sequence[int]], Texts]


class QuietGroups:
    """The groups of one file, and what they said."""

    def __init__(self, paths: Sequence[str]) -> None:
        #: By slot.
        self._paths = paths
        self._ready: Ready | None = None
        #: Descriptors of groups that are read each time, and of those below them.
        self._upper: list[int] = []
        self._lower: list[int] = []
        #: Of each of the latter: the place among the former of the group above it.
        self._above: list[int] = []
        self._in_order: Callable[[Texts], Sequence[bytes | None]] = tuple
        self._last: tuple[Texts, Texts] | None = None
        self._wait = 0

    def read(self, tick: int, ready: Ready, read: Read, *, fresh: bool = False) -> Texts:
        """What the files of these groups say, in the order of their slots; ``fresh``: all of them.

        The same ``ready`` again means the same open files, all of which said something.
        """
        if ready is not self._ready:
            self._arrange(ready)
        if self._wait or fresh:
            self._wait = max(self._wait - 1, 0)
            self._last = None  # or a counter would go back to what it said before
            return read(ready[0])
        upper = read(self._upper)
        if self._last is None:
            lower = read(self._lower)
        else:
            due = self._due(tick, upper, self._last[0])
            lower = self._last[1].copy()
            for place, text in zip(due, read([self._lower[at] for at in due]), strict=True):
                lower[place] = text
            if len(due) > len(lower) - len(lower) // _WORTH:
                self._wait = _RESTLESS
        self._last = upper, lower
        return list(self._in_order(upper + lower))

    def _due(self, tick: int, upper: Texts, before: Texts) -> list[int]:
        """Places of the groups to read: the one above moved, or a round is over."""
        moved = list(map(operator.ne, upper, before))
        return [
            place
            for place, above in enumerate(self._above)
            if moved[above] or (place + tick) % ROUND == 0
        ]

    def _arrange(self, ready: Ready) -> None:
        handles, slots = self._ready = ready
        self._last, self._wait = None, 0
        places = {self._paths[slot]: place for place, slot in enumerate(slots)}
        above = [places.get(path.rpartition("/")[0]) for path in places]
        parents = set(above)
        lower = [
            place for place, its in enumerate(above) if its is not None and place not in parents
        ]
        spared = set(lower)
        upper = [place for place in range(len(slots)) if place not in spared]
        self._upper = [handles[place] for place in upper]
        self._lower = [handles[place] for place in lower]
        at = {place: number for number, place in enumerate(upper)}
        self._above = [at[its] for place in lower if (its := above[place]) is not None]
        order = sorted(range(len(slots)), key=(upper + lower).__getitem__)
        self._in_order = operator.itemgetter(*order) if len(order) > 1 else tuple
