"""GPUs as they hang together: the tree of a node, and the smallest part of it that serves a pod.

Covers: NUMA nodes and PCIe switches of GPUs, the search. Does not cover: groups with a fast link
(``gpu_partitions``), which GPUs a pod may have (``device_choice``).

Of the parts of a node that have enough GPUs for a pod:
* the deepest: a PCIe switch, else a NUMA node, else the node
* the one with most GPUs that are kept for the pod
* where most of the parts around it are in use already: what is whole stays whole
* for a share of a GPU, the best one by itself
* the first, by number of the NUMA node and name of the switch
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field

from koordlet.model.record import dataclass

MISSING = "node(s) missing GPU Device Topology Tree"
SHARED_SEVERAL = "node(s) Unsupported Multi-Shared GPU"
INSUFFICIENT_SCOPED = "Insufficient Topology Scoped GPU Devices"
INSUFFICIENT = "Insufficient GPU Devices"

NODE, NUMA_NODE, PCIE, DEVICE = 1, 2, 3, 4
#: As pods demand them.
SCOPES: Mapping[str, int] = {"Node": NODE, "NUMANode": NUMA_NODE, "PCIe": PCIE, "Device": DEVICE}


@dataclass(frozen=True, slots=True)
class TopologyScope:
    """A part of a node, and the parts of it."""

    level: int
    minors: tuple[int, ...]
    inside: tuple[TopologyScope, ...] = ()


def tree(positions: Iterable[tuple[int, int, str]]) -> TopologyScope | None:
    """The tree of GPUs by minor, NUMA node and switch; ``None`` without any."""
    nodes: dict[int, dict[str, list[int]]] = {}
    for minor, numa, pcie in sorted(positions):
        nodes.setdefault(numa, {}).setdefault(pcie, []).append(minor)
    scopes = tuple(
        _scope(
            NUMA_NODE,
            tuple(TopologyScope(PCIE, tuple(switches[pcie])) for pcie in sorted(switches)),
        )
        for _, switches in sorted(nodes.items())
    )
    return _scope(NODE, scopes) if scopes else None


def _scope(level: int, inside: tuple[TopologyScope, ...]) -> TopologyScope:
    minors = (minor for scope in inside for minor in scope.minors)
    return TopologyScope(level, tuple(sorted(minors)), inside)


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """GPUs in a part of a node, and how good they are."""

    minors: tuple[int, ...]
    rank: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSearch:
    """The search for one pod on one node."""

    count: int
    #: The widest part that it accepts; 0: any.
    level: int
    #: It wants a share of a GPU.
    shared: bool
    #: GPUs that serve it, and how good each is.
    able: Mapping[int, int]
    #: GPUs of which somebody has something, or that it may not have.
    used: AbstractSet[int]
    #: GPUs that are kept for it.
    preferred: AbstractSet[int] = field(default_factory=frozenset)

    def best(self, scope: TopologyScope, depth: int = 0, occupied: int = 0) -> ScopeResult | None:
        """The best of a part of the node; ``None``: none of it serves."""
        if len(scope.minors) < self.count or (self.level >= DEVICE and self.count > 1):
            return None
        occupied += not self.used.isdisjoint(scope.minors)
        best: ScopeResult | None = None
        for part in scope.inside:
            result = self.best(part, depth + 1, occupied)
            if result is not None and (best is None or result.rank > best.rank):
                best = result
        if best is not None:
            return best
        if scope.level < self.level < DEVICE:
            return None
        minors = self._chosen(scope)
        if minors is None:
            return None
        score = self.able[minors[0]] if self.shared else 0
        return ScopeResult(minors, (depth, len(self.preferred & set(minors)), occupied, score))

    def _chosen(self, scope: TopologyScope) -> tuple[int, ...] | None:
        """The GPUs of a part; ``None``: there are not enough."""
        able = [minor for minor in scope.minors if minor in self.able]
        if len(able) < self.count:
            return None
        if self.shared:
            key = lambda minor: (minor not in self.preferred, -self.able[minor])  # noqa: E731
            return (min(able, key=key),)
        return tuple(sorted(able, key=lambda minor: minor not in self.preferred)[: self.count])
