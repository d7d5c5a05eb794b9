"""oom_score: the order in which the OOM killer takes processes, by class, as the kubelet's.

Covers: ``oom_score_adj`` of the processes of every workload; the annotations of the co-location
peer for a pod and for single containers.
Does not cover: evicting before it comes to that (``policy.eviction.node_pressure``).

Rules:
1. Guaranteed pods and critical ones of the class system-node-critical: -997. Best-effort: 1000.
   Others: 1000 less the thousandths of the machine's memory that the container asks for, between 3
   and 999; a sidecar is never killed before the pod's regular containers.
2. An annotation wins, that of a container over that of its pod.
3. A workload of this machine's own counts by its class: LSE and LSR as guaranteed, BE as
   best-effort. An LS workload that asks for no memory is left alone, and so are SYSTEM ones.
4. The policy is off by default: the kubelet does the same for pods when a container starts.
5. The score is written to processes, even where a runtime asks koordlet before it starts a
   container: the NRI field is new, containerd 1.7 drops it silently, and koordlet reports only what
   it can verify. The kubelet's own value is there before the first instruction anyway.

* Formula: 1000 - 1000 * memory request / memory of the machine, from 3 to 999; guaranteed -997,
  best-effort 1000
* Writes: `/proc/PID/oom_score_adj` of workloads' processes
* See: `koordlet explain write PATH`
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.history import series
from koordlet.model import cgroup, decision, plan, qos, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "oom_score"
State = decision.Stateless
GUARANTEED, BEST_EFFORT = -997, 1000
_LEAST, _MOST = 3, 999
_NODE_CRITICAL = "system-node-critical"


@dataclass(frozen=True, slots=True)
class Settings:
    """``oom_score_adj`` of every workload's processes, by its class or its annotation."""


def decide(
    now: snapshot.Snapshot, _past: series.History, _settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide ``oom_score_adj`` of every process."""
    total = now.pressure.total
    proposal = proposals.Proposal(STEM, now)
    owners = dict(_owners(now.pods))
    for group, scores in now.oom_scores.items():
        owner = cgroup.owner(group, owners)
        value, reason = (None, "") if owner is None else wanted(*owner, total)
        if value is None or owner is None:
            continue
        key = owner[0].key
        proposal.why[key] = f"{value}: {reason}"
        for pid in scores:
            path = f"/proc/{pid}/oom_score_adj"
            proposal.write(path, str(value), f"{key}: {reason}", group=group)
    return proposal.decided(state)


_Owner = tuple[pods.Pod, pods.Container | None]


def _owners(pods: tuple[pods.Pod, ...]) -> Iterator[tuple[str, _Owner]]:
    for pod in pods:
        if pod.group is None or not pod.active:
            continue
        yield pod.group, (pod, None)
        yield from ((box.group, (pod, box)) for box in pod.containers if box.group is not None)


def wanted(pod: pods.Pod, box: pods.Container | None, total: int | None) -> tuple[int | None, str]:
    """The wanted score and its reason; ``None`` leaves the file alone."""
    score = _annotated(pod, box)
    if score is not None:
        return score, "its annotation"
    if pod.kube_qos is None:
        return _declared(pod, total)
    if box is None:
        # The sandbox, which is the runtime's.
        return None, ""
    if pod.kube_qos is qos.KubeQos.GUARANTEED or (
        pod.critical and pod.priority_class == _NODE_CRITICAL
    ):
        return GUARANTEED, "guaranteed" if pod.kube_qos is qos.KubeQos.GUARANTEED else "critical"
    if pod.kube_qos is qos.KubeQos.BEST_EFFORT:
        return BEST_EFFORT, "best-effort"
    return _burstable(pod, box, total)


def _annotated(pod: pods.Pod, box: pods.Container | None) -> int | None:
    """Rule 2."""
    wish = pod.wishes.oom_score
    if wish is None:
        return None
    return wish.containers.get(box.name, wish.pod) if box is not None else wish.pod


def _declared(pod: pods.Pod, total: int | None) -> tuple[int | None, str]:
    """Rule 3."""
    if pod.qos in (qos.Qos.LSE, qos.Qos.LSR):
        return GUARANTEED, f"class {pod.qos.value}"
    if pod.qos is qos.Qos.BE:
        return BEST_EFFORT, "class BE"
    asked = pod.requests.get(resources.MEMORY, 0)
    if pod.qos is not qos.Qos.LS or not asked or not total:
        return None, ""
    return _clamped(1000 - 1000 * asked // total), f"requests {asked} of {total} bytes"


def _burstable(pod: pods.Pod, box: pods.Container, total: int | None) -> tuple[int | None, str]:
    if not total:
        return None, ""
    counted = [each for each in pod.containers if each.kind is not pods.Kind.EPHEMERAL]
    share = 0
    if pod.own_requests.get(resources.MEMORY) and counted:
        spare = pod.own_requests[resources.MEMORY] - sum(map(_memory, counted))
        share = max(0, spare) // len(counted)
    asked = _memory(box) + share
    value = 1000 - 1000 * asked // total
    if box.kind is pods.Kind.SIDECAR:
        regular = [_memory(each) for each in counted if each.kind is pods.Kind.REGULAR]
        least = min(regular, default=0) + share
        value = min(value, 1000 - 1000 * least // total)
    return _clamped(value), f"requests {asked} of {total} bytes"


def _memory(box: pods.Container) -> int:
    return box.requests.get(resources.MEMORY, 0)


def _clamped(value: int) -> int:
    return max(_LEAST, min(_MOST, value))


POLICY = declaration.Policy(
    stem=STEM,
    summary="which processes the OOM killer takes first",
    protects="it lets best-effort work be killed first",
    decide=decide,
    settings=Settings(),
    default_mode=plan.Mode.OFF,
)
