"""CPU sets of the kubelet's QoS cgroups and pods around their containers. Pure.

Covers: tiers narrowed to the pool of their class, tiers and pods that must stay wide, or become so,
the set that somebody else gave to all pods together.
Does not cover: the pools (``shared_pools``), files (``cpuset_files``).

A kubelet with the static policy writes its default set, reserved CPUs and all, into each new
container that shares CPUs, and again whenever that set changes. On v1 runc is refused
(``cpuset.cpus: permission denied``) where the pod's group has less, and the container does
not start. So there tiers and pods are never narrowed, and widened where somebody else has; also
while a kubelet has not said which policy it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from koordlet.model import cgroup, cpuset, grouppath, ledger, qos, resources, snapshot
from koordlet.model import pod as pods
from koordlet.policy.cpu import cpuset_files
from koordlet.policy.cpu.cpuset_files import Wanted
from koordlet.policy.framework import proposals

_MILLI = 1000
_TIERS = (qos.KubeQos.GUARANTEED, qos.KubeQos.BURSTABLE, qos.KubeQos.BEST_EFFORT)
#: CPUs of which no pod has any part.
_ASIDE = (ledger.Owner.RESERVED, ledger.Owner.SYSTEM)
_NAMES = {
    qos.KubeQos.GUARANTEED: "all CPUs that are not reserved",
    qos.KubeQos.BURSTABLE: "the LS pool",
    qos.KubeQos.BEST_EFFORT: "the BE pool",
}


#: Sources of pods that a kubelet runs, whoever it is.
_OF_KUBELET = frozenset({"cluster", "kubelet"})


def only_leaves(now: snapshot.Snapshot) -> bool:
    """Whether only containers may be narrowed."""
    holder = now.layout.holder("cpuset")
    return holder is not None and not holder.unified and (static(now) or unknown(now))


def static(now: snapshot.Snapshot) -> bool:
    """Whether the kubelet's CPU manager policy is static."""
    return now.kubelet is not None and now.kubelet.static_cpus


def awaits_kubelet(now: snapshot.Snapshot, pod: pods.Pod) -> bool:
    """Whether the static policy gives a pod CPUs that the kubelet's state does not show yet.

    The kubelet writes them into its containers once: what koordlet wrote there meanwhile, and puts
    back when it knows better, would take the pod off them for good.
    """
    guaranteed = static(now) and pod.kube_qos is qos.KubeQos.GUARANTEED
    if not guaranteed or pod.kubelet_owned or pod.raw_qos in (qos.Qos.LS, qos.Qos.BE):
        return False
    amounts = [box.limits.get(resources.CPU, 0) for box in pod.containers]
    amounts = amounts or [pod.requests.get(resources.CPU, 0)]
    if _has_pod_level_cpus(now):
        amounts.append(pod.own_requests.get(resources.CPU, 0))
    return any(milli >= _MILLI and milli % _MILLI == 0 for milli in amounts)


def _has_pod_level_cpus(now: snapshot.Snapshot) -> bool:
    """Whether the kubelet may hold CPUs for whole pods: an alpha gate, off where nobody sets it."""
    known = now.kubelet.configuration if now.kubelet is not None else None
    return known is not None and known.feature_gates.get("PodLevelResourceManagers", False)


def unknown(now: snapshot.Snapshot) -> bool:
    """Whether there is a kubelet whose CPU manager policy is unknown."""
    if now.kubelet is not None and now.kubelet.knows_cpus:
        return False
    return any(pod.source in _OF_KUBELET and pod.kube_qos is not None for pod in now.pods)


def narrowed(
    now: snapshot.Snapshot,
    pools: Mapping[qos.KubeQos, cpuset.CPUSet],
    wanted: Sequence[Wanted],
    wishes: Mapping[str, cpuset_files.Wish],
) -> list[Wanted]:
    """Wanted sets of QoS cgroups: their pool and what workloads in them need."""
    declared = {want.group for want in wanted}
    made: list[Wanted] = []
    for path, tier in _paths(now):
        pool = pools[tier]
        if path in declared or path not in now.groups or not pool:
            continue
        most = _most(now, path, tier, wishes)
        inside = [want for want in wanted if want.group and cgroup.is_below(want.group, path)]
        if any(want.cpus is None or want.compare for want in inside):
            # Somebody in there may run anywhere.
            made += (replace(want, cpus=most) for want in _whole(now, path, tier, wishes))
            continue
        more = cpuset.union(want.cpus for want in inside if want.cpus is not None) - pool
        extra = f" and CPUs {more} of workloads inside it" if more else ""
        made.append(
            Wanted(
                group=path,
                who=cpuset_files.NODE,
                cpus=(pool | more) & most or most,
                reason=f"the kubelet's {tier.value} pods: {_NAMES[tier]}{extra}",
                protective=tier is qos.KubeQos.BEST_EFFORT,
            )
        )
    return made


