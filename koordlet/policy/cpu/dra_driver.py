"""dra_driver: the devices that this node offers to resource claims (DRA).

Covers: CPUs as devices, whether a driver may run here, claims that the pod's requests do not match.
Does not cover: ways and bandwidth (``policy.resctrl.claimed_ways``), which CPUs a claim gets
(``exclusive_cpus``), preparing claims (``agent.dra_driver``), slices (``report.objects``).

Rules:
1. A device is the CPUs of one NUMA node, L3 domain, socket or core. Claims share it: each takes a
   number of its CPUs, in whole cores.
2. Reserved CPUs, what others than claims hold alone, and cores of which a part is taken do not
   count. One core stays for the shared pools: a claim for all CPUs could never be prepared. Where
   ``exclusive_cpus.limits.maxCpus`` is less, devices share it: what claims hold first, then core by
   core.
3. Under the kubelet's static policy there is no driver: the kubelet would write its own sets over
   those of the claims. Nor is there one while that policy is unknown.

* Formula: CPUs of a device = whole cores of (its CPUs - reserved - held by others than claims),
  all devices together at most exclusive_cpus.limits.maxCpus
* Writes: nothing itself: `exclusive_cpus` and `shared_pools` enforce claims, `resctrl` their ways
* See: `koordlet explain cpu N`, the claims of `/api/v1/node`; ResourceSlices of the node
* Off: no slices, no driver; prepared claims keep their CPUs until their pods end
* More: dra-driver.md
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

from koordlet.history import series
from koordlet.model import cpuset, decision, ledger, plan, prepared_claim, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.model.topology import Cpu
from koordlet.policy.cpu import claimed_cpus, shape
from koordlet.policy.framework import declaration, proposals
from koordlet.policy.resctrl import claimed_ways

STEM = "dra_driver"
NUMA, L3, SOCKET, CORE = "numa", "l3", "socket", "core"
#: Kubernetes' own name of the attribute.
_NUMA_NODE = "resource.kubernetes.io/numaNode"
#: Of Kubernetes' own driver for CPUs (kubernetes-sigs/dra-driver-cpu): its domain, and its name of
#: the attribute that is called otherwise there.
_PEER, _PEER_NUMA_NODE = "dra.cpu", "numaNodeID"
_MILLI = 1000
#: Owners that ``exclusive_cpus`` counts.
_EXCLUSIVE = frozenset(ledger.Owner) - {ledger.Owner.RESERVED, ledger.Owner.SYSTEM}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the driver."""

    name: str = "koordlet.cpu"
    #: The policies that give a claim's CPUs to its containers are in force.
    enforced: bool = True
    group_by: str = NUMA
    #: CPUs have their attributes under the names of the peer, too.
    compatible: bool = False
    #: Exclusive CPUs of all workloads together at the most (``exclusive_cpus.limits.maxCpus``).
    most: int | None = None
    #: Whether ways and bandwidth are offered, and how many ways of a domain, and groups, at most.
    caches: bool = False
    ways: int | None = None
    groups: int | None = None


