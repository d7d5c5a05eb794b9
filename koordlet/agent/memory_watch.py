"""Memory between ticks: a crossing is seen when the kernel tells of it, or within 50 ms.

Covers: when memory is near a threshold, which uses the kernel shall tell of, whether a threshold
was crossed since the last tick.
Does not cover: deciding (``policy.eviction.node_pressure``); the pass that follows does.

Rules:
1. Near is less than a tenth of the capacity above a threshold; there it is looked at every 50 ms,
   whether the kernel tells or not. A machine that has plenty pays nothing for it.
2. The kernel tells of a use (v1) or of stalls (pressure files): then it is looked at, however far
   away it was. The use that a threshold stands for moves with the inactive page cache, and is set
   anew with each tick.
3. Telling is no crossing: only a look is.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator

from koordlet.host.counters import pressure
from koordlet.model import pressure as model
from koordlet.model import thresholds
from koordlet.policy.eviction import node_pressure

if typing.TYPE_CHECKING:
    from koordlet.host.cgroup import memory_alarms

#: Part of the capacity above a threshold that counts as near.
_NEAR = 0.1

#: The memory that a signal is about, and which of the two it is.
_Seen = tuple[model.Memory | None, model.Memory | None]


class MemoryWatch:
    """Of one machine."""

    def __init__(self, reader: pressure.PressureReader) -> None:
        self._reader = reader
        self._limits: tuple[thresholds.Threshold, ...] = ()
        #: What was available at the last tick: to the node, and to all pods.
        self._before: _Seen = (None, None)
        #: What the kernel tells by itself, once somebody listens.
        self.alarms: memory_alarms.Alarms | None = None

    def tick(self, settings: object, seen: model.Reading) -> None:
        """What a tick has seen, and which thresholds count."""
        limits = settings.limits if isinstance(settings, node_pressure.Settings) else ()
        self._limits = tuple(one for one in limits if one.signal in thresholds.MEMORY_SIGNALS)
        self._before = seen.root, seen.pods
        self._reader.closely = self.near
        if self.alarms is not None:
            self.alarms.set(self._levels())

    @property
    def near(self) -> bool:
        """Whether memory is to be looked at more often."""
        return any(
            available < wanted + _NEAR * capacity
            for available, wanted, capacity in self._compared(self._before)
        )

    def crossed(self, *, told: bool = False) -> bool:
        """Whether a threshold was crossed since the last tick: a few small files are read."""
        if not self._limits or not (told or self.near):
            return False
        before = self._compared(self._before)
        now = self._compared(self._reader.memory())
        return any(
            was >= wanted > available
            for (was, wanted, _), (available, _, _) in zip(before, now, strict=False)
        )

    def _compared(self, seen: _Seen) -> list[tuple[int, int, int]]:
        """Available, threshold, capacity, of each threshold; nothing where it is not known."""
        found = []
        for one in self._limits:
            memory = seen[one.signal == thresholds.ALLOCATABLE_MEMORY]
            if memory is not None and memory.available is not None:
                capacity = memory.available + memory.working_set
                found.append((memory.available, one.value.of(capacity), capacity))
        return found

    def _levels(self) -> dict[str, int]:
        """Directory to the use at which its nearest threshold is crossed, of those that are not."""
        found: dict[str, int] = {}
        for directory, level in self._uses():
            found[directory] = min(level, found.get(directory, level))
        return found

    def _uses(self) -> Iterator[tuple[str, int]]:
        directories = self._reader.directories
        for one in self._limits:
            which = one.signal == thresholds.ALLOCATABLE_MEMORY
            memory, directory = self._before[which], directories[which]
            if memory is None or memory.available is None or not directory:
                continue
            capacity = memory.available + memory.working_set
            level = capacity - one.value.of(capacity) + memory.inactive_file
            if level > memory.usage:
                yield directory, level