def _most(
    now: snapshot.Snapshot, path: str, tier: qos.KubeQos, wishes: Mapping[str, cpuset_files.Wish]
) -> cpuset.CPUSet:
    return confined(now, path, wishes) if tier is qos.KubeQos.GUARANTEED else now.topology.online


def confined(
    now: snapshot.Snapshot, path: str, wishes: Mapping[str, cpuset_files.Wish]
) -> cpuset.CPUSet:
    """The CPUs that the group of all pods had before koordlet; all where it had no set.

    Whoever narrowed it (``AllowedCPUs=`` of its slice) keeps pods off the others. But on v1 no
    container starts without those that a static kubelet writes into it.
    """
    group, wish = now.groups[path], wishes.get(path)
    before = now.sets[path] if path in now.sets else group.cpus()
    online = now.topology.online
    if not before:
        return online
    if wish is not None and wish.inode == group.inode:
        before |= wish.cpus
    if not now.layout.unified("cpuset"):
        before |= now.went_offline
        if static(now) and now.kubelet is not None and (held := now.kubelet.cpu) is not None:
            before |= cpuset.union((held.default, *filter(None, map(held.of_pod, held.entries))))
    return before & online or online


def tell_confined(proposal: proposals.Proposal, wishes: Mapping[str, cpuset_files.Wish]) -> None:
    """Say which CPUs all pods are kept off by somebody else."""
    now = proposal.now
    for path, tier in _paths(now):
        if tier is not qos.KubeQos.GUARANTEED or path not in now.groups:
            continue
        inside = confined(now, path, wishes)
        if missing := now.allowed - inside - now.ledger.held(*_ASIDE):
            proposal.say(
                "PodsConfined",
                f"cgroup {path} had only CPUs {inside} before koordlet, which keeps its pods there:"
                f" reserve {missing} (policies.reserved_cpus.cpus), so that koordlet gives them to"
                " no pod, or widen the cgroup (AllowedCPUs= of its slice) and restart koordlet",
            )


def opened(
    now: snapshot.Snapshot, wanted: Sequence[Wanted], wishes: Mapping[str, cpuset_files.Wish]
) -> list[Wanted]:
    """Wanted sets of containers, with room around them for the kubelet's writes (v1)."""
    made = [
        replace(want, around=now.topology.online)
        if want.leaves and _hinders(now, want.group, wishes)
        else want
        for want in wanted
    ]
    for path, tier in _paths(now):
        if _hinders(now, path, wishes):
            wide = _all(now, path, tier, "wide enough for the sets that it writes into containers")
            made.append(replace(wide, cpus=_most(now, path, tier, wishes)))
    return made


def _paths(now: snapshot.Snapshot) -> list[tuple[str, qos.KubeQos]]:
    """The groups of the tiers of every tree that holds a pod."""
    trees = {grouppath.parse(pod.group).tree for pod in now.pods if pod.group is not None}
    listed = sorted(tree for tree in trees if tree is not None)
    return [(tree.tier(tier), tier) for tree in listed for tier in _TIERS]


def _whole(
    now: snapshot.Snapshot, path: str, tier: qos.KubeQos, wishes: Mapping[str, cpuset_files.Wish]
) -> Iterator[Wanted]:
    """Restore, on cgroup v1, a tier that the kernel shrank while CPUs were offline.

    It stays named from then on, as one does that was narrowed before: groups that were born in it
    meanwhile have what it had, and the kernel takes nothing from it that they have.
    """
    holder = now.layout.holder("cpuset")
    cpus = now.groups[path].cpus()
    if holder is None or holder.unified or not cpus:
        return
    if now.went_offline & now.topology.online - cpus or path in wishes:
        yield _all(now, path, tier, "a workload inside may run on any CPU")


def _all(now: snapshot.Snapshot, path: str, tier: qos.KubeQos, why: str) -> Wanted:
    return Wanted(
        group=path,
        who=cpuset_files.NODE,
        cpus=now.topology.online,
        reason=f"the kubelet's {tier.value} pods: {why}",
    )


def _hinders(
    now: snapshot.Snapshot, path: str | None, wishes: Mapping[str, cpuset_files.Wish]
) -> bool:
    """Whether a cgroup is too narrow for the kubelet's default set, or was before koordlet."""
    group = None if path is None else now.groups.get(path)
    cpus = None if group is None else group.cpus()
    if cpus is None or path is None:
        return False
    held = now.kubelet.cpu if now.kubelet is not None else None
    default = held.default if held is not None and held.default else now.topology.online
    return path in wishes or not default & now.topology.online <= cpus
