"""Workloads that want the shared pool of few NUMA nodes: which nodes, and that they stay there.

Covers: ``ConstrainedBurst`` for workloads that no scheduler decided about.
Does not cover: a scheduler's decision (``numaNodeResources``), exclusive CPUs.

A workload gets the fewest nodes whose pools hold its limit, or its request where it has none,
besides what others like it have there. Once placed it stays as long as the pools of its nodes are
as large as what it wants: memory is there, too. Where nothing suffices it has the whole pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.model import pod, resources
from koordlet.policy.cpu import numa_hints, requests

#: Nodes, as a workload's home.
Home = tuple[int, ...]


def wants(one: pod.Pod) -> int:
    """Thousandths of a CPU for which its home must be large enough; 0: it wants none."""
    granted = one.wishes.grant is not None and (one.wishes.grant.cpus or one.wishes.grant.numa)
    if granted or not requests.constrained(one):
        return 0
    return one.limits.get(resources.CPU) or one.requests.get(resources.CPU) or 0


def find(
    pods: Iterable[pod.Pod], sizes: Mapping[int, int], before: Mapping[str, Home]
) -> dict[str, Home]:
    """UID to home. ``sizes`` is how many CPUs the pool has on each node."""
    asking = [(one, milli) for one in pods if (milli := wants(one)) > 0]
    left = {node: size * 1000 for node, size in sizes.items()}
    homes: dict[str, Home] = {}
    for one, milli in asking:
        home = before.get(one.uid, ())
        if home and sum(1000 * sizes.get(node, 0) for node in home) >= milli:
            homes[one.uid] = home
            _settle(left, home, milli)
    for one, milli in asking:
        if one.uid not in homes:
            home = _choose(left, milli)
            if home:
                homes[one.uid] = home
                _settle(left, home, milli)
    return homes


def _choose(left: Mapping[int, int], milli: int) -> Home:
    zones = [
        numa_hints.Zone(node=node, free={resources.CPU: max(0, much)})
        for node, much in sorted(left.items())
    ]
    found = numa_hints.choose(
        zones,
        {resources.CPU: milli},
        numa_hints.Policy.BEST_EFFORT,
        # Of nodes that suffice, those with the most room.
        taste=numa_hints.Taste(score=lambda nodes: sum(left[node] for node in nodes)),
    )
    return found.nodes or () if found is not None else ()


def _settle(left: dict[int, int], home: Home, milli: int) -> None:
    for node in home:
        left[node] = left.get(node, 0) - milli // len(home)
