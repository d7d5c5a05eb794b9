"""Choice of NUMA nodes for one workload: the smallest set in which it fits.

Covers: policies, the choice, how quantities are split over the chosen nodes.
Does not cover: concrete CPUs (``accumulator``).

A set of nodes fits when each resource that is asked for and that nodes have is there in sum, and no
member is without any of it, and what else is asked for, such as devices, can be had there. Of the
sets that fit, in this order:
* the fewest nodes
* none that is barred: a policy that has a choice refuses those, BestEffort takes one if need be
* the highest score
* the least sum of distances between members
* the smallest set, read as a number

The peers make hints for each resource and cross them, which may leave an intersection in which the
workload does not fit; here a set is looked at for all resources at once, so what is chosen fits.

Cost. Sets are grown in order of size with a bound on what the nodes that are left can add, so most
are never looked at; on a machine of more than ``EXACT`` nodes at most ``BUDGET`` steps are made,
and the best of what was found is taken. 2^k sets are never enumerated.
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from koordlet.model.record import dataclass

EXACT = 8
BUDGET = 4096


class NumaPolicy(enum.Enum):
    """NUMA topology policy of a node or a workload."""

    NONE = ""
    BEST_EFFORT = "BestEffort"
    RESTRICTED = "Restricted"
    SINGLE = "SingleNUMANode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Free resources of one NUMA node."""

    node: int
    free: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taste:
    """Preferences among sets of NUMA nodes that fit."""

    score: Callable[[tuple[int, ...]], int] = lambda _nodes: 0
    barred: Callable[[tuple[int, ...]], bool] = lambda _nodes: False
    #: Whether a set has what amounts do not decide, such as devices.
    serves: Callable[[tuple[int, ...]], bool] = lambda _nodes: True
    #: What a set must have of that in sum at least, and what each node has; members may lack it.
    needed: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[int, Mapping[str, int]] = field(default_factory=dict)


NONE = Taste()


@dataclass(frozen=True, slots=True)
class Choice:
    """The nodes; ``None`` is no affinity: all of them, as far as the policy goes."""

    nodes: tuple[int, ...] | None


def choose(
    zones: Sequence[Zone],
    wants: Mapping[str, int],
    policy: NumaPolicy,
    *,
    taste: Taste = NONE,
    far: Callable[[int, int], int] = lambda node, other: 10 if node == other else 20,
) -> Choice | None:
    """Choose NUMA nodes; ``None`` where the policy refuses the workload."""
    if policy is NumaPolicy.NONE or not zones:
        return Choice(None)
    sizes = 1 if policy is NumaPolicy.SINGLE else len(zones)
    asked = {name: much for name, much in wants.items() if much > 0 and _is_zoned(name, zones)}
    search = _Search(zones, asked, taste)
    far = functools.cache(far)
    for size in range(1, sizes + 1):
        fitting = list(filter(taste.serves, search.sets(size)))
        able = [nodes for nodes in fitting if not taste.barred(nodes)]
        if able or (fitting and policy is NumaPolicy.BEST_EFFORT):
            best = min(
                able or fitting,
                key=lambda nodes: (
                    -taste.score(nodes),
                    _spread(nodes, far),
                    # As the numbers of a bitmap of them, where -1 stands for no node at all.
                    nodes[::-1],
                ),
            )
            return Choice(None if size == len(zones) > 1 else best)
    return Choice(None) if policy is NumaPolicy.BEST_EFFORT else None