State = decision.Stateless
_IDLE = "policies.exclusive_cpus and policies.shared_pools must enforce, to give claims their CPUs"


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide what is offered."""
    proposal = proposals.Proposal(STEM, now, reason="DRADriver")
    why = refusal(now) if settings.enforced else _IDLE
    if why:
        proposal.say("DRADriverRefused", f"resource claims are not served: {why}")
        return proposal.decided(state)
    devices = tuple(cpu_devices(now, settings))
    if settings.caches:
        devices += tuple(cache_devices(now, settings))
    for device in devices:
        amounts = ", ".join(f"{name} {part.value}" for name, part in device.capacity.items())
        what = f"CPUs {device.cpus}" if device.cache is None else f"L3 {device.cache}"
        proposal.why[f"device {device.name}"] = f"{amounts} of {what}"
    for claim in now.claims:
        _compare(proposal, claim)
    offer = prepared_claim.DeviceOffer(driver=settings.name, devices=devices)
    return proposal.decided(state, devices=offer)


def refusal(now: snapshot.Snapshot) -> str:
    """The reason that no driver runs; empty where one may (rule 3)."""
    if now.kubelet is None:
        return "no kubelet is asked here: see kubelet.mode"
    if not now.kubelet.knows_cpus:
        return "the kubelet's CPU manager policy is not known yet"
    if now.kubelet.static_cpus:
        return (
            "the kubelet's CPU manager policy is static, and it would overwrite the CPUs of claims;"
            f" set cpuManagerPolicy: none, or policies.{STEM}.mode: off"
        )
    return ""


def cpu_devices(
    now: snapshot.Snapshot, settings: Settings
) -> Iterator[prepared_claim.OfferedDevice]:
    """The CPUs of this node as devices."""
    group_by, most = settings.group_by, settings.most
    machine = shape.Shape.of(now.topology)
    left = _free(now)
    free = cpuset.CPUSet(machine.whole(left.bits))
    groups: dict[int, list[Cpu]] = {}
    for cpu in now.topology.cpus:
        if cpu.online:
            groups.setdefault(_group(cpu, group_by), []).append(cpu)
    if free and free == left:
        # Rule 2: the last core.
        last = next(core for core in reversed(machine.cores) if core.bits & free.bits)
        free -= cpuset.CPUSet(last.bits)
    members_of = {
        number: cpuset.CPUSet.of(cpu.cpu for cpu in cpus) for number, cpus in groups.items()
    }
    amounts = _amounts(now, members_of, free, most)
    for number, cpus in sorted(groups.items()):
        members = members_of[number]
        if amounts[number]:
            yield prepared_claim.OfferedDevice(
                name=f"{group_by}-{number}",
                attributes=_attributes(
                    cpus, smt=machine.threads > 1, compatible=settings.compatible
                ),
                capacity={
                    prepared_claim.CPU: prepared_claim.OfferedCapacity(
                        value=amounts[number], least=machine.threads, step=machine.threads
                    )
                },
                cpus=members,
            )


def cache_devices(
    now: snapshot.Snapshot, settings: Settings
) -> Iterator[prepared_claim.OfferedDevice]:
    """The L3 domains of this node as devices."""
    for domain, capacity in claimed_ways.offered(now, settings.ways, settings.groups):
        cpus = [cpu for cpu in now.topology.cpus if cpu.online and cpu.l3_id == domain]
        yield prepared_claim.OfferedDevice(
            name=f"cache-{domain}",
            attributes={**_places(cpus), "kind": "cache", "cacheL3ID": domain},
            capacity=capacity,
            cache=domain,
        )


def _free(now: snapshot.Snapshot) -> cpuset.CPUSet:
    """CPUs that claims hold or may get."""
    return now.allowed - _held(now, ledger.Owner, claimed=False)


def _held(
    now: snapshot.Snapshot, owners: Iterable[ledger.Owner], *, claimed: bool
) -> cpuset.CPUSet:
    """CPUs that prepared claims hold, or that others than these do."""
    uids = {claim.uid for claim in now.claims}
    counted = frozenset(owners)
    rows = (row for row in now.ledger.claims if row.owner in counted)
    return cpuset.union(row.cpus for row in rows if (row.uid in uids) is claimed)


def _amounts(
    now: snapshot.Snapshot,
    devices: Mapping[int, cpuset.CPUSet],
    free: cpuset.CPUSet,
    most: int | None,
) -> Mapping[int, int]:
    """CPUs of each device, together no more than may be exclusive (rule 2)."""
    whole = {number: len(cpus & free) for number, cpus in devices.items()}
    if most is None:
        return whole
    step, ours = shape.Shape.of(now.topology).threads, _held(now, _EXCLUSIVE, claimed=True)
    amounts = {number: min(len(cpus & ours), whole[number]) for number, cpus in devices.items()}
    room = most - len(_held(now, _EXCLUSIVE, claimed=False)) - sum(amounts.values())
    turns = [(amount, number) for number, amount in amounts.items() if amount < whole[number]]
    heapq.heapify(turns)
    while turns and room >= step:
        amount, number = heapq.heappop(turns)
        amounts[number] = min(amount + step, whole[number])
        room -= amounts[number] - amount
        if amounts[number] < whole[number]:
            heapq.heappush(turns, (amounts[number], number))
    return amounts


def _group(cpu: Cpu, group_by: str) -> int:
    """The number of its device. L3 domains are numbered as resctrl numbers them."""
    number = {
        NUMA: cpu.node,
        L3: cpu.l3 if cpu.l3_id is None else cpu.l3_id,
        SOCKET: cpu.socket,
        CORE: cpu.cpu if cpu.core is None else cpu.core,
    }[group_by]
    return 0 if number is None else number


def _attributes(
    cpus: list[Cpu], *, smt: bool, compatible: bool
) -> Mapping[str, prepared_claim.AttributeValue]:
    """What selectors and constraints may ask for."""
    facts: dict[str, prepared_claim.AttributeValue] = {"numCPUs": len(cpus), "smtEnabled": smt}
    facts |= _places(cpus)
    own = {"kind": "cpu", **facts}
    if not compatible:
        return own
    names = {_NUMA_NODE: _PEER_NUMA_NODE}
    return {**own, **{f"{_PEER}/{names.get(name, name)}": value for name, value in facts.items()}}


def _places(cpus: list[Cpu]) -> Mapping[str, int]:
    """Node, socket and L3, each only where all CPUs share it."""
    places = (
        (_NUMA_NODE, {cpu.node for cpu in cpus}),
        ("socketID", {cpu.socket for cpu in cpus}),
        ("cacheL3ID", {cpu.l3_id for cpu in cpus}),
    )
    known = {name: next(iter(values)) for name, values in places if len(values) == 1}
    return {name: number for name, number in known.items() if number is not None}


# Claims beside requests ---------------------------------------------------------------------------


def _compare(proposal: proposals.Proposal, claim: prepared_claim.PreparedClaim) -> None:
    """Report pods that ask for another number of CPUs: a scheduler does not count a claim's."""
    asked: dict[str, tuple[pods.Pod, int]] = {}
    for pod, box in claimed_cpus.users(proposal.now, claim):
        before = asked.get(pod.uid, (pod, 0))[1]
        asked[pod.uid] = pod, before + box.requests.get(resources.CPU, 0)
    for pod, milli in asked.values():
        if _MILLI * claim.count not in (milli, pod.own_requests.get(resources.CPU, 0)):
            proposal.say(
                "ClaimCPUMismatch",
                f"requests {milli / _MILLI:g} CPUs, its claim {claim.name} has {claim.count}:"
                " schedulers and kubelet count requests only; request the same number",
                pod.key,
            )


POLICY = declaration.Policy(
    stem=STEM,
    summary="CPUs, cache ways and memory bandwidth as devices for resource claims (DRA)",
    protects="it gives the CPUs of a resource claim to its containers",
    decide=decide,
    settings=Settings(),
    default_mode=plan.Mode.OFF,
    timeless=True,
)
