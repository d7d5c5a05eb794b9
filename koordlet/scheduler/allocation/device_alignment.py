"""The NUMA nodes among which a pod's devices are, for who chooses NUMA nodes for the whole pod.

Covers: whether devices can be had on a set of NUMA nodes, and how good such a set is. Does not
cover: choosing the set (``policy.cpu.numa_hints``), choosing devices (``device_choice``).

A set is as good as the fewest NUMA nodes that would do; beside that it counts whether the pod gets
the GPUs that it would get if all nodes were open to it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

from koordlet.scheduler.allocation.device_choice import Answer, DeviceTrial
from koordlet.scheduler.allocation.device_room import DeviceRefusal
from koordlet.scheduler.allocation.devices import GPU

SCOPED = "Insufficient NUMA Scoped Devices"
#: More than CPUs and memory together say of a set.
BEST = 500

_Nodes = frozenset[int]


class DeviceAlignment:
    """One pod on one node."""

    def __init__(self, trial: DeviceTrial) -> None:
        self._trial = trial
        self._by_node: dict[int, Counter[str]] = {}
        for device in trial.devices.several:
            if device.position is not None and device.position.numa >= 0:
                self._by_node.setdefault(device.position.numa, Counter())[device.kind] += 1
        self._every: _Nodes = frozenset(self._by_node)
        self._known: dict[_Nodes, Answer] = {}

    @property
    def refusal(self) -> DeviceRefusal | None:
        """Why the pod cannot have its devices, whatever NUMA nodes it gets."""
        answer = self._on(self._every)
        return answer if isinstance(answer, DeviceRefusal) else None

    def serves(self, nodes: Iterable[int]) -> bool:
        """Whether the devices can be had on these NUMA nodes."""
        return not isinstance(self._on(self._every.intersection(nodes)), DeviceRefusal)

    def preferred(self, nodes: Iterable[int]) -> bool:
        """Whether no fewer NUMA nodes would do."""
        size = len(self._every.intersection(nodes))
        return not any(
            self.serves(fewer)
            for smaller in range(1, size)
            for fewer in itertools.combinations(sorted(self._every), smaller)
        )

    def score(self, nodes: Iterable[int]) -> int:
        """How good the devices on these NUMA nodes are."""
        mine, best = self._gpus(self._every.intersection(nodes)), self._gpus(self._every)
        return BEST if mine == best else 0

    def _gpus(self, nodes: _Nodes) -> frozenset[int]:
        answer = self._on(nodes)
        parts = () if isinstance(answer, DeviceRefusal) else answer
        return frozenset(part.minor for part in parts if part.kind == GPU)

    def _on(self, nodes: _Nodes) -> Answer:
        known = self._known.get(nodes)
        if known is None:
            known = self._known[nodes] = self._tried(nodes)
        return known

    def _tried(self, nodes: _Nodes) -> Answer:
        inside: Counter[str] = Counter()
        for number in nodes:
            inside += self._by_node[number]
        if any(0 < inside[each.kind] < each.count for each in self._trial.requests):
            return DeviceRefusal((SCOPED,), final=True)
        return self._trial.admit(nodes)
