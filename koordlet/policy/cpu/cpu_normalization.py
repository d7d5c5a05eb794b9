"""cpu_normalization: the CPU limits of shared pods, scaled to how fast this node's CPUs are.

Covers: the ratio of the node, the quota of LS pods and pods without a class.
Does not cover: computing the ratio (``model.node_ratios`` or the peer's manager do, from a table of
models), the limits of best-effort pods (``policy.best_effort.batch_limits`` scales them alike).

A node whose CPUs do 1.2 times the work of the reference offers 1.2 times the CPUs to the scheduler,
so a pod's limit of one CPU is 1 / 1.2 of a CPU here: quota = limit / ratio, rounded up.

Rules:
1. The ratio is the annotation ``cpu-normalization-ratio``, from 1 to 5; on a machine without a Node
   that of ``node.cpuNormalization``. Anything else is said and changes nothing. Pods that have CPUs
   of their own are not scaled.
2. Where ``cpu_burst`` raises the same limit, the smaller of both counts: a burst begins above the
   scaled limit and ends at the node's.

* Formula: quota = limit / ratio, rounded up; ratio from 1 to 5
* Writes: `cpu.max`, on v1 `cpu.cfs_quota_us`, of shared pods
* See: `koordlet explain pod NS/NAME`
* More: cpu.md
"""

from __future__ import annotations

import math

from koordlet.history import series
from koordlet.model import (
    adjustment,
    decision,
    limits,
    node_ratios,
    plan,
    qos,
    resources,
    snapshot,
    strategy_field,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "cpu_normalization"
State = decision.Stateless

ANNOTATION = node_ratios.NORMALIZATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """CPU quotas of shared pods, scaled to the speed of this node's CPUs."""

    #: Highest normalization ratio; larger ones are reduced to it; null sets no bound.
    max_ratio: float | None = strategy_field.bound(1, 5, form="number")


def ratio(now: snapshot.Snapshot, most: float | None = None) -> float:
    """Speed of the CPUs relative to the reference; ``ValueError`` for an invalid annotation."""
    text = now.node.annotations.get(ANNOTATION)
    if text is None:
        return 1.0
    speed = node_ratios.parse(text)
    if speed is None:
        expected = f"{node_ratios.LEAST} to {node_ratios.MOST}"
        msg = f"annotation {ANNOTATION}: expected {expected}, found {text[:40]!r}"
        raise ValueError(msg)
    return speed if most is None else min(speed, most)


def scaled(milli: int, by: float) -> int:
    """An amount of CPU time on a node of this ratio, rounded up."""
    # The peer computes with two decimals; more would be noise of the division.
    return math.ceil(round(milli / by, 6))


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """The quota of every pod of the shared pool."""
    proposal = proposals.Proposal(STEM, now)
    try:
        by = ratio(now, settings.max_ratio)
    except ValueError as error:
        proposal.say("CPUNormalizationInvalid", str(error), reason="BadRatio")
        return proposal.decided(state)
    proposal.why["ratio"] = f"{by:.2f}"
    if now.node.ratios is not None:
        proposal.why["table"] = now.node.ratios.reason
    for pod in now.pods if by > 1.0 else ():
        if not _concerned(now, pod):
            continue
        boxes = ((box.group, _limit(pod, box)) for box in pod.containers)
        for group, milli in ((pod.group, pod.limits.get(resources.CPU)), *boxes):
            if group is None or milli is None or group not in now.groups:
                continue
            period = limits.cpu_period(now.groups[group])
            quota = limits.cpu_quota(now.layout, group, scaled(milli, by), period_usec=period)
            proposal.write_settings(quota, group, f"{pod.key}: {milli} m on CPUs of ratio {by:.2f}")
    return proposal.decided(state)


def admit(
    now: snapshot.Snapshot, settings: Settings, _state: State, pod: pods.Pod, container: str
) -> adjustment.Adjustment:
    """A container that is about to start; a bad ratio is said by the clock's decision."""
    try:
        by = ratio(now, settings.max_ratio)
    except ValueError:
        return adjustment.Adjustment()
    box = next((box for box in pod.containers if box.name == container), None)
    milli = None if box is None else _limit(pod, box)
    if milli is None or by <= 1.0 or not _concerned(now, pod):
        return adjustment.Adjustment()
    return adjustment.Adjustment(
        cpu_milli=scaled(milli, by), reasons={STEM: f"{milli} m on CPUs of ratio {by:.2f}"}
    )


def _limit(pod: pods.Pod, box: pods.Container) -> int | None:
    """A container's limit; without one of its own the kubelet gives it the quota of the pod."""
    return box.limits.get(resources.CPU, pod.limits.get(resources.CPU))


def _concerned(now: snapshot.Snapshot, pod: pods.Pod) -> bool:
    shared = pod.raw_qos in (qos.Qos.LS, None) and pod.kube_qos is not qos.KubeQos.BEST_EFFORT
    return shared and pod.kube_qos is not None and now.ledger.of(pod.uid) is None


POLICY = declaration.Policy(
    stem=STEM,
    summary="CPU limits of shared pods, scaled to the speed of the node's CPUs",
    decide=decide,
    settings=Settings(),
    admit=admit,
    timeless=True,
    default_mode=plan.Mode.SHADOW,
)
