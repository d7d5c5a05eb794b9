"""The NUMA nodes of one node at one moment: capacity, free amounts, pods.

Covers: amounts with amplified CPUs, which sets of NUMA nodes are the better ones, which are barred.
Does not cover: choosing a set (``policy.cpu.numa_hints``), who holds what (``handover``).

Rules:
1. A NUMA node has what its node's agent says, without the CPUs that are kept; where CPUs count more
   than once, so do its.
2. Bound CPUs count where they are, whatever else was written of them.
3. A NUMA node is *single* with pods that have no other, *shared* as soon as somebody there has
   another one, too. Who insists on being alone spans no single ones, and does not sit on a shared
   one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from koordlet.model import cpuset, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import handover
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.machines import Machine
from koordlet.scheduler.reservation.info import ReservationInfo

Amounts = Mapping[str, int]
_Parts = dict[int, dict[str, int]]
_BEST = 100


@dataclass(frozen=True, slots=True)
class Weights:
    """How full NUMA nodes shall be, and which resources count how much."""

    most: bool
    resources: tuple[tuple[str, int], ...]


def times(much: int, ratio: float) -> int:
    """An amount that counts so often, rounded up."""
    return math.ceil(much * ratio)


class Zones:
    """Amounts by NUMA node; ``without`` leaves out what is left in a reservation."""

    def __init__(
        self,
        machine: Machine,
        columns: Columns,
        row: int,
        *,
        kept: cpuset.CPUSet,
        ratio: float,
        without: ReservationInfo | None = None,
    ) -> None:
        self.machine = machine
        self._ratio = ratio
        self._draws = without
        self.room: _Parts = {number: dict(zone) for number, zone in machine.zones.items()}
        for number, zone in self.room.items():
            if requests.CPU in zone:
                inside = machine.shape.nodes.get(number, 0) & kept.bits
                left = max(0, zone[requests.CPU] - 1000 * inside.bit_count())
                zone[requests.CPU] = times(left, ratio)
        self.held: _Parts = {number: {} for number in self.room}
        #: CPU of those who are bound to CPUs.
        self._bound: dict[int, int] = {}
        self._single: set[int] = set()
        self._shared: set[int] = set()
        for share in handover.shares(columns, row, without):
            self._add(dict(self._amounts(share)))
            for number, bits in machine.shape.nodes.items():
                cpus = times(1000 * (share.cpus.bits & bits).bit_count(), ratio)
                self._bound[number] = self._bound.get(number, 0) + cpus

    def _amounts(self, share: handover.ChosenShare) -> Iterator[tuple[int, Amounts]]:
        """What somebody has of each NUMA node where he has something."""
        for number in self.machine.shape.nodes.keys() | share.parts.keys():
            part = dict(share.parts.get(number, {}))
            cpus = share.cpus.bits & self.machine.shape.nodes.get(number, 0)
            if cpus:
                part[requests.CPU] = times(1000 * cpus.bit_count(), self._ratio)
            if part:
                yield number, part

    def _add(self, parts: Mapping[int, Amounts]) -> None:
        (self._shared if len(parts) > 1 else self._single).update(parts)
        for number, part in parts.items():
            self.held[number] = resources.total((self.held.get(number, {}), part))

    def free(self) -> _Parts:
        """What is left of each; only what a reservation keeps where it gives nothing else."""
        free = {
            number: {
                name: max(0, much - self.held[number].get(name, 0)) for name, much in zone.items()
            }
            for number, zone in self.room.items()
        }
        mine = handover.rest(self._draws) if self._draws is not None else None
        if self._draws is not None and mine is not None and mine.parts:
            inside = dict(self._amounts(mine))
            for number, zone in free.items():
                for name in zone:
                    if handover.exclusive(self._draws, name):
                        zone[name] = min(zone[name], inside.get(number, {}).get(name, 0))
        return free

    def barred(self, nodes: Sequence[int]) -> bool:
        """Whether who insists on being alone may not have such a set."""
        if len(nodes) > 1:
            return any(node in self._single and node not in self._shared for node in nodes)
        return nodes[0] in self._shared

    def score(
        self, nodes: Sequence[int], asked: Amounts, weights: Weights, *, bound: bool = False
    ) -> int:
        """How good a set would be with the pod there, from 0 to 100.

        For who is bound to CPUs, those count that somebody is bound to; time is no matter to him.
        """
        held = _sum(self.held, nodes)
        if bound:
            held[requests.CPU] = sum(self._bound.get(node, 0) for node in nodes)
        return worth(_sum(self.room, nodes), held, asked, weights)


def _sum(parts: Mapping[int, Amounts], nodes: Sequence[int]) -> dict[str, int]:
    return resources.total(parts.get(node, {}) for node in nodes)


def worth(room: Amounts, held: Amounts, asked: Amounts, weights: Weights) -> int:
    """What is free, or in use, with the pod there: the mean of the resources that are there."""
    total = counted = 0
    for name, weight in weights.resources:
        whole = room.get(name, 0)
        if whole > 0:
            wanted = held.get(name, 0) + asked.get(name, 0)
            part = min(wanted, whole) if weights.most else max(whole - wanted, 0)
            total += weight * (part * _BEST // whole)
            counted += weight
    return total // counted if counted else 0
