"""CPU allocation for one workload on one node, shared by agent and scheduler.

Covers: what is free, NUMA nodes, concrete CPUs, and why not.
Does not cover: remembering the grant (whoever asks does), reading annotations (``workloads``).

Rules:
1. A CPU that is reserved, offline or held by another workload is never granted.
2. All or nothing: a workload that cannot have all of its CPUs gets a refusal with the peers' words.
3. The same machine, holdings and request give the same CPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from koordlet.model import cpuset
from koordlet.model.record import dataclass
from koordlet.policy.cpu import accumulator, numa_hints
from koordlet.policy.cpu import shape as cpu_shape

#: The resource name of CPUs, in thousandths, in zones.
CPU = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """CPUs held by one workload."""

    holder: str
    cpus: cpuset.CPUSet
    exclusive: accumulator.Exclusive = accumulator.Exclusive.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request of one workload."""

    cpus: accumulator.Request
    numa: numa_hints.NumaPolicy = numa_hints.NumaPolicy.NONE
    #: Which of several sets of NUMA nodes that fit.
    taste: numa_hints.Taste = numa_hints.NONE
    #: Other resources that NUMA nodes have, such as memory, in their own units.
    others: Mapping[str, int] = field(default_factory=dict)
    #: CPUs that a reservation keeps for it: taken first, though they are held.
    preferred: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Granted CPUs, and the amount of each resource per NUMA node."""

    cpus: cpuset.CPUSet
    parts: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    #: The NUMA nodes that were chosen for everything; ``None``: none in particular.
    nodes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request, with the reason in Kubernetes' or Koordinator's words."""

    why: str
    #: Nothing that another workload gives back would help.
    final: bool = False
    #: Further reasons.
    also: tuple[str, ...] = ()

    @classmethod
    def of(cls, *reasons: str, final: bool = False) -> Refusal:
        """A refusal with several reasons."""
        return cls(reasons[0], final, reasons[1:])

    @property
    def reasons(self) -> tuple[str, ...]:
        """All decoded annotations of a pod."""
        return self.why, *self.also


NOT_ENOUGH = "not enough cpus available to satisfy request"
NOT_WHOLE_CORES = "node(s) requested cpus not multiple cpus per core"
NO_TOPOLOGY = "node(s) invalid CPU Topology"


class Node:
    """One node and its holdings."""

    def __init__(
        self,
        shape: cpu_shape.Shape,
        *,
        reserved: cpuset.CPUSet,
        holdings: Iterable[Holding] = (),
        zones: Mapping[int, Mapping[str, int]] | None = None,
    ) -> None:
        self.shape = shape
        self.reserved = reserved
        self.holdings = tuple(holdings)
        #: Other resources that are free, by NUMA node, and what is left of CPU time.
        self.zones = zones or {}

    @property
    def free(self) -> cpuset.CPUSet:
        """CPUs that no workload holds."""
        held = cpuset.union(holding.cpus for holding in self.holdings)
        return cpuset.CPUSet(self.shape.online) - self.reserved - held

    def allocate(self, request: Request) -> Grant | Refusal:
        """Allocate CPUs for one workload, or refuse it."""
        wanted = request.cpus
        if wanted.count <= 0:
            return Grant(cpus=cpuset.CPUSet())
        if not self.shape.cores:
            return Refusal(NO_TOPOLOGY, final=True)
        full = wanted.bind is accumulator.Bind.FULL_CORES
        if full and wanted.required and wanted.count % self.shape.threads:
            return Refusal(NOT_WHOLE_CORES, final=True)
        free = (self.free | request.preferred) - self.reserved
        usable = free.bits
        if wanted.required:
            usable = accumulator.usable(self.shape, usable, wanted.bind)
        zones = [self._zone(node, bits & usable) for node, bits in sorted(self.shape.nodes.items())]
        wants = {CPU: wanted.count * 1000, **request.others}
        choice = numa_hints.choose(
            zones, wants, request.numa, taste=request.taste, far=self.shape.far
        )
        taken = None if choice is None else self._taken(request, free, choice, zones)
        if choice is None or taken is None:
            return Refusal(NOT_ENOUGH)
        others = numa_hints.split(zones, _over(choice, zones), request.others, {})
        if others is None:
            short = numa_hints.short(zones, _over(choice, zones), request.others)
            return Refusal.of(*(f"Insufficient NUMA {name}" for name in short))
        parts = self._parts(taken, others)
        return Grant(cpus=cpuset.CPUSet(taken), parts=parts, nodes=choice.nodes)

    def _taken(
        self,
        request: Request,
        free: cpuset.CPUSet,
        choice: numa_hints.Choice,
        zones: Sequence[numa_hints.Zone],
    ) -> int | None:
        """The CPUs; of several NUMA nodes that a policy has chosen as evenly as they can give."""
        nodes = _over(choice, zones)
        if request.numa is numa_hints.NumaPolicy.NONE or len(nodes) < 2:
            return self._take(request, free, choice.nodes)
        wanted = request.cpus
        cores = wanted.required and wanted.bind is accumulator.Bind.FULL_CORES
        unit = 1000 * (self.shape.threads if cores else 1)
        parts = numa_hints.split(zones, nodes, {CPU: wanted.count * 1000}, {CPU: unit}) or {}
        taken = 0
        for node, part in sorted(parts.items()):
            count = part.get(CPU, 0) // 1000
            share = replace(request, cpus=replace(wanted, count=count))
            more = self._take(share, free, (node,)) if count else 0
            if more is None:
                break
            taken |= more
        # CPU time that is spoken for in fractions does not divide into whole CPUs.
        return (
            taken if taken.bit_count() == wanted.count else self._take(request, free, choice.nodes)
        )

    def _take(
        self, request: Request, free: cpuset.CPUSet, nodes: tuple[int, ...] | None
    ) -> int | None:
        inside = self.shape.online if nodes is None else sum(self.shape.nodes[n] for n in nodes)
        same = (h.cpus for h in self.holdings if h.exclusive is request.cpus.exclusive)
        room = accumulator.Room(
            free=free.bits & inside,
            preferred=request.preferred.bits & free.bits & inside,
            repelling=cpuset.union(same).bits,
        )
        return accumulator.take(self.shape, room, request.cpus)

    def _zone(self, node: int, usable: int) -> numa_hints.Zone:
        others = self.zones.get(node, {})
        much = usable.bit_count() * 1000
        # CPU time may be spoken for although nobody is bound to it.
        return numa_hints.Zone(node=node, free={**others, CPU: min(much, others.get(CPU, much))})

    def _parts(
        self, taken: int, others: Mapping[int, Mapping[str, int]]
    ) -> dict[int, dict[str, int]]:
        """CPUs where they are, and the rest as it was split."""
        parts = {node: dict(part) for node, part in others.items()}
        for node, bits in self.shape.nodes.items():
            if bits & taken:
                part = parts.setdefault(node, {})
                parts[node] = {CPU: (bits & taken).bit_count() * 1000, **part}
        return dict(sorted(parts.items()))


def _over(choice: numa_hints.Choice, zones: Iterable[numa_hints.Zone]) -> tuple[int, ...]:
    return tuple(zone.node for zone in zones) if choice.nodes is None else choice.nodes
