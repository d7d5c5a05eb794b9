"""bound_quota: no CPU quota for pods with exclusive CPUs.

Covers: the quota of such pods and their containers, also before a container starts.
Does not cover: which CPUs they have (``exclusive_cpus``), quotas of everybody else.

A limit of 4 CPUs on 4 CPUs takes nothing from anybody, but the kernel counts it in slices of each
100 ms on every CPU, and throttles a container that never used more than its own.

Rules:
1. Only pods of a kubelet: the limit of a standalone workload is what its operator wrote.
2. What the kubelet's static policy holds is the kubelet's, its quota too.
3. The pod's group loses its quota first: v1 lets no group have more than the one above.

* Formula: quota = none
* Writes: `cpu.max`, on v1 `cpu.cfs_quota_us`, of such pods and their containers
* See: `koordlet explain pod NS/NAME`
* More: cpu.md
"""

from __future__ import annotations

from koordlet.history import series
from koordlet.model import adjustment, cgroup, decision, limits, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "bound_quota"
State = decision.Stateless


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """No CPU quota for pods with exclusive CPUs."""


def decide(
    now: snapshot.Snapshot, _past: series.History, _settings: Settings, state: State
) -> decision.Decision[State]:
    """Remove the quota of every pod with exclusive CPUs."""
    proposal = proposals.Proposal(STEM, now)
    for pod in now.pods:
        if not _bound(now, pod):
            continue
        proposal.why[pod.key] = "no CPU quota: it has exclusive CPUs"
        # A limit of the whole pod is the quota of each of its containers, too: kubelet 1.34.
        whole = resources.CPU in pod.limits
        limited = [box.group for box in pod.containers if whole or resources.CPU in box.limits]
        for group in (pod.group, *cgroup.with_scopes(limited, pod.group)):
            if group is not None and group in now.groups:
                period = limits.cpu_period(now.groups[group])
                free = limits.cpu_quota(now.layout, group, None, period_usec=period)
                reason = f"{pod.qos.value} {pod.key}: no CPU quota on its exclusive CPUs"
                proposal.write_settings(free, group, reason)
    return proposal.decided(state)


def admit(
    now: snapshot.Snapshot, _settings: Settings, _state: State, pod: pods.Pod, _container: str
) -> adjustment.Adjustment:
    """Adjust a container before it starts."""
    if not _bound(now, pod):
        return adjustment.Adjustment()
    return adjustment.Adjustment(cpu_milli=-1, reasons={STEM: f"{pod.key} has exclusive CPUs"})


def _bound(now: snapshot.Snapshot, pod: pods.Pod) -> bool:
    claim = now.ledger.of(pod.uid)
    limited = resources.CPU in pod.limits or any(resources.CPU in b.limits for b in pod.containers)
    return claim is not None and not claim.kubelet and pod.kube_qos is not None and limited


POLICY = declaration.Policy(
    stem=STEM,
    summary="no CPU quota for pods with exclusive CPUs",
    protects="it keeps pods from being throttled on their exclusive CPUs",
    decide=decide,
    settings=Settings(),
    admit=admit,
    timeless=True,
)
