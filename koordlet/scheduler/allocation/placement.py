"""The CPUs and NUMA amounts that a pod class would get on one node, or why none.

Covers: the node's own conditions in the peer's order, amplified CPUs, the choice of NUMA nodes.
Does not cover: who wants what (``scheduler.plugins.numa``), choosing among the CPUs of a node
(``policy.cpu.allocation``), what NUMA nodes have left (``zones``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from koordlet.kubeapi import pod_annotations
from koordlet.model import cpuset, node_ratios
from koordlet.model.record import dataclass
from koordlet.policy.cpu import accumulator, allocation, numa_hints
from koordlet.scheduler.allocation import handover
from koordlet.scheduler.allocation.device_alignment import DeviceAlignment
from koordlet.scheduler.allocation.zones import Weights, Zones, times
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects import json_annotations, requests
from koordlet.scheduler.objects.machines import Machine
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import AllocatePolicy

INTEGER = "the requested CPUs must be integer"
_CONFLICT = "node(s) cpu bind policy conflicts with pod's required cpu bind policy"
_NUMA_CONFLICT = "node(s) NUMA Topology policy not match"
_AMPLIFIED = "Insufficient amplified cpu"
_UNALIGNED = "node(s) NUMA Topology affinity error"
_BAD_RATIO = "node(s) invalid CPU amplification ratio"

_APART = allocation.Refusal(_UNALIGNED)

Bind = accumulator.Bind


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """The CPU and NUMA requirements of a pod class."""

    #: Thousandths.
    cpu: int
    bound: bool
    #: ``None``: none is required.
    required: Bind | None
    preferred: Bind
    exclusive: accumulator.Exclusive
    numa: str
    #: It shares no NUMA node with who spans several.
    alone: bool
    others: Mapping[str, int]
    #: Resources and their weights where NUMA nodes are compared.
    weights: tuple[tuple[str, int], ...]

    @property
    def asks(self) -> bool:
        """Whether CPUs and NUMA nodes matter to the class at all."""
        return bool(self.cpu or self.others)


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """A node's machine, CPU and NUMA policies."""

    node: Node
    machine: Machine | None
    bind: Bind | None
    numa: str
    strategy: accumulator.Strategy
    #: How often its CPUs count; ``None`` where that cannot be read.
    ratio: float | None = 1.0

    @property
    def kept(self) -> cpuset.CPUSet:
        """CPUs that no pod may be bound to."""
        withheld = self.machine.withheld if self.machine is not None else cpuset.CPUSet()
        return withheld | self.node.reserved_cpus


def ratio(node: Node) -> float | None:
    """The CPU amplification ratio of a node; ``None`` where it cannot be read."""
    spelled = node.annotations.get(node_ratios.AMPLIFICATION)
    if spelled is None:
        return 1.0
    body = json_annotations.body(spelled)
    if not body and spelled.strip() != "{}":
        return None
    value = body.get("cpu", 1)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        return None
    return max(1.0, float(value))


def amplified(how_often: float, columns: Columns, row: int) -> int:
    """The CPU that is requested on a node where bound CPUs count more than once."""
    held = int(columns.requested[columns.resources[requests.CPU], row])
    bound = 1000 * sum(len(share.cpus) for share in handover.shares(columns, row))
    return held + times(bound, how_often) - bound if held >= bound else held


_Answer = allocation.Grant | allocation.Refusal


