"""shared_pools: the LS and BE pools, and the cpuset of every workload.

Covers: the LS and BE pools per NUMA node, which of them a workload runs in, the tiers of the
kubelet, what a container gets before it starts.
Does not cover: which CPUs are reserved (``reserved_cpus``) or held alone (``exclusive_cpus``), how
much of its pool BE may use (``policy.best_effort.cpu_suppress``), files (``cpuset_files``).

Where a workload runs, the first that applies:
* on the CPUs that it holds alone; a container with a resource claim on those of its claim, and
  the pod's other containers where the pod would be without it
* SYSTEM: on those of system work, else on the reserved ones; where none of them is online, as LS
* BE: in the BE pool, of the nodes that a scheduler gave it; CPUs that were named for it are a part
  of that pool, and nobody else's loss
* in the LS pool of the nodes that a scheduler gave it, of its home (``pool_homes``), or of all

Rules:
1. LS pool = online - reserved - all that is held. BE pool = online - reserved - what LSE or a
   reservation holds: BE may use an LSR workload's idle CPUs, never an LSE one's. Isolated CPUs are
   in neither where the other CPUs of the LS pool hold what the workloads of that pool request, and
   the kubelet's static policy has none of them in its own shared pool. A condition says which. (A
   task is moved onto or off an isolated CPU by affinity only: in a pool, threads pile up on the one
   where they woke up; Documentation/admin-guide/kernel-parameters.txt, ``isolcpus``.)
2. Where every CPU of the LS pool is exclusive, LS workloads have the cpusets of before koordlet.
3. The kubelet's QoS cgroups are narrowed as well, so that a new container is right from its first
   instruction: to the pool of the class, plus what workloads inside need beyond it. The group of
   all pods gets no CPU that it had not before koordlet.
4. Under the kubelet's static policy koordlet compares the kubelet's containers and never writes
   them, nor those of a pod that the kubelet is about to give CPUs. On v1 it then narrows only
   containers: the kubelet writes its default set into new ones, and a tier or pod without those
   CPUs would keep them from starting. A tier or pod that another agent left so narrow is widened.
   The same holds while the kubelet's policy is unknown.
5. Under any other policy only koordlet writes the cpusets of containers: sets that an earlier agent
   left there are decided anew.

* Formula: LS pool = online - reserved - exclusive; BE pool = the same, without those of LSE only
* Writes: `cpuset.cpus` of workloads, their containers and the kubelet's tiers; `cpuset.mems` where
  a NUMA node was given; `cgroup.subtree_control` above them
* See: `koordlet explain cpu N`, `koordlet explain pod NS/NAME`
* Off: each set goes back to what it was; on v2, empty where it was empty
* More: cpu.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from koordlet.history import series
from koordlet.model import (
    adjustment,
    cgroup,
    cpuset,
    decision,
    ledger,
    qos,
    resources,
    snapshot,
    strategy_field,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.cpu import claimed_cpus, cpuset_files, pool_homes, pool_tiers
from koordlet.policy.cpu.cpuset_files import Wanted
from koordlet.policy.framework import declaration, proposals, saved_state

STEM = "shared_pools"


Homes = Mapping[str, pool_homes.Home]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """CPU pools of workloads without exclusive CPUs."""

    #: Enable the cpuset controller in the parent cgroups of a workload (cgroup v2 only).
    enable_controllers: bool = strategy_field.setting(default=False)
    #: Also set the cpusets of the kubelet's QoS cgroups, so that new containers start on the right
    #: CPUs.
    tiers: bool = strategy_field.setting(default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State kept between ticks."""

    #: By v1 group.
    wishes: Mapping[str, cpuset_files.Wish] = field(default_factory=dict)
    #: UID to the nodes in whose pools it runs.
    homes: Homes = field(default_factory=dict)
    #: Groups of containers that ran on less than they were granted.
    narrow: tuple[str, ...] = field(default=(), metadata=saved_state.UNKEPT)


