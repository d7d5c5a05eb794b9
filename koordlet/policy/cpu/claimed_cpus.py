"""CPUs of resource claims: which a claim gets, which containers they are for. Pure.

Covers: choosing CPUs inside of the devices that a claim was allocated, the containers of a claim,
whether the kernel holds them to those CPUs.
Does not cover: the devices (``dra_driver``), when a claim has its turn (``exclusive_cpus``), files
(``shared_pools``).

Rules:
1. A claim keeps the CPUs that it has. What it lost (offline, reserved) is replaced inside of the
   same device; otherwise it keeps the rest, and a condition says so.
2. A claim that is being prepared gets all of its CPUs, or a refusal: the kubelet tries again.
3. Containers that use one claim share its CPUs, as Kubernetes has it for all devices.
4. CPUs that no cpuset can hold a container to are no claim's. A kubelet and its runtime hand the
   controller down to all groups of pods, on v2 too; where it is missing, somebody took it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from koordlet.model import cgroup, cpuset, knob, ledger, prepared_claim, snapshot
from koordlet.model import pod as pods
from koordlet.policy.cpu import accumulator, allocation, cpuset_files, grants, requests, shape
from koordlet.policy.cpu.holdings import Origin


def users(
    now: snapshot.Snapshot, claim: prepared_claim.PreparedClaim
) -> Iterator[tuple[pods.Pod, pods.Container]]:
    """The containers that a claim's CPUs are for."""
    for pod in now.pods:
        for box in pod.containers:
            if box.claims and claim.of(pod.namespace, box.claims, claim.cpus):
                yield pod, box


def by_container(now: snapshot.Snapshot, pod: pods.Pod) -> Mapping[str, cpuset.CPUSet]:
    """The CPUs that a pod's containers have by prepared claims, by the name of the container."""
    if not now.claims:
        return {}
    held = {row.uid: row.cpus for row in now.ledger.claims if row.uid}
    by_name = {
        box.name: cpuset.union(
            held.get(claim.uid, cpuset.CPUSet())
            for claim in now.claims
            if claim.of(pod.namespace, box.claims, claim.cpus)
        )
        for box in pod.containers
        if box.claims
    }
    return {name: cpus for name, cpus in by_name.items() if cpus}


def wanted(
    now: snapshot.Snapshot,
    pod: pods.Pod,
    claimed: Mapping[str, cpuset.CPUSet],
    pool: tuple[cpuset.CPUSet | None, str],
    *,
    leaves: bool,
) -> Iterator[cpuset_files.Wanted]:
    """Sets of a pod whose containers use claims: each its own, in a pod that has room for all.

    ``pool``: the CPUs of its other containers, and why.
    """
    rest, why = pool
    sets = [claimed.get(box.name) or rest for box in pod.containers]
    yield cpuset_files.Wanted(
        group=pod.group,
        who=pod.key,
        cpus=None if None in sets else cpuset.union(cpus for cpus in sets if cpus),
        reason=f"{pod.key}: CPUs of resource claims and of its other containers",
        leaves=leaves,
        match=pod.match,
    )
    for box, cpus in zip(pod.containers, sets, strict=True):
        if box.group in now.groups:
            yield cpuset_files.Wanted(
                group=box.group,
                who=pod.key,
                cpus=cpus,
                reason=f"{pod.key} {box.name}: CPUs of its claim" if box.name in claimed else why,
                boxes={box.name: box.group or ""},
            )


def unconfined(now: snapshot.Snapshot, claim: prepared_claim.PreparedClaim) -> str:
    """The reason that the kernel does not hold its containers to its CPUs (rule 4).

    Empty where it does, and where it will: a container that is still to come has a pod with sets.
    """
    for pod, box in users(now, claim):
        cpus = by_container(now, pod).get(box.name, cpuset.CPUSet())
        group = now.groups.get(box.group) if box.group is not None else None
        runs = None if group is None else group.effective()
        if why := _lacks_sets(now, box.group or pod.group):
            return f"container {box.name} of {pod.key} cannot be held to CPUs {cpus}: {why}"
        if runs is not None and not runs <= cpus:
            why = f"a refused write or another writer: see koordlet explain pod {pod.key}"
            return f"container {box.name} of {pod.key} runs on CPUs {runs}, not on {cpus}; {why}"
    return ""


def _lacks_sets(now: snapshot.Snapshot, path: str | None) -> str:
    """Why a group has no set of its own; of one that does not exist, why the one above has none.

    The root is not asked: who makes groups below it hands the controller down.
    """
    above = (path, *cgroup.ancestors(path)) if path else ()
    seen = next((now.groups[group] for group in above if group and group in now.groups), None)
    if seen is None or knob.CPUSET_CPUS.name in seen.values:
        return ""
    return (
        f"the cpuset controller is not enabled for cgroup {seen.path}; write +cpuset into"
        " cgroup.subtree_control of every group above it, or set"
        " policies.shared_pools.enableControllers: true"
    )


def grant(given: grants.Grants, claims: Sequence[prepared_claim.PreparedClaim]) -> None:
    """Grant claims their CPUs, one after the other."""
    for claim in claims:
        before = given.before.of(claim.uid, Origin.CLAIMED)
        held = before.cpus if before is not None else cpuset.CPUSet()
        cpus, why = _choose(given, claim, held)
        if before is None:
            why = why or given.too_much(cpus) or _barred(given.now, claim)
            if why:
                given.say("ClaimRefused", f"asks for {claim.count} CPUs: {why}", claim.holder)
                continue
        elif why:
            message = f"has {len(cpus)} of {claim.count} CPUs: {why}"
            given.say("ExclusiveCPUsPartial", message, claim.holder)
            # Those that are offline count again when they come back.
            cpus |= held - given.taken - given.reserved
        containers = ", ".join(f"{pod.key} {box.name}" for pod, box in users(given.now, claim))
        devices = ", ".join(share.device for share in claim.cpus)
        given.keep(
            ledger.Owner.LSE,
            (claim.uid, claim.holder),
            cpus,
            origin=Origin.CLAIMED,
            reason=f"resource claim {claim.namespace}/{claim.name} ({devices}),"
            f" used by {containers or 'no container yet'}",
        )


def _barred(now: snapshot.Snapshot, claim: prepared_claim.PreparedClaim) -> str:
    """The reason that a pod may hold no CPUs by a claim."""
    barred = (pod for pod, _ in users(now, claim) if not requests.may_hold(pod))
    pod = next(barred, None)
    return "" if pod is None else f"pod {pod.key} is best-effort or system work ({pod.qos.value})"


def _choose(
    given: grants.Grants, claim: prepared_claim.PreparedClaim, held: cpuset.CPUSet
) -> tuple[cpuset.CPUSet, str]:
    """The CPUs of a claim, device by device, and why some are missing."""
    cpus, short = cpuset.CPUSet(), ""
    for share in claim.cpus:
        count = share.count
        there = ((held & share.within & given.usable) - given.taken) - cpus
        there = cpuset.CPUSet(shape.lowest(there.bits, count))
        if len(there) < count:
            wanted = accumulator.Request(count=count)
            answer = given.allocate(
                allocation.Request(cpus=wanted, preferred=there),
                outside=(given.online - share.within) | cpus,
            )
            if isinstance(answer, allocation.Grant):
                there = answer.cpus
            else:
                short = f"{answer.why} on device {share.device}"
        cpus |= there
    return cpus, short
