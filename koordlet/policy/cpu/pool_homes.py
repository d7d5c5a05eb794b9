"""NUMA homes of workloads that run in the shared pool of few nodes.

Covers: ``ConstrainedBurst`` for workloads that no scheduler decided about.
Does not cover: a scheduler's decision (``numaNodeResources``), exclusive CPUs.

A workload gets the fewest nodes whose pools hold its limit (or request) beside other such ones.
It stays there as long as the pools of these nodes are large enough, because its memory is there.
Where no nodes suffice it has the whole pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.model import pod as pods
from koordlet.model import resources
from koordlet.policy.cpu import numa_hints, requests

#: Nodes, as a workload's home.
Home = tuple[int, ...]


def wants(pod: pods.Pod) -> int:
    """Thousandths of a CPU that a home must hold; 0: the pod wants no home."""
    if pod.wishes.decided or not requests.constrained(pod):
        return 0
    return pod.limits.get(resources.CPU) or pod.requests.get(resources.CPU) or 0


def find(
    pods: Iterable[pods.Pod], sizes: Mapping[int, int], before: Mapping[str, Home]
) -> dict[str, Home]:
    """UID to home. ``sizes`` is how many CPUs the pool has on each node."""
    asking = [(pod, milli) for pod in pods if (milli := wants(pod)) > 0]
    left = {node: size * 1000 for node, size in sizes.items()}
    homes: dict[str, Home] = {}
    for pod, milli in asking:
        home = before.get(pod.uid, ())
        if home and sum(1000 * sizes.get(node, 0) for node in home) >= milli:
            homes[pod.uid] = home
            _settle(left, home, milli)
    for pod, milli in asking:
        if pod.uid not in homes:
            home = _choose(left, milli)
            if home:
                homes[pod.uid] = home
                _settle(left, home, milli)
    return homes


def _choose(left: Mapping[int, int], milli: int) -> Home:
    zones = [
        numa_hints.Zone(node=node, free={resources.CPU: max(0, much)})
        for node, much in sorted(left.items())
    ]
    choice = numa_hints.choose(
        zones,
        {resources.CPU: milli},
        numa_hints.NumaPolicy.BEST_EFFORT,
        # Of nodes that suffice, those with the most room.
        taste=numa_hints.Taste(score=lambda nodes: sum(left[node] for node in nodes)),
    )
    return choice.nodes or () if choice is not None else ()


def _settle(left: dict[int, int], home: Home, milli: int) -> None:
    for node in home:
        left[node] = left.get(node, 0) - milli // len(home)
