"""Watches memory between ticks: a crossing is seen when the kernel reports it, or within 50 ms.

Covers: when memory is near a threshold, which uses the kernel reports, whether a threshold was
crossed since the last tick.
Does not cover: deciding (``policy.eviction.node_pressure``); the pass that follows does.

Rules:
1. Near is less than a tenth of the capacity above a threshold; there memory is read every 50 ms,
   whether the kernel reports or not. A machine with plenty of memory pays nothing for it.
2. The kernel reports a use (v1) or stalls (pressure files): then memory is read, however far away
   the threshold was. The use at which a threshold is crossed moves with the inactive page cache,
   and is set again with each tick.
3. A report is no crossing: only a reading is.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator

from koordlet.host.counters import pressure
from koordlet.host.fs import root
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
    """Watches the memory of one machine."""

    def __init__(self, reader: pressure.PressureReader) -> None:
        self._reader = reader
        self._limits: tuple[thresholds.Threshold, ...] = ()
        #: The memory at the last tick: of the node, and of all pods.
        self._before: _Seen = (None, None)
        self.alarms: memory_alarms.Alarms | None = None

    def listen(self, host: root.HostRoot) -> int | None:
        """Have the kernel report from now on; a descriptor that becomes readable then.

        ``None`` where the kernel is not this machine's.
        """
        if not host.live:
            return None
        from koordlet.host.cgroup import memory_alarms  # noqa: PLC0415 -- after the first pass

        self.alarms = memory_alarms.Alarms(host)
        return self.alarms.handle

    def rings(self) -> bool:
        """Whether the kernel reported something."""
        return self.alarms is not None and self.alarms.heard()

    def close(self) -> None:
        """Give all descriptors back."""
        if self.alarms is not None:
            self.alarms.close()

    def tick(self, settings: object, seen: model.Reading) -> None:
        """Take what a tick has read, and the thresholds."""
        limits = settings.limits if isinstance(settings, node_pressure.Settings) else ()
        self._limits = tuple(limit for limit in limits if limit.signal in thresholds.MEMORY_SIGNALS)
        self._before = seen.root, seen.pods
        self._reader.watch_closely(near=self.near)
        if self.alarms is not None:
            self.alarms.set(self._levels())

    @property
    def near(self) -> bool:
        """Whether memory is read more often."""
        return any(
            available < wanted + _NEAR * capacity
            for available, wanted, capacity in self._compared(self._before)
        )

    def crossed(self, *, told: bool = False) -> bool:
        """Read a few small files: whether a threshold was crossed since the last tick."""
        if not self._limits or not (told or self.near):
            return False
        before = self._compared(self._before)
        now = self._compared(self._reader.memory())
        return any(
            was >= wanted > available
            for (was, wanted, _), (available, _, _) in zip(before, now, strict=False)
        )

    def _known(self, seen: _Seen) -> Iterator[tuple[thresholds.Threshold, model.Memory, int, int]]:
        """List each threshold whose memory is known, with what is available and the capacity."""
        for limit in self._limits:
            memory = seen[limit.signal == thresholds.ALLOCATABLE_MEMORY]
            if memory is not None and memory.available is not None:
                yield limit, memory, memory.available, memory.available + memory.working_set

    def _compared(self, seen: _Seen) -> list[tuple[int, int, int]]:
        """List available, wanted and total bytes of each threshold whose memory is known."""
        return [
            (available, limit.value.of(capacity), capacity)
            for limit, _, available, capacity in self._known(seen)
        ]

    def _levels(self) -> dict[str, int]:
        """Map each directory to the use at which its nearest uncrossed threshold is crossed."""
        levels: dict[str, int] = {}
        for limit, memory, _, capacity in self._known(self._before):
            directory = self._reader.directories[limit.signal == thresholds.ALLOCATABLE_MEMORY]
            level = capacity - limit.value.of(capacity) + memory.inactive_file
            if directory and level > memory.usage:
                levels[directory] = min(level, levels.get(directory, level))
        return levels
