"""Isolated CPUs (``isolcpus``): out of the pools where the rest is enough.

Covers: whether they are, and what is said of it. Does not cover: the pools (``shared_pools``), CPUs
that a workload holds alone (``exclusive_cpus``): who names isolated ones gets them.

Kernel fact (Documentation/admin-guide/kernel-parameters.txt, ``isolcpus``): a task is moved onto or
off an isolated CPU by affinity only. In a pool, threads pile up on the one where they woke up.

Rules:
1. They are out where the other CPUs of the LS pool hold what the workloads of that pool request.
2. Else they stay in, as they were before, and a condition says so.
3. The kubelet's static policy has them in its own shared pool: then they stay in.
"""

from __future__ import annotations

from koordlet.model import cpuset, ledger, qos, resources, snapshot
from koordlet.model import pod as pods
from koordlet.policy.framework import proposals

_MILLI = 1000
_HELD = (ledger.Owner.RESERVED, ledger.Owner.SYSTEM, ledger.Owner.LSE, ledger.Owner.LSR)


def aside(now: snapshot.Snapshot) -> cpuset.CPUSet:
    """Isolated CPUs that are in no pool."""
    isolated = now.topology.isolated & now.topology.online
    return cpuset.CPUSet() if not isolated or _why_in(now, isolated) else isolated


def _why_in(now: snapshot.Snapshot, isolated: cpuset.CPUSet) -> str:
    """The reason that isolated CPUs stay in the pools; empty where they do not."""
    kubelet = now.kubelet
    policy = kubelet.configuration.cpu_manager_policy if kubelet and kubelet.configuration else ""
    if policy == "static" or (kubelet and kubelet.cpu and kubelet.cpu.policy == "static"):
        return "the kubelet's static policy has them in its shared pool"
    alone = {claim.uid for claim in now.ledger.claims if claim.uid}
    wanted = sum(pod.requests.get(resources.CPU, 0) for pod in now.pods if _pooled(pod, alone))
    left = now.topology.online - now.ledger.held(*_HELD) - isolated
    if left and wanted <= _MILLI * len(left):
        return ""
    return (
        f"latency-sensitive workloads request {wanted / _MILLI:g} CPUs, the LS pool has"
        f" only {len(left)} without them"
    )


def _pooled(pod: pods.Pod, alone: set[str]) -> bool:
    """Whether a workload runs in the LS pool."""
    return pod.active and pod.uid not in alone and pod.qos not in (qos.Qos.BE, qos.Qos.SYSTEM)


def tell(proposal: proposals.Proposal) -> None:
    """Say whether isolated CPUs are in the pools, and why."""
    now = proposal.now
    isolated = now.topology.isolated & now.topology.online
    if not isolated:
        return
    why = _why_in(now, isolated)
    kind, message = "IsolatedCPUs", "are in no pool; LSE and LSR workloads may name them"
    if why:
        kind = "IsolatedCPUsShared"
        fix = "boot without isolcpus=, or request fewer CPUs on this node"
        message = f"are in the pools: {why}; {fix}"
    proposal.say(kind, f"isolated CPUs {isolated} (isolcpus=) {message}")
