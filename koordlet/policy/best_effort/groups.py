"""Cgroups of best-effort work, and the files that limit it there.

Covers: the groups that hold it, sets of CPUs, quotas and weights on them, one budget of CPU time
shared out among several. Does not cover: how much it may have (``cpu_suppress``, ``adaptive``).

Rules:
1. A place is the kubelet's BestEffort tier as a whole, or the cgroup of any other best-effort
   workload. A workload inside another place belongs to that place; of a latency-sensitive one a
   condition says so, because it yields and is limited with that place.
2. On v2 a cpuset or quota of the place covers all that is inside. On v1 every cgroup inside must be
   a subset, so each of them is written.
3. Under the kubelet's static CPU manager on v1, tier and pods keep what they have and only
   containers are narrowed: the kubelet writes its default set, with reserved CPUs in it, into
   containers, and would be refused otherwise.
4. On v1 no group may have more quota than the one above: groups inside the tier lose theirs while
   the tier has one. The budget of the tier is what holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from koordlet.history import series
from koordlet.model import (
    action,
    cgroup,
    cpuset,
    decision,
    grouppath,
    knob,
    limits,
    meter,
    qos,
    remember,
    snapshot,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.cpu import cpuset_room, pool_tiers
from koordlet.policy.framework import proposals

#: Shares of a group that shall run when nobody else wants to: as many as an idle group has
#: (``WEIGHT_IDLEPRIO``, kernel/sched/sched.h), so its file says the same before and after.
LEAST_SHARES = 3
#: A group that uses less than its part keeps this much more than it uses, to grow into.
_ROOM_MILLI = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One cgroup whose best-effort work is limited."""

    group: str
    #: The kubelet's tier; else a workload.
    tier: bool
    #: Who is in there, for people.
    who: str


def is_best_effort(pod: pods.Pod) -> bool:
    """Whether a pod is best-effort: by its label, or by its Kubernetes class."""
    if pod.kube_qos is None:
        return pod.qos is qos.Qos.BE
    return pod.raw_qos is qos.Qos.BE or pod.kube_qos is qos.KubeQos.BEST_EFFORT


def places(now: snapshot.Snapshot) -> tuple[Place, ...]:
    """Every existing place, by path."""
    return _places(now.pods, now.groups)


@remember.last
def _places(pods: tuple[pods.Pod, ...], groups: Mapping[str, cgroup.Group]) -> tuple[Place, ...]:
    by_path: dict[str, Place] = {}
    for pod in pods:
        if pod.group is None or pod.group not in groups or not pod.active:
            continue
        if pod.kube_qos is None:
            if is_best_effort(pod):
                by_path[pod.group] = Place(group=pod.group, tier=False, who=pod.key)
        elif pod.kube_qos is qos.KubeQos.BEST_EFFORT:
            tree = grouppath.parse(pod.group).tree
            tier = tree.tier(qos.KubeQos.BEST_EFFORT) if tree is not None else ""
            if tier in groups and cgroup.is_below(pod.group, tier):
                by_path[tier] = Place(group=tier, tier=True, who="the kubelet's BestEffort tier")
    outer = {path for path in by_path if by_path.keys().isdisjoint(cgroup.ancestors(path))}
    return tuple(by_path[path] for path in sorted(outer))


@remember.last
def any_stale(pods: tuple[pods.Pod, ...]) -> bool:
    """Whether any pod's data may be out of date."""
    return any(pod.stale for pod in pods)


def stale(now: snapshot.Snapshot) -> str:
    """The reason that the list of pods may be out of date; empty where it is current."""
    old = [source.name for source in now.sources if source.aged(now.at)]
    if old:
        return f"no recent data from {', '.join(old)}"
    return "the list of pods may be out of date" if any_stale(now.pods) else ""


@remember.last
def sensitive(pods: tuple[pods.Pod, ...]) -> tuple[pods.Pod, ...]:
    """Pods with a cgroup that are not best-effort."""
    return tuple(pod for pod in pods if pod.group is not None and not is_best_effort(pod))