@dataclass(frozen=True, slots=True)
class PlacementTrial:
    """A class of pods on one node, as both stand now."""

    request: TopologyRequest
    offer: NodeOffer
    columns: Columns
    row: int
    #: The reservation that it would draw on there.
    draws: ReservationInfo | None = None
    #: What its devices say about NUMA nodes; ``None``: nothing.
    devices: DeviceAlignment | None = None

    @property
    def bound(self) -> bool:
        """Whether it gets CPUs by number."""
        return self.request.bound or (self.offer.bind is not None and self.request.cpu > 0)

    @property
    def numa(self) -> str:
        """The policy by which it gets NUMA nodes; empty: none."""
        return self.offer.numa or self.request.numa

    @property
    def asked(self) -> dict[str, int]:
        """The amounts that a pod takes; bound CPUs are amplified."""
        cpu = self.request.cpu
        cpu = times(cpu, self.offer.ratio or 1.0) if self.bound else cpu
        return {requests.CPU: cpu, **self.request.others}

    def zones(self, machine: Machine) -> Zones:
        """The amounts of the node's NUMA nodes now."""
        return Zones(
            *(machine, self.columns, self.row),
            kept=self.offer.kept,
            ratio=self.offer.ratio or 1.0,
            without=self.draws,
        )

    def admit(self) -> _Answer | None:
        """The CPUs and amounts of a class on a node; ``None``: none, and no objection.

        Who draws on a reservation for which CPUs or NUMA nodes were chosen gets those, or nothing.
        """
        answer, draws = self._admitted(), self.draws
        short = isinstance(answer, allocation.Refusal) and not answer.final
        if short and draws is not None and draws.spec.policy is not AllocatePolicy.DEFAULT:
            return allocation.Refusal(handover.NO_ROOM) if handover.rest(draws) else answer
        return answer

    def _admitted(self) -> _Answer | None:
        refusal, machine = self._unfit(), self.offer.machine
        if refusal is not None:
            return refusal
        if not self.bound and not self.numa:
            return None
        if machine is None or not machine.shape.cores:
            no_cpus = allocation.Refusal(allocation.NO_TOPOLOGY, final=True)
            return no_cpus if self.bound or self.offer.numa else None
        if self.numa and self.devices is not None and (lacking := self.devices.refusal):
            return allocation.Refusal.of(*lacking.reasons, final=lacking.final)
        return self._numbered(machine) if self.bound else self._zones_only(machine)

    def _unfit(self) -> allocation.Refusal | None:
        """The first objection before CPUs are looked at, in Koordinator's order."""
        request, offer = self.request, self.offer
        if offer.numa and request.numa and offer.numa != request.numa:
            return allocation.Refusal(_NUMA_CONFLICT, final=True)
        if self.bound and request.cpu % 1000:
            return allocation.Refusal(INTEGER, final=True)
        crowded = self._crowded() if request.cpu else None
        return crowded or (self._bad_binding() if self.bound else None)

    def _crowded(self) -> allocation.Refusal | None:
        """The objection where CPUs count more than once, and those of bound pods as often."""
        ratio, node = self.offer.ratio, self.offer.node
        if ratio is None:
            return allocation.Refusal(_BAD_RATIO, final=True)
        if ratio > 1:
            room = node.allocatable.get(requests.CPU, 0)
            room -= amplified(ratio, self.columns, self.row)
            if self.draws is not None:
                room += self.draws.held().get(requests.CPU, 0)
            if self.asked[requests.CPU] > room:
                return allocation.Refusal(_AMPLIFIED)
        return None

    def _bad_binding(self) -> allocation.Refusal | None:
        """The objection to how a pod is bound."""
        request, offer = self.request, self.offer
        if offer.machine is None or not offer.machine.shape.cores:
            return allocation.Refusal(allocation.NO_TOPOLOGY, final=True)
        if offer.bind and request.required and offer.bind is not request.required:
            return allocation.Refusal(_CONFLICT, final=True)
        return None

    def _numbered(self, machine: Machine) -> _Answer:
        """Allocate CPUs by number."""
        zones = self.zones(machine)
        left = handover.rest(self.draws) if self.draws is not None else None
        policy = numa_hints.NumaPolicy(self.numa)
        aligned = policy is not numa_hints.NumaPolicy.NONE
        zoned = {name for zone in zones.room.values() for name in zone if aligned}
        room = self.room(zones)
        request = allocation.Request(
            cpus=self.cpus(self.request.cpu // 1000),
            numa=policy,
            taste=self._taste(zones),
            others={name: n for name, n in self.request.others.items() if name in zoned},
            preferred=left.cpus if left is not None else cpuset.CPUSet(),
        )
        answer = room.allocate(request)
        if aligned and self.devices is not None and isinstance(answer, allocation.Refusal):
            alone = room.allocate(replace(request, taste=self._taste(zones, alone=True)))
            # CPUs could be had, but not where the devices are.
            return answer if isinstance(alone, allocation.Refusal) else _APART
        return answer

    def cpus(self, count: int) -> accumulator.Request:
        """So many CPUs, as a pod and its node want them chosen."""
        required = self.request.required or self.offer.bind
        return accumulator.Request(
            count=count,
            bind=required or self.request.preferred,
            required=required is not None,
            exclusive=self.request.exclusive,
            strategy=self.offer.strategy,
        )

    def room(self, zones: Zones) -> allocation.Node:
        """What is free on the node's known machine."""
        offer, draws, shape = self.offer, self.draws, zones.machine.shape
        kept = offer.kept
        left = handover.rest(draws) if draws is not None else None
        if draws is not None and left is not None and handover.exclusive(draws, requests.CPU):
            kept |= cpuset.CPUSet(shape.online) - left.cpus
        return allocation.Node(
            shape,
            reserved=kept,
            holdings=[
                allocation.Holding(
                    holder=share.pod.key,
                    cpus=share.cpus,
                    exclusive=accumulator.Exclusive(binding.exclusive or "None"),
                )
                for share in handover.shares(self.columns, self.row, draws)
                if share.cpus
                for binding in (pod_annotations.binding_of(share.pod.pod_class.annotations),)
            ],
            # In which each CPU counts once.
            zones={
                number: {
                    name: int(much / (offer.ratio or 1.0)) if name == requests.CPU else much
                    for name, much in part.items()
                }
                for number, part in zones.free().items()
            },
        )

    def _taste(self, zones: Zones, *, alone: bool = False) -> numa_hints.Taste:
        """The preference among NUMA nodes, without those that exclusiveness forbids.

        ``alone``: whatever devices say.
        """
        weights = Weights(self.offer.strategy is accumulator.Strategy.MOST, self.request.weights)
        score = functools.partial(zones.score, asked=self.asked, weights=weights)
        barred = zones.barred if self.request.alone else numa_hints.NONE.barred
        devices = self.devices
        if devices is None or alone:
            return numa_hints.Taste(score, barred)
        restricted = self.numa == numa_hints.NumaPolicy.RESTRICTED.value
        return numa_hints.Taste(
            score=lambda nodes: devices.score(nodes) + score(nodes),
            barred=barred,
            serves=lambda nodes: (
                devices.serves(nodes) and (not restricted or devices.preferred(nodes))
            ),
            needed=devices.needed,
            given=devices.given,
        )

    def _zones_only(self, machine: Machine) -> _Answer:
        """Amounts by NUMA node for a pod that is not bound to CPUs."""
        zones, wants, policy = self.zones(machine), self.asked, numa_hints.NumaPolicy(self.numa)
        free, far = zones.free(), machine.shape.far
        members = [numa_hints.Zone(node=number, free=part) for number, part in sorted(free.items())]
        choice = numa_hints.choose(members, wants, policy, taste=self._taste(zones), far=far)
        if choice is None:
            if numa_hints.fits(members, wants):
                return allocation.Refusal(_UNALIGNED)
            short = numa_hints.zoned(members, wants)
            return allocation.Refusal.of(*(f"Unsatisfied NUMA {name}" for name in short))
        nodes = tuple(free) if choice.nodes is None else choice.nodes
        parts = numa_hints.split(members, nodes, wants, {})
        if parts is None:
            short = numa_hints.short(members, nodes, wants)
            return allocation.Refusal.of(*(f"Insufficient NUMA {name}" for name in short))
        return allocation.Grant(cpus=cpuset.CPUSet(), parts=parts, nodes=choice.nodes)
