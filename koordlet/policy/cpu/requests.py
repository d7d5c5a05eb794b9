"""A workload's request for CPUs, in the allocator's terms.

Covers: who may hold CPUs alone, how many it asks for, how they shall lie, what contradicts itself.
Does not cover: what is free (``allocation``), who gets it first (``exclusive_cpus``).

Rules:
1. CPUs that the operator named for a workload are its own, but for best-effort and system work. A
   pod's annotation may be anybody's: it counts for pods to which a scheduler gives CPUs, and for
   no more of them than whole CPUs of their request. They are LSE and LSR by label, of the prod
   band (which is their default), and every pod on a node with a policy of its own.
2. Without names, LSE and LSR by label (not by default), of the prod band, ask for the whole CPUs of
   their request; a standalone workload for the number that it declares.
3. The policy is the required one, else the preferred one, else ``FullPCPUs``; only the required one
   must be kept. ``ConstrainedBurst`` asks for no CPUs of its own.
4. The node's label ``cpu-bind-policy`` is a required policy of every pod; its NUMA policy fills in
   for a pod without one. Two that differ are a contradiction, in the peers' words.
5. A grant of NUMA resources without CPUs is a decision, too: nothing is chosen here.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import pod as pods
from koordlet.model import qos, resources, snapshot, wishes
from koordlet.model.record import dataclass
from koordlet.policy.cpu import accumulator, allocation, numa_hints

BIND_LABEL = "node.koordinator.sh/cpu-bind-policy"
NUMA_LABEL = "node.koordinator.sh/numa-topology-policy"
STRATEGY_LABEL = "node.koordinator.sh/numa-allocate-strategy"

CONSTRAINED = "ConstrainedBurst"
_NODE_BINDS = {
    "FullPCPUsOnly": accumulator.Bind.FULL_CORES,
    "SpreadByPCPUs": accumulator.Bind.SPREAD,
}
_BINDS = {bind.value: bind for bind in accumulator.Bind}
_NUMA = {policy.value: policy for policy in numa_hints.NumaPolicy}
_EXCLUSIVE = {exclusive.value: exclusive for exclusive in accumulator.Exclusive}
_STRATEGIES = {strategy.value: strategy for strategy in accumulator.Strategy}
#: The kubelet's option with which whole cores are given.
_WHOLE_CORES = "full-pcpus-only"
_UNBOUND = wishes.Binding()

NOT_WHOLE = "the requested CPUs must be integer"
BIND_CONFLICT = "node(s) cpu bind policy conflicts with pod's required cpu bind policy"
NUMA_CONFLICT = "node(s) NUMA Topology policy not match"


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason that a request is contradictory."""

    why: str


def may_hold(pod: pods.Pod) -> bool:
    """Whether a workload may hold exclusive CPUs (rule 1)."""
    qos_class = pod.raw_qos or pod.qos
    return qos_class not in (qos.Qos.BE, qos.Qos.SYSTEM)


def disbelieved(pod: pods.Pod, now: snapshot.Snapshot) -> str:
    """The reason that named CPUs are refused (rule 1); empty where they count."""
    if pod.declared or pod.kubelet_owned or pod.cpus is None:
        return ""
    if not (_is_bound(pod) or _of_node(now)):
        return "only pods labelled LSE or LSR in band koord-prod may hold exclusive CPUs"
    whole = pod.requests.get(resources.CPU, 0) // 1000
    if len(pod.cpus) > whole:
        return f"more than the {whole} whole CPUs of its request"
    return ""


def exclusive(pod: pods.Pod) -> accumulator.Exclusive:
    """The exclusive policy of a pod."""
    binding = pod.wishes.binding
    text = binding.exclusive if binding is not None else None
    return _EXCLUSIVE.get(text or "None", accumulator.Exclusive.NONE)


def constrained(pod: pods.Pod) -> bool:
    """Whether a pod requests the shared pool of few NUMA nodes."""
    return (pod.wishes.binding or _UNBOUND).policy[0] == CONSTRAINED


def ask(pod: pods.Pod, labels: Mapping[str, str]) -> allocation.Request | Problem | None:
    """The allocation request of a pod; ``None`` where it requests none."""
    count = _count(pod)
    if count is None or isinstance(count, Problem):
        return count
    name, required = (pod.wishes.binding or _UNBOUND).policy
    if name == CONSTRAINED:
        return None
    bind = _BINDS.get(name, accumulator.Bind.FULL_CORES)
    of_node = _NODE_BINDS.get(labels.get(BIND_LABEL, ""))
    if of_node is not None:
        if required and of_node is not bind:
            return Problem(BIND_CONFLICT)
        bind, required = of_node, True
    numa = _numa(pod, labels)
    if isinstance(numa, Problem):
        return numa
    strategy = _STRATEGIES.get(labels.get(STRATEGY_LABEL, ""), accumulator.Strategy.LEAST)
    wanted = accumulator.Request(
        count=count,
        bind=bind,
        required=required,
        exclusive=exclusive(pod),
        strategy=strategy,
    )
    return allocation.Request(cpus=wanted, numa=numa)


def _numa(pod: pods.Pod, labels: Mapping[str, str]) -> numa_hints.NumaPolicy | Problem:
    of_node = labels.get(NUMA_LABEL, "")
    of_pod = (pod.wishes.numa.policy if pod.wishes.numa is not None else "") or ""
    if of_node and of_pod and of_node != of_pod:
        return Problem(NUMA_CONFLICT)
    return _NUMA.get(of_node or of_pod, numa_hints.NumaPolicy.NONE)


def _is_bound(pod: pods.Pod) -> bool:
    """Whether its class is given CPUs: by label, as every Guaranteed pod is LSR without one."""
    labelled = pod.raw_qos is not None and pod.raw_qos.exclusive
    return labelled and (pod.band or qos.Band.default_of(pod.qos)) is qos.Band.PROD


def _of_node(now: snapshot.Snapshot) -> bool:
    """Whether a scheduler gives CPUs to every pod of this node."""
    asked = now.kubelet.configuration if now.kubelet is not None else None
    whole = asked is not None and asked.cpu_manager_policy == "static"
    if whole and asked is not None and asked.cpu_manager_options.get(_WHOLE_CORES) == "true":
        return True
    return now.node.labels.get(BIND_LABEL) in _NODE_BINDS


def _count(pod: pods.Pod) -> int | Problem | None:
    if pod.cpu_count is not None:
        return pod.cpu_count or None
    # What was declared standalone says by name or number what it wants, or wants nothing.
    if pod.wishes.decided or not _is_bound(pod) or pod.kube_qos is None:
        return None
    milli = pod.requests.get(resources.CPU, 0)
    if milli <= 0:
        return None
    return Problem(NOT_WHOLE) if milli % 1000 else milli // 1000