@remember.last
def sensitive_groups(pods: tuple[pods.Pod, ...]) -> list[str]:
    """Cgroups of latency-sensitive pods and of their containers."""
    return inside(sensitive(pods))


def inside(pods: Iterable[pods.Pod]) -> list[str]:
    """Cgroups of pods and of their containers, for counters that do not add up to the parent.

    So it is with throttling: each group has its own limit (kernel/sched/fair.c).
    """
    groups = (group for pod in pods for group in (pod.group, *(b.group for b in pod.containers)))
    return [group for group in groups if group is not None]


@remember.last
def enclosed(
    there: tuple[Place, ...], pods: tuple[pods.Pod, ...]
) -> tuple[decision.Condition, ...]:
    """The conditions of latency-sensitive workloads inside a place (rule 1)."""
    by_path = {place.group: place for place in there}
    return tuple(
        decision.Condition(
            type="LatencySensitiveInsideBestEffort",
            reason="InnerGroup",
            subject=pod.key,
            message=(
                f"{pod.key} has the weight and the limits of best-effort work: its"
                f" cgroup {pod.group} is inside {path}, the cgroup of {by_path[path].who}. Give"
                " it a cgroup outside of that, or declare the outer one as latency-sensitive"
            ),
        )
        for pod in sensitive(pods)
        if pod.active
        for path in cgroup.ancestors(pod.group or "")
        if path in by_path
    )


def timed(there: tuple[Place, ...], now: snapshot.Snapshot) -> tuple[Place, ...]:
    """The places whose CPU time can be limited; the same object where that is all of them.

    On v1 a declared group, unlike the kubelet's, need not be in every hierarchy: where it is not,
    naming its files would fail at every tick. On v2 every group has those files where the ``cpu``
    controller is handed down to it.
    """
    return _timed(there, now.layout, now.groups)


@remember.last
def _timed(
    there: tuple[Place, ...], layout: cgroup.Layout, groups: Mapping[str, cgroup.Group]
) -> tuple[Place, ...]:
    unified = layout.unified(knob.CPU_SHARES.controller)
    limited = tuple(
        place
        for place in there
        if place.tier
        or (
            _has_time(groups, place.group)
            if unified
            else knob.CPU_CFS_PERIOD.name in groups[place.group].values
        )
    )
    return there if len(limited) == len(there) else limited


def used(there: tuple[Place, ...], past: series.History) -> dict[str, int]:
    """CPU use of each place by its cgroup, in thousandths of a core."""
    groups = _paths(there)
    lasts = past.groups.lasts(groups, meter.CPU)
    return {group: int(1000 * (cores or 0.0)) for group, cores in zip(groups, lasts, strict=True)}


@remember.last
def _paths(there: tuple[Place, ...]) -> list[str]:
    return [place.group for place in there]


def untimed(there: Sequence[Place], now: snapshot.Snapshot) -> list[str]:
    """Problems of places whose cgroup has no cpu controller enabled."""
    return [
        f"{place.who}: the cpu controller is not enabled for cgroup {place.group}, so it has"
        " neither weight nor quota: set CPUWeight= in its unit, or write +cpu to"
        " cgroup.subtree_control of every group above it"
        for place in (there if now.layout.unified(knob.CPU_SHARES.controller) else ())
        if not _has_time(now.groups, place.group)
    ]


def _has_time(groups: Mapping[str, cgroup.Group], group: str) -> bool:
    """Whether the v2 cpu controller is enabled for a cgroup; True where unknown."""
    above = groups.get(group.rpartition("/")[0])
    passed = None if above is None else above.values.get(knob.SUBTREE.name)
    return passed is None or knob.CPU_SHARES.controller in passed.split()