@dataclass(frozen=True, slots=True)
class Shares:
    """Division of the machine's CPUs."""

    system: cpuset.CPUSet
    ls: cpuset.CPUSet
    be: cpuset.CPUSet
    #: What single workloads hold, by UID.
    exclusive: Mapping[str, ledger.Claim]
    #: NUMA nodes to their CPUs.
    nodes: Mapping[int, cpuset.CPUSet]


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Divide the CPUs, and name the cpuset of every workload."""
    proposal = proposals.Proposal(STEM, now, reason="SharedPools")
    shares = divide(now)
    sizes = {node: len(cpus & shares.ls) for node, cpus in shares.nodes.items()}
    pooled = [pod for pod in now.pods if pod.uid not in shares.exclusive]
    homes = pool_homes.find(sorted(pooled, key=lambda p: (p.key, p.uid)), sizes, state.homes)
    for pod in now.pods:
        for problem in pod.problems:
            proposal.say("MalformedPod", problem, pod.key)
    tell_outside(proposal)
    tell_isolated(proposal)
    for pod in now.pods:
        for box in pod.containers:
            if box.refused:
                message = f"container {box.name} did not start: {box.refused}"
                proposal.say("ContainerStartFailed", message, pod.key)
    if not shares.ls:
        proposal.say("SharedPoolEmpty", _EMPTY)
    alone = pool_tiers.only_leaves(now)
    if alone and not pool_tiers.static(now):
        proposal.say("CPUManagerPolicyUnknown", _UNKNOWN)
    wanted = [want for pod in now.pods for want in _wanted(now, pod, shares, homes, leaves=alone)]
    if alone:
        wanted = pool_tiers.opened(now, wanted, state.wishes)
    elif settings.tiers:
        wanted += pool_tiers.narrowed(now, _of_tiers(shares), wanted, state.wishes)
    pool_tiers.tell_confined(proposal, state.wishes)
    proposal.why |= {"LS pool": str(shares.ls), "BE pool": str(shares.be)}
    files = cpuset_files.write(
        proposal,
        wanted,
        wishes=state.wishes,
        hand_down=settings.enable_controllers,
        narrow=state.narrow,
    )
    pools = tuple(
        ledger.Pool(kind=kind, cpus=cpus, socket=socket, node=node)
        for kind, whole in (("LS", shares.ls), ("BE", shares.be))
        for socket, node, cpus in now.topology.by_node(whole)
    )
    return proposal.decided(
        State(wishes=files.wishes, homes=homes, narrow=files.narrow), pools=pools, sets=files.sets
    )


def divide(now: snapshot.Snapshot) -> Shares:
    """Divide the CPUs that the claims leave into pools."""
    online = now.allowed
    reserved = now.ledger.held(ledger.Owner.RESERVED)
    usable = online - now.ledger.held(ledger.Owner.RESERVED, ledger.Owner.SYSTEM) or online
    # Nobody is to be driven out of them when their owner comes.
    usable = usable - now.ledger.held(ledger.Owner.RESERVATION) or usable
    usable = usable - isolated_aside(now) or usable
    lse, lsr = now.ledger.held(ledger.Owner.LSE), now.ledger.held(ledger.Owner.LSR)
    return Shares(
        system=now.ledger.pool("SYSTEM") & online or reserved & online,
        ls=usable - lse - lsr,
        be=usable - lse,
        exclusive={claim.uid: claim for claim in now.ledger.claims if claim.uid},
        nodes={node: cpus for _, node, cpus in now.topology.by_node(online) if node is not None},
    )


def target(pod: pods.Pod, shares: Shares, homes: Homes) -> tuple[cpuset.CPUSet | None, str]:
    """The CPUs of a workload and the reason; ``None`` where its cpuset is not our business."""
    claim = shares.exclusive.get(pod.uid)
    who = f"{pod.qos.value} {pod.key}"
    if claim is not None:
        return claim.cpus or None, f"{who}: its exclusive CPUs"
    if pod.qos is qos.Qos.SYSTEM and shares.system:
        return shares.system, f"{who}: the reserved CPUs"
    kind, pool = ("BE", shares.be) if pod.qos is qos.Qos.BE else ("LS", shares.ls)
    named = (pod.cpus or cpuset.CPUSet()) & pool if kind == "BE" else cpuset.CPUSet()
    if named:
        return named, f"{who}: the CPUs of the BE pool named for it"
    nodes = _nodes(pod, homes)
    near = cpuset.union(shares.nodes.get(node, cpuset.CPUSet()) for node in nodes) & pool
    if near:
        listed = ", ".join(map(str, nodes))
        return near, f"{who}: the {kind} pool of NUMA node {listed}"
    return pool or None, f"{who}: the {kind} pool"


_CPU = (resources.CPU, resources.BATCH_CPU, resources.MID_CPU)


def _nodes(pod: pods.Pod, homes: Homes) -> tuple[int, ...]:
    """The nodes that a scheduler gave it CPU time of, else its home."""
    nodes = tuple(
        share.node for share in pod.wishes.shares if any(share.resources.get(name) for name in _CPU)
    )
    return nodes or homes.get(pod.uid, ())


def _mems(pod: pods.Pod) -> cpuset.CPUSet | None:
    """The nodes that a scheduler gave it memory of; ``None``: it did not say."""
    nodes = cpuset.CPUSet.of(
        share.node for share in pod.wishes.shares if share.resources.get(resources.MEMORY)
    )
    return nodes or None


# Groups -------------------------------------------------------------------------------------------


def _wanted(
    now: snapshot.Snapshot, pod: pods.Pod, shares: Shares, homes: Homes, *, leaves: bool
) -> Iterator[Wanted]:
    cpus, reason = target(pod, shares, homes)
    if pod.uid not in shares.exclusive and pool_tiers.awaits_kubelet(now, pod):
        return
    held = now.kubelet.cpu if now.kubelet is not None else None
    sets = held.entries.get(pod.uid) if held is not None and pod.kubelet_owned else None
    if sets is not None:
        # The kubelet decides container by container, and leaves the pod's group alone.
        for box in pod.containers:
            own = sets.get(box.name)
            # Those of the whole pod, where it has some (``kubelet.CpuState``).
            expected = own or sets.get("")
            why = (
                reason
                if expected
                else f"{pod.key}: the LS pool: the kubelet holds no CPUs for {box.name}"
            )
            yield Wanted(
                group=box.group,
                who=pod.key,
                cpus=expected or shares.ls or None,
                reason=why,
                compare=True,
                boxes={box.name: box.group} if own and box.group is not None else {},
            )
        return
    kube = pod.kube_qos is not None
    claimed = claimed_cpus.by_container(now, pod)
    if claimed:
        yield from claimed_cpus.wanted(now, pod, claimed, (cpus, reason), leaves=leaves)
        return
    yield Wanted(
        group=pod.group,
        who=pod.key,
        cpus=cpus,
        reason=reason,
        mems=_mems(pod),
        protective=pod.qos is qos.Qos.BE,
        alone=pod.uid in shares.exclusive,
        compare=pod.kubelet_owned,
        leaves=leaves and kube,
        anew=_anew(now, pod),
        # With only the leaves narrowed nobody can tell who narrowed best-effort work further.
        boxes={box.name: box.group for box in pod.containers if box.group is not None}
        if kube and not (leaves and pod.qos is qos.Qos.BE)
        else {},
        match=pod.match,
    )


def _anew(now: snapshot.Snapshot, pod: pods.Pod) -> bool:
    """Rule 5. A static policy holds CPUs for Guaranteed pods alone, should nobody know of it."""
    if pod.kube_qos is None or pod.kubelet_owned or pool_tiers.static(now):
        return False
    return pod.kube_qos is not qos.KubeQos.GUARANTEED or not pool_tiers.unknown(now)


def _of_tiers(shares: Shares) -> dict[qos.KubeQos, cpuset.CPUSet]:
    """The pool of the pods of each tier."""
    held = cpuset.union(claim.cpus for claim in shares.exclusive.values())
    return {
        qos.KubeQos.GUARANTEED: shares.ls | shares.be | held,
        qos.KubeQos.BURSTABLE: shares.ls,
        qos.KubeQos.BEST_EFFORT: shares.be,
    }


# Containers that start ----------------------------------------------------------------------------


def admit(
    now: snapshot.Snapshot, _settings: Settings, state: State, pod: pods.Pod, container: str
) -> adjustment.Adjustment:
    """The set of a container that is about to start.

    It is cut to what the groups above have: on v1 a runtime that asks for more is refused and the
    container does not start. Where they leave no more than the target, nothing is said: the
    container inherits it, also when it is narrowed further in the meantime.
    """
    shares = divide(now)
    awaits = pod.uid not in shares.exclusive and pool_tiers.awaits_kubelet(now, pod)
    if pod.kubelet_owned or awaits:
        return adjustment.Adjustment()
    cpus, why = target(pod, shares, state.homes)
    claimed = claimed_cpus.by_container(now, pod).get(container)
    if claimed:
        cpus, why = claimed, f"{pod.key} {container}: CPUs of its claim"
    room = _above(now, pod.group)
    if not cpus or not cpus & room or room <= cpus:
        return adjustment.Adjustment()
    return adjustment.Adjustment(cpus=cpus & room, mems=_mems(pod), reasons={STEM: why})


def _above(now: snapshot.Snapshot, path: str | None) -> cpuset.CPUSet:
    """The CPUs of a group, or of the nearest one above that was seen."""
    for group in (path, *cgroup.ancestors(path)) if path else ():
        seen = now.groups.get(group)
        cpus = None if seen is None else seen.cpus() or seen.effective()
        if cpus is not None:
            return cpus
    return now.topology.online


# Isolated CPUs ----------------------------------------------------------------------------------

_MILLI = 1000
_HELD = (ledger.Owner.RESERVED, ledger.Owner.SYSTEM, ledger.Owner.LSE, ledger.Owner.LSR)


def isolated_aside(now: snapshot.Snapshot) -> cpuset.CPUSet:
    """Isolated CPUs that are in no pool."""
    isolated = now.topology.isolated & now.allowed
    return cpuset.CPUSet() if not isolated or _why_isolated_in(now, isolated) else isolated


def _why_isolated_in(now: snapshot.Snapshot, isolated: cpuset.CPUSet) -> str:
    """The reason that isolated CPUs stay in the pools; empty where they do not."""
    if pool_tiers.static(now):
        return "the kubelet's static policy has them in its shared pool"
    alone = {claim.uid for claim in now.ledger.claims if claim.uid}
    wanted = sum(pod.requests.get(resources.CPU, 0) for pod in now.pods if _pooled(pod, alone))
    left = now.allowed - now.ledger.held(*_HELD) - isolated
    if left and wanted <= _MILLI * len(left):
        return ""
    return (
        f"latency-sensitive workloads request {wanted / _MILLI:g} CPUs, the LS pool has"
        f" only {len(left)} without them"
    )


def _pooled(pod: pods.Pod, alone: set[str]) -> bool:
    """Whether a workload runs in the LS pool."""
    return pod.active and pod.uid not in alone and pod.qos not in (qos.Qos.BE, qos.Qos.SYSTEM)


def tell_outside(proposal: proposals.Proposal) -> None:
    """Say which online CPUs no group of this tree can have."""
    now = proposal.now
    if outside := now.outside:
        proposal.say(
            "CPUsOutsideTree",
            f"CPUs {outside} are online, and the root of the cgroup tree has only {now.allowed}: a"
            " cpuset partition of another program has them, or koordlet runs in a container"
            " without them; koordlet gives them to no workload",
        )


def tell_isolated(proposal: proposals.Proposal) -> None:
    """Say whether isolated CPUs are in the pools, and why."""
    now = proposal.now
    isolated = now.topology.isolated & now.allowed
    if not isolated:
        return
    why = _why_isolated_in(now, isolated)
    kind, message = "IsolatedCPUs", "are in no pool; LSE and LSR workloads may name them"
    if why:
        kind = "IsolatedCPUsShared"
        fix = "boot without isolcpus=, or request fewer CPUs on this node"
        message = f"are in the pools: {why}; {fix}"
    proposal.say(kind, f"isolated CPUs {isolated} (isolcpus=) {message}")


_UNKNOWN = (
    "the kubelet's CPU manager policy is unknown: on cgroup v1 tiers and pods stay wide, and"
    " koordlet narrows containers after they start. Let the agent read the kubelet's directory"
    " (kubelet.directory) or query the kubelet (kubelet.address)"
)
_EMPTY = "LS pool is empty: all CPUs are exclusively allocated; koordlet sets no LS cpuset"


POLICY = declaration.Policy(
    stem=STEM,
    summary="LS and BE pools, and the cpuset of every workload",
    protects="it keeps workloads off reserved and exclusive CPUs",
    decide=decide,
    settings=Settings(),
    state=State(),
    kept=State,
    schema=2,
    admit=admit,
    timeless=True,
)
