"""NodeNUMAResource: concrete CPUs and NUMA nodes, decided here by the allocator of the nodes.

Covers: who gets CPUs of his own, which nodes can give them, which ones they are, amplified CPUs.
Does not cover: choosing among the CPUs of a node (``policy.cpu_allocation``), what a node's machine
is (``machines``).

Rules:
1. Bound to CPUs is who is labelled LSE or LSR, is production, and asks for whole CPUs; on a node
   with a bind policy of its own, everybody who asks for CPU.
2. What pods hold follows from the pods on the node: the CPUs that were written to them, or that
   they were given when they were assumed. There is no other book, so nothing in it can be stale.
   What was chosen for a reservation is handed to its owners (``handover``).
3. A node passes only if the CPUs could be taken at this moment: what is then prepared cannot fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from koordlet.model import cpuset
from koordlet.policy import cpu_accumulator, cpu_allocation, numa_hints
from koordlet.scheduler import handover, peernames, requests, wire
from koordlet.scheduler.columns import Columns
from koordlet.scheduler.framework import Filter, Kind, Plugin, RefusedError, Score, Verdict
from koordlet.scheduler.happenings import What
from koordlet.scheduler.machines import Machine
from koordlet.scheduler.nodes import Node
from koordlet.scheduler.plugins import resources
from koordlet.scheduler.pods import Pod, PodClass
from koordlet.scheduler.reservation.held import Held
from koordlet.scheduler.reservation.spec import Policy
from koordlet.scheduler.vectors import Ints, Rows
from koordlet.scheduler.wire import BadObjectError, Body

INTEGER = "the requested CPUs must be integer"
_CONFLICT = "node(s) cpu bind policy conflicts with pod's required cpu bind policy"
_NUMA_CONFLICT = "node(s) NUMA Topology policy not match"
_AMPLIFIED = "Insufficient amplified cpu"
_BAD_RATIO = "node(s) invalid CPU amplification ratio"
_BINDS = {"FullPCPUs", "SpreadByPCPUs"}
_NUMA = {"BestEffort", "Restricted", "SingleNUMANode"}

Bind = cpu_accumulator.Bind


@dataclass(frozen=True, slots=True)
class Wish:
    """What a class wants of CPUs and NUMA nodes."""

    #: Thousandths.
    cpu: int
    bound: bool
    #: ``None``: none is required.
    required: Bind | None
    preferred: Bind
    exclusive: cpu_accumulator.Exclusive
    numa: str
    others: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Place:
    """What a node says about the same."""

    node: Node
    machine: Machine | None
    bind: Bind | None
    numa: str
    strategy: cpu_accumulator.Strategy


class NodeNUMAResource(Plugin):
    """Which node has the CPUs, and which CPUs they are."""

    name = "NodeNUMAResource"
    listens = What.NODE | What.NODE_FEED | What.POD_GONE

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        #: By name of the node; given by whoever reads the objects.
        self.machines: dict[str, Machine] = {}
        default = wire.text(args, "defaultCPUBindPolicy") or "FullPCPUs"
        if default not in _BINDS:
            raise BadObjectError(f"defaultCPUBindPolicy {default!r} is unknown")
        self._default = default
        kind = wire.text(wire.mapping(args, "numaScoringStrategy"), "type")
        self._most = kind == "MostAllocated"
        strategy = wire.mapping(args, "scoringStrategy")
        self._full = wire.text(strategy, "type", "LeastAllocated") == "MostAllocated"
        self._resources = resources.weighted(wire.bodies(strategy, "resources"))
        self._columns: Columns | None = None
        self._asked: tuple[PodClass, Wish] | None = None

    def filter(self, sort: PodClass, columns: Columns) -> Filter | None:
        self._columns = columns
        wish = self.wish(sort)
        if _adopts(sort):
            return None
        if wish.bound and wish.cpu % 1000:
            raise RefusedError(INTEGER)
        return Placeable(self, sort, columns) if self._concerned(wish, columns) else None

    def score(self, sort: PodClass, columns: Columns) -> Score | None:
        if not self._concerned(self.wish(sort), columns):
            return None
        held = resources.Chosen(columns, sort.requests.real, self._resources, nonzero=False)
        return resources.Most(held) if self._full else resources.Least(held)

    def _concerned(self, wish: Wish, columns: Columns) -> bool:
        """Whether anything of this matters to a class on any node."""
        if not wish.cpu and not wish.others:
            return False
        if wish.bound or wish.numa:
            return True
        labelled = (peernames.BIND_POLICY, peernames.NUMA_POLICY)
        return any(bool((columns.index.label(key).ids >= 0).any()) for key in labelled) or any(
            one.whole_cores or one.numa_policy for one in self.machines.values()
        )

    def wish(self, sort: PodClass) -> Wish:
        """What a class wants; remembered for the class that was asked last."""
        if self._asked is None or self._asked[0] is not sort:
            self._asked = sort, self._wish(sort)
        return self._asked[1]

    def _wish(self, sort: PodClass) -> Wish:
        spec = _object(sort.annotations.get(peernames.RESOURCE_SPEC))
        numa = _object(sort.annotations.get(peernames.NUMA_SPEC)).get("numaTopologyPolicy")
        asked = sort.requests.real
        wanted = spec.get("requiredCPUBindPolicy")
        liked = spec.get("preferredCPUBindPolicy")
        named = next((one for one in (wanted, liked) if one and one != "Default"), self._default)
        cpu = asked.get(requests.CPU, 0)
        exclusive = str(spec.get("preferredCPUExclusivePolicy") or "None")
        known = {one.value for one in cpu_accumulator.Exclusive}
        return Wish(
            cpu=cpu,
            bound=_exclusive(sort) and named in _BINDS and cpu > 0,
            required=Bind(named) if wanted and named in _BINDS else None,
            preferred=Bind(named) if named in _BINDS else Bind.FULL_CORES,
            exclusive=cpu_accumulator.Exclusive(exclusive if exclusive in known else "None"),
            numa=str(numa) if numa in _NUMA else "",
            others={key: one for key, one in asked.items() if key != requests.CPU and one > 0},
        )

    def place(self, node: Node) -> Place:
        """What a node says."""
        machine = self.machines.get(node.name)
        label = node.labels.get(peernames.BIND_POLICY, "")
        bind = None
        if label == "FullPCPUsOnly" or (machine is not None and machine.whole_cores):
            bind = Bind.FULL_CORES
        elif label == "SpreadByPCPUs":
            bind = Bind.SPREAD
        numa = node.labels.get(peernames.NUMA_POLICY, "")
        if not numa and machine is not None:
            numa = machine.numa_policy
        named = node.labels.get(peernames.NUMA_STRATEGY, "MostAllocated" if self._most else "")
        most = named == "MostAllocated"
        strategy = cpu_accumulator.Strategy.MOST if most else cpu_accumulator.Strategy.LEAST
        return Place(node, machine, bind, numa if numa in _NUMA else "", strategy)

    def prepare(self, pod: Pod, node: str) -> None:
        """Take the CPUs; the pod carries them from here on."""
        columns = self._columns
        row = columns.rows[node] if columns is not None else -1
        chosen = columns.nodes[row] if columns is not None else None
        if columns is None or chosen is None or _adopts(pod.sort):
            return
        wish, place = self.wish(pod.sort), self.place(chosen)
        draws = columns.keeper.find(pod.draws_on) if columns.keeper and pod.draws_on else None
        found = admit(wish, place, columns, row, draws)
        if isinstance(found, cpu_allocation.Refusal):
            raise RefusedError(found.why, resolvable=not found.final)
        if found is not None:
            pod.cpus = found.cpus or None
            pod.parts = found.parts if (wish.numa or place.numa) else {}

    def unreserve(self, pod: Pod, node: str) -> None:  # noqa: ARG002
        pod.cpus, pod.parts = None, {}

    def marks(self, pod: Pod, node: str) -> Mapping[str, str]:  # noqa: ARG002
        status = spelled(pod)
        return {peernames.RESOURCE_STATUS: json.dumps(status)} if status else {}


class Placeable(Filter):
    """One code for each reason that was ever given."""

    kind = Kind.LOAD

    def __init__(self, plugin: NodeNUMAResource, sort: PodClass, columns: Columns) -> None:
        self._plugin, self._sort, self._columns = plugin, sort, columns
        self._wish = plugin.wish(sort)
        self._refusals: list[cpu_allocation.Refusal] = []

    def codes(self, rows: Rows) -> Ints:
        return np.array([self._code(row) for row in rows.tolist()], np.int64)

    def allows(self, row: int) -> bool:
        return self._code(row) == 0

    def _code(self, row: int) -> int:
        node = self._columns.nodes[row]
        if node is None:
            return 0
        draws = handover.drawn(self._sort, row)
        found = admit(self._wish, self._plugin.place(node), self._columns, row, draws)
        if not isinstance(found, cpu_allocation.Refusal):
            return 0
        if found not in self._refusals:
            self._refusals.append(found)
        return 1 + self._refusals.index(found)

    def verdict(self, code: int) -> Verdict:
        refusal = self._refusals[code - 1]
        return Verdict((refusal.why,), resolvable=not refusal.final)


def admit(
    wish: Wish, place: Place, columns: Columns, row: int, draws: Held | None = None
) -> cpu_allocation.Grant | cpu_allocation.Refusal | None:
    """What a class would get on a node; ``None``: nothing of its own, and nothing against it.

    Who draws on a reservation for which CPUs or NUMA nodes were chosen gets those, or nothing.
    """
    found = _admit(wish, place, columns, row, draws)
    short = isinstance(found, cpu_allocation.Refusal) and not found.final
    if short and draws is not None and draws.spec.policy is not Policy.DEFAULT:
        return cpu_allocation.Refusal(handover.NO_ROOM) if handover.rest(draws) else found
    return found


def _admit(
    wish: Wish, place: Place, columns: Columns, row: int, draws: Held | None
) -> cpu_allocation.Grant | cpu_allocation.Refusal | None:
    numa = place.numa or wish.numa
    bound = wish.bound or (place.bind is not None and wish.cpu > 0)
    refusal = _unfit(wish, place, columns, row, bound=bound)
    if refusal is not None:
        return refusal
    if not bound and not numa:
        return None
    if place.machine is None or not place.machine.shape.cores:
        no_cpus = cpu_allocation.Refusal(cpu_allocation.NO_TOPOLOGY, final=True)
        return no_cpus if bound or place.numa else None
    if not bound:
        return _zones_only(wish, place.machine, numa, columns, row, draws)
    node = room(place, columns, row, draws)
    left = handover.rest(draws) if draws is not None else None
    required = wish.required or place.bind
    asked = cpu_accumulator.Request(
        count=wish.cpu // 1000,
        bind=required or wish.preferred,
        required=required is not None,
        exclusive=wish.exclusive,
        strategy=place.strategy,
    )
    zoned = {name for zone in place.machine.zones.values() for name in zone}
    others = {name: much for name, much in wish.others.items() if name in zoned}
    policy = numa_hints.Policy(numa)
    if policy is numa_hints.Policy.NONE:
        others = {}
    request = cpu_allocation.Request(
        cpus=asked,
        numa=policy,
        others=others,
        preferred=left.cpus if left is not None else cpuset.CPUSet(),
    )
    return node.allocate(request)


def _unfit(  # noqa: PLR0911 -- one for each reason
    wish: Wish, place: Place, columns: Columns, row: int, *, bound: bool
) -> cpu_allocation.Refusal | None:
    """What is wrong before any CPU is looked at, in the peer's order."""
    if place.numa and wish.numa and place.numa != wish.numa:
        return cpu_allocation.Refusal(_NUMA_CONFLICT, final=True)
    if not bound:
        return None
    if wish.cpu % 1000:
        return cpu_allocation.Refusal(INTEGER, final=True)
    amplified = _amplified(wish, place.node, columns, row)
    if amplified is not None:
        return amplified
    if place.machine is None or not place.machine.shape.cores:
        return cpu_allocation.Refusal(cpu_allocation.NO_TOPOLOGY, final=True)
    if place.bind is not None and wish.required is not None and place.bind is not wish.required:
        return cpu_allocation.Refusal(_CONFLICT, final=True)
    return None