def limit_sets(
    proposal: proposals.Proposal, there: Sequence[Place], cpus: cpuset.CPUSet, reason: str
) -> list[str]:
    """Want these CPUs for every place; the problems of those that cannot have them."""
    now, problems = proposal.now, []
    unified = now.layout.unified(knob.CPUSET_CPUS.controller)
    children = {} if unified else now.children()
    for place in there:
        room = cpuset_room.of(now, place.group) & now.topology.online
        if not cpus & room:
            problems.append(f"{place.who}: CPUs {cpus} are outside its parent cgroup's CPUs {room}")
            continue
        if knob.CPUSET_CPUS.name not in now.groups[place.group].values:
            problems.append(f"{place.who}: cgroup {place.group} has no cpuset controller")
            continue
        leaves = not unified and place.tier and pool_tiers.only_leaves(now)
        limited = [] if leaves else [place.group]
        limited += [
            path
            for path in _below(children, place.group)
            if not leaves or grouppath.parse(path).container is not None
        ]
        for path in limited:
            text = str(cpus & room)
            proposal.write_knob(knob.CPUSET_CPUS, path, text, reason, protective=True, narrows=True)
    return problems


def limit_time(
    proposal: proposals.Proposal, there: Sequence[Place], shares: Mapping[str, int], reason: str
) -> None:
    """Want these quotas, in thousandths of a CPU, for every place."""
    now = proposal.now
    tiers = not now.layout.unified(knob.CPU_CFS_QUOTA.controller) and any(
        place.tier for place in there
    )
    children = now.children() if tiers else {}
    for place in there:
        quota = limits.cpu_quota(now.layout, place.group, shares[place.group])
        proposal.write_settings(quota, place.group, reason, protective=True)
        for path in _below(children, place.group) if place.tier else ():
            free = limits.cpu_quota(now.layout, path, None)
            why = f"no quota of its own: the quota of {place.group} limits it"
            proposal.write_settings(free, path, why, protective=True)


def _below(children: Mapping[str, tuple[cgroup.Group, ...]], path: str) -> Iterator[str]:
    # A workload may nest groups deeper than Python nests calls.
    todo = list(children.get(path, ()))[::-1]
    while todo:
        child = todo.pop()
        yield child.path
        todo.extend(children.get(child.path, ())[::-1])


def yielding(
    now: snapshot.Snapshot, there: Iterable[Place], policy: str, reason: str
) -> tuple[action.Action, ...]:
    """File actions that make best-effort work run on idle CPU only.

    Only of groups that koordlet made or that were declared to it. The kubelet's tier has the least
    weight from the kubelet, whose writes ``cpu.idle`` would make fail, and the kubelet exit.
    """
    units = ("idle" if now.unit_idle else "weight") if now.through_systemd else ""
    return _yielding(now.layout, units, tuple(there), policy, reason)


@remember.last
def _yielding(
    layout: cgroup.Layout, units: str, there: tuple[Place, ...], policy: str, reason: str
) -> tuple[action.Action, ...]:
    """``units``: the property by which systemd makes one yield; empty where it is not asked."""
    made: list[action.Action] = []
    for place in there:
        if place.tier:
            continue
        weight = limits.cpu_shares(layout, place.group, LEAST_SHARES)
        idle = limits.cpu_idle(layout, place.group, idle=True)
        if units and cgroup.unit_of(place.group):
            # One property is both files.
            weight, idle = ((), idle) if units == "idle" and idle else (weight, ())
        made += (
            action.WriteFile(
                target=setting.path,
                value=setting.text,
                policy=policy,
                reason=reason,
                knob=setting.row.name,
                group=place.group,
                protective=True,
            )
            for setting in (*weight, *idle)
        )
    return tuple(made)


def split(total: int, used: Mapping[str, int], least: int) -> dict[str, int]:
    """Split one CPU budget among places by max-min fairness.

    A place that uses less than its part keeps what it uses and some room; what it leaves goes to
    the others in equal parts. The parts add up to the budget, or to ``least``
    for each where the budget is smaller than that.
    """
    left, waiting = max(0, total), dict(used)
    parts: dict[str, int] = {}
    for name in sorted(used, key=lambda name: (used[name], name)):
        equal = left // len(waiting)
        wanted = waiting.pop(name) + _ROOM_MILLI
        # The last one gets all that is left.
        part = left if not waiting else min(equal, wanted)
        parts[name] = max(part, least)
        left = max(0, left - part)
    return parts
