"""Memory, looked at between ticks while it is nearly short: a crossing is seen within 50 ms.

Covers: when memory is near a threshold, whether one was crossed since the last tick.
Does not cover: deciding (``policy.node_pressure``); the pass that follows does.

A machine that has plenty pays nothing for it. Near is less than a tenth of the capacity above a
threshold: that much is not taken within a tick without being seen in between.
"""

from __future__ import annotations

from koordlet.host import pressure
from koordlet.model import pressure as model
from koordlet.model import thresholds
from koordlet.policy import node_pressure

#: Part of the capacity above a threshold that counts as near.
_NEAR = 0.1


class MemoryWatch:
    """Of one machine."""

    def __init__(self, reader: pressure.Reader) -> None:
        self._reader = reader
        self._limits: tuple[thresholds.Threshold, ...] = ()
        #: What was available at the last tick.
        self._before: model.Memory | None = None

    def tick(self, settings: object, seen: model.Reading) -> None:
        """What a tick has seen, and which thresholds count."""
        limits = settings.limits if isinstance(settings, node_pressure.Settings) else ()
        self._limits = tuple(one for one in limits if one.signal == thresholds.MEMORY)
        self._before = seen.root

    @property
    def near(self) -> bool:
        """Whether memory is to be looked at more often."""
        return any(
            available < wanted + _NEAR * capacity
            for available, wanted, capacity in self._compared(self._before)
        )

    def crossed(self) -> bool:
        """Whether a threshold was crossed since the last tick: three small files are read."""
        if not self.near:
            return False
        before = self._compared(self._before)
        now = self._compared(self._reader.memory())
        return any(
            was >= wanted > available
            for (was, wanted, _), (available, _, _) in zip(before, now, strict=False)
        )

    def _compared(self, memory: model.Memory | None) -> list[tuple[int, int, int]]:
        """Available, threshold, capacity, of each threshold; nothing where it is not known."""
        if memory is None or memory.available is None:
            return []
        available = memory.available
        capacity = available + memory.working_set
        return [(available, one.value.of(capacity), capacity) for one in self._limits]
