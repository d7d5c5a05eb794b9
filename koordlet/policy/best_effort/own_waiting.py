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
from collections.abc import Iterable, Mapping

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


def among(parts: Iterable[tuple[float, cpuset.CPUSet]]) -> float:
    """Seconds of waiting per second of CPU of several workloads on sets of CPUs.

    What a workload uses is taken to be spread evenly over its CPUs. Endless where one set is full.
    """
    used: dict[cpuset.CPUSet, float] = defaultdict(float)
    for cores, cpus in parts:
        if cpus:
            used[cpus] += cores
    total = sum(used.values())
    if total <= 0:
        return 0.0
    waited = 0.0
    for cpus, cores in used.items():
        there = sum(each * len(cpus & other) / len(other) for other, each in used.items())
        if cores > 0:
            waited += cores * alone(there, len(cpus))
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


def _own(workloads: tuple[Confined, ...], cores: list[float]) -> float:
    return among((used, part.cpus) for used, part in zip(cores, workloads, strict=True))


#: Own waiting of workloads that use so many cores each. The policy and the guard ask for the same
#: in each pass, and the answer takes half a millisecond of 200 workloads.
own = remember.last(_own, operator.eq)


def _cpus(pod: pods.Pod, groups: Mapping[str, cgroup.Group]) -> cpuset.CPUSet:
    """CPUs of a pod's containers, which may be narrower than the pod's own."""
    inside = [box.group for box in pod.containers if box.group in groups] or [pod.group]
    known = (groups[path] for path in inside if path is not None and path in groups)
    return cpuset.union(each.effective() or each.cpus() or cpuset.CPUSet() for each in known)