def _amplified(wish: Wish, node: Node, columns: Columns, row: int) -> cpu_allocation.Refusal | None:
    """Whether a bound pod fits where CPUs count more than once; it counts as often as they do."""
    spelled_ratio = node.annotations.get(peernames.RATIO)
    if spelled_ratio is None:
        return None
    ratio = _object(spelled_ratio).get("cpu", 1)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < 1e6:
        return cpu_allocation.Refusal(_BAD_RATIO, final=True)
    if ratio <= 1:
        return None
    held = int(columns.requested[columns.resources[requests.CPU], row])
    bound = 1000 * sum(len(one.cpus) for one in handover.shares(columns, row))
    if held >= bound:
        held += _times(bound, ratio) - bound
    if _times(wish.cpu, ratio) > node.allocatable.get(requests.CPU, 0) - held:
        return cpu_allocation.Refusal(_AMPLIFIED)
    return None


def _times(much: int, ratio: float) -> int:
    return -int(-much * ratio // 1)


def room(place: Place, columns: Columns, row: int, draws: Held | None) -> cpu_allocation.Node:
    """What can be taken of a node's machine now; only where it is known."""
    assert place.machine is not None  # noqa: S101 -- asked only where there is one
    kept = place.machine.withheld | place.node.reserved_cpus
    left = handover.rest(draws) if draws is not None else None
    if draws is not None and left is not None and handover.exclusive(draws, requests.CPU):
        kept |= cpuset.CPUSet(place.machine.shape.online) - left.cpus
    return cpu_allocation.Node(
        place.machine.shape,
        reserved=kept,
        holdings=[
            cpu_allocation.Holding(
                holder=one.pod.key, cpus=one.cpus, exclusive=_exclusive_of(one.pod.sort)
            )
            for one in handover.shares(columns, row, draws)
            if one.cpus
        ],
        zones=handover.zones(place.machine, columns, row, draws, cpu=False),
    )


def _zones_only(  # noqa: PLR0917 -- as _node
    wish: Wish, machine: Machine, numa: str, columns: Columns, row: int, draws: Held | None
) -> cpu_allocation.Grant | cpu_allocation.Refusal:
    """Amounts by NUMA node for who is not bound to CPUs."""
    free = handover.zones(machine, columns, row, draws, cpu=True)
    zones = [numa_hints.Zone(node=number, free=part) for number, part in sorted(free.items())]
    wants = {requests.CPU: wish.cpu, **wish.others}
    choice = numa_hints.choose(zones, wants, numa_hints.Policy(numa), far=machine.shape.far)
    nodes = tuple(free) if choice is None or choice.nodes is None else choice.nodes
    parts = None if choice is None else numa_hints.split(zones, nodes, wants, {})
    if parts is None:
        short = [name for name in wants if any(name in zone for zone in free.values())]
        return cpu_allocation.Refusal("Insufficient NUMA " + ", ".join(sorted(short)))
    return cpu_allocation.Grant(cpus=cpuset.CPUSet(), parts=parts)


def spelled(pod: Pod) -> dict[str, Any]:
    """What of it is written to the pod, as the peers' agents read it."""
    found: dict[str, Any] = {}
    if pod.cpus:
        found["cpuset"] = str(pod.cpus)
    if pod.parts:
        found["numaNodeResources"] = [
            {"node": number, "resources": {name: _amount(name, n) for name, n in part.items()}}
            for number, part in sorted(pod.parts.items())
        ]
    return found


def _amount(name: str, much: int) -> str:
    if name != requests.CPU:
        return str(much)
    return str(much // 1000) if much % 1000 == 0 else f"{much}m"


def _adopts(sort: PodClass) -> bool:
    """Who takes over from running pods chooses when it has their room (``conversion``)."""
    return sort.reserving is not None and sort.reserving.adopting is not None


def _exclusive(sort: PodClass) -> bool:
    """The label counts, not what Kubernetes would derive, and for production only."""
    return sort.labels.get(peernames.QOS) in {"LSE", "LSR"} and sort.band == "koord-prod"


def _exclusive_of(sort: PodClass) -> cpu_accumulator.Exclusive:
    spec = _object(sort.annotations.get(peernames.RESOURCE_SPEC))
    try:
        return cpu_accumulator.Exclusive(spec.get("preferredCPUExclusivePolicy") or "None")
    except ValueError:
        return cpu_accumulator.Exclusive.NONE


def _object(spelled_one: object) -> Body:
    try:
        found = json.loads(spelled_one) if isinstance(spelled_one, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
