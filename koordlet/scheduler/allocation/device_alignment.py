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
from koordlet.scheduler.allocation.device_requests import DeviceRequest
from koordlet.scheduler.allocation.device_room import DeviceRefusal
from koordlet.scheduler.allocation.devices import GPU

SCOPED = "Insufficient NUMA Scoped Devices"
#: More than CPUs and memory together say of a set.
BEST = 500

#: Sets of NUMA nodes that are looked at; a machine of eight has fewer.
_TRIALS = 256
_UNTRIED = DeviceRefusal((SCOPED,), final=False)

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
        #: How many devices of each type are needed of NUMA nodes at least, and what each has free.
        self.needed: dict[str, int] = {}
        self.given: dict[int, Counter[str]] = {number: Counter() for number in self._every}
        for request in trial.requests:
            self._count(request)

    def _count(self, request: DeviceRequest) -> None:
        if not any(request.kind in several for several in self._by_node.values()):
            return
        numbers = [at.numa for device in self._trial.able(request) if (at := device.position)]
        self.needed[request.kind] = max(0, request.count - numbers.count(-1))
        for number in self._every.intersection(numbers):
            self.given[number][request.kind] = numbers.count(number)

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
            for smaller in range(self._least, size)
            for fewer in itertools.combinations(sorted(self._every), smaller)
        )

    @property
    def _least(self) -> int:
        """So many NUMA nodes are needed at least."""
        least = 1
        for kind, needed in self.needed.items():
            richest = sorted((free[kind] for free in self.given.values()), reverse=True)
            sums = itertools.accumulate(richest)
            least = max(least, 1 + sum(1 for had in sums if had < needed))
        return least

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
            beyond = len(self._known) >= _TRIALS
            known = self._known[nodes] = _UNTRIED if beyond else self._tried(nodes)
        return known

    def _tried(self, nodes: _Nodes) -> Answer:
        inside: Counter[str] = Counter()
        for number in nodes:
            inside += self._by_node[number]
        if any(0 < inside[each.kind] < each.count for each in self._trial.requests):
            return DeviceRefusal((SCOPED,), final=True)
        return self._trial.admit(nodes)
