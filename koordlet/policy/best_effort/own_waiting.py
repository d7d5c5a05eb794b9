"""CPU waiting that work causes itself: a queueing model. Pure arithmetic.

Covers: one group of CPUs, several workloads on sets of CPUs that may overlap, which those are.
Does not cover: how long work does wait (``host.counters.strain``), who else is to blame.

Only the CPUs that a workload may use shorten its queue: two busy CPUs of a machine of 64 are full
for whoever is confined to them.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from koordlet.model import cgroup, cpuset, remember
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups as best_effort_groups

#: Real arrivals are more irregular than random ones.
_IRREGULAR = 1.5


def alone(used: float, cpus: float) -> float:
    """Seconds of waiting for each second of CPU, of random arrivals on so many CPUs.

    Sakasegawa's approximation of the M/M/c queue. Endless where the CPUs are full.
    """
    load = used / max(1.0, cpus)
    if load >= 1:
        return math.inf
    queue = load ** (math.sqrt(2 * (cpus + 1)) - 1) / (cpus * (1 - load)) if load > 0 else 0.0
    return _IRREGULAR * queue


class _Sets(NamedTuple):
    """The distinct sets of CPUs of some workloads."""

    #: Who may use each, by number.
    members: list[list[int]]
    sizes: list[int]
    #: Which other sets each meets: their number, how many CPUs they share, how many the other has.
    meets: list[list[tuple[int, int, int]]]


def _sets(of_each: Sequence[cpuset.CPUSet]) -> _Sets:
    members: dict[cpuset.CPUSet, list[int]] = defaultdict(list)
    for number, cpus in enumerate(of_each):
        if cpus:
            members[cpus].append(number)
    meets = [
        [
            (number, shared, len(other))
            for number, other in enumerate(members)
            if (shared := len(cpus & other))
        ]
        for cpus in members
    ]
    return _Sets(list(members.values()), [len(cpus) for cpus in members], meets)


def among(parts: Iterable[tuple[float, cpuset.CPUSet]]) -> float:
    """Seconds of waiting per second of CPU of several workloads on sets of CPUs.

    What a workload uses is taken to be spread evenly over its CPUs. Endless where one set is full.
    """
    cores, of_each = zip(*several, strict=True) if (several := list(parts)) else ((), ())
    return _waiting(_sets(of_each), cores)


def _waiting(sets: _Sets, cores: Sequence[float]) -> float:
    used = [sum([cores[number] for number in members]) for members in sets.members]
    total = sum(used)
    if total <= 0:
        return 0.0
    waited = 0.0
    for mine, size, meets in zip(used, sets.sizes, sets.meets, strict=True):
        there = sum([used[number] * shared / whole for number, shared, whole in meets])
        if mine > 0:
            waited += mine * alone(there, size)
    return waited / total


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """A latency-sensitive workload with its CPUs and its limits."""

    group: str
    cpus: cpuset.CPUSet
    limits: tuple[tuple[str, int], ...]


@remember.last
def confined(
    pods: tuple[pods.Pod, ...], groups: Mapping[str, cgroup.Group], online: cpuset.CPUSet
) -> tuple[Confined, ...]:
    """Every latency-sensitive workload with its CPUs."""
    return tuple(
        Confined(
            group=pod.group,
            cpus=_cpus(pod, groups) & online or online,
            limits=tuple(sorted(pod.limits.items())),
        )
        for pod in best_effort_groups.sensitive(pods)
        if pod.active and pod.group is not None
    )


@remember.last
def names(workloads: tuple[Confined, ...]) -> list[str]:
    """The groups of these workloads, in their order."""
    return [workload.group for workload in workloads]


@remember.last
def _sets_of(workloads: tuple[Confined, ...]) -> _Sets:
    return _sets([workload.cpus for workload in workloads])


def _own(workloads: tuple[Confined, ...], cores: list[float]) -> float:
    return _waiting(_sets_of(workloads), cores)


#: Own waiting of workloads that use so many cores each. The policy and the guard ask for the same
#: in each pass.
own = remember.last(_own, operator.eq)


def _cpus(pod: pods.Pod, groups: Mapping[str, cgroup.Group]) -> cpuset.CPUSet:
    """CPUs of a pod's containers, which may be narrower than the pod's own."""
    inside = [box.group for box in pod.containers if box.group in groups] or [pod.group]
    known = (groups[path] for path in inside if path is not None and path in groups)
    return cpuset.union(each.effective() or each.cpus() or cpuset.CPUSet() for each in known)