def split(
    zones: Sequence[Zone], nodes: Sequence[int], wants: Mapping[str, int], whole: Mapping[str, int]
) -> dict[int, dict[str, int]] | None:
    """How much of each resource comes from each node, as even as possible; ``None``: too little.

    ``whole`` names the unit that a resource is given out in: CPUs of bound workloads, full cores.
    """
    parts: dict[int, dict[str, int]] = {node: {} for node in nodes}
    for name, much in wants.items():
        members = [zone for zone in zones if zone.node in parts and name in zone.free]
        unit = whole.get(name, 1)
        left = much
        # The poorest first: what it cannot give, and what does not divide, the others still can.
        for index, zone in enumerate(sorted(members, key=lambda z: (z.free[name], z.node))):
            even = left // (len(members) - index) // unit * unit
            given = min(zone.free[name] // unit * unit, even, left)
            if given > 0:
                parts[zone.node][name] = given
                left -= given
        if members and left > 0:
            return None
    return {node: part for node, part in parts.items() if part}


def short(zones: Sequence[Zone], nodes: Sequence[int], wants: Mapping[str, int]) -> tuple[str, ...]:
    """The resources of which these nodes have too little."""
    return tuple(
        name for name in sorted(wants) if split(zones, nodes, {name: wants[name]}, {}) is None
    )


def fits(zones: Sequence[Zone], wants: Mapping[str, int]) -> bool:
    """Whether there is any set in which all of it fits."""
    asked = {name: much for name, much in wants.items() if much > 0 and _is_zoned(name, zones)}
    able = [zone for zone in zones if all(zone.free.get(name, 0) > 0 for name in asked)]
    return all(sum(zone.free[name] for zone in able) >= much for name, much in asked.items())


def zoned(zones: Sequence[Zone], wants: Mapping[str, int]) -> tuple[str, ...]:
    """Requested resources that NUMA nodes account for."""
    return tuple(name for name in sorted(wants) if wants[name] > 0 and _is_zoned(name, zones))


class _Search:
    """Sets of a given size in which a workload fits."""

    def __init__(self, zones: Sequence[Zone], asked: Mapping[str, int], taste: Taste) -> None:
        self.wants = (*asked.values(), *taste.needed.values())
        # A member without any of a resource that is asked for makes its set unfit.
        able = [zone for zone in zones if all(zone.free.get(n, 0) > 0 for n in asked)]
        able.sort(key=lambda zone: zone.node)
        self.nodes = tuple(zone.node for zone in able)
        nothing: Mapping[str, int] = {}
        self.free = tuple(
            (
                *(zone.free.get(name, 0) for name in asked),
                *(taste.given.get(zone.node, nothing).get(kind, 0) for kind in taste.needed),
            )
            for zone in able
        )
        #: By the first node that is left, then by resource: sums of the richest 0, 1, 2 ... nodes.
        self.richest = [
            [
                (0, *itertools.accumulate(sorted(column, reverse=True)))
                for column in zip(*self.free[start:], strict=True)
            ]
            for start in range(len(self.free))
        ]
        self.budget = BUDGET if len(zones) > EXACT else None

    def sets(self, size: int) -> Iterator[tuple[int, ...]]:
        """The sets, smallest number first within what the bound leaves."""
        yield from self._grow(0, size, (), self.wants)

    def _grow(
        self, start: int, size: int, chosen: tuple[int, ...], missing: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        if size == 0:
            if max(missing, default=0) <= 0:
                yield chosen
            return
        for index in range(start, len(self.nodes) - size + 1):
            if self.budget is not None:
                self.budget -= 1
                if self.budget < 0:
                    return
            if not self._reachable(index, size, missing):
                return
            rest = tuple(m - f for m, f in zip(missing, self.free[index], strict=True))
            yield from self._grow(index + 1, size - 1, (*chosen, self.nodes[index]), rest)

    def _reachable(self, start: int, size: int, missing: tuple[int, ...]) -> bool:
        """Whether ``size`` more of the nodes that are left could add what is missing."""
        sums = zip(self.richest[start], missing, strict=True)
        return all(richest[size] >= much for richest, much in sums)


def _is_zoned(name: str, zones: Sequence[Zone]) -> bool:
    return any(name in zone.free for zone in zones)


def _spread(nodes: tuple[int, ...], far: Callable[[int, int], int]) -> int:
    return sum(itertools.starmap(far, itertools.permutations(nodes, 2)))
