"""All annotations of one pod, decoded.

Covers: which decoder reads which key, a pod's own strategies, over the node's; a broken one costs
only itself; consent to eviction, core scheduling, bandwidth, ``oom_score_adj``.
Does not cover: what the scheduler reads as well (``kubeapi.pod_annotations``), QoS and priority
labels (``kubeapi.classes``).

Rules of consent to eviction, as the peer has them:
1. ``eviction-enabled`` is consent only as exactly ``true``.
2. A missing policy allows every feature. One that is empty, or no JSON list of texts, allows none:
   whoever wrote something wanted less than everything.
3. A priority that is no int32 is zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import pod_annotations, shapes
from koordlet.model import strategies, wishes
from koordlet.workloads import strategy_reader

CPU_BURST = "koordinator.sh/cpuBurst"
CPU_QOS = "koordinator.sh/cpuQOS"
MEMORY_QOS = "koordinator.sh/memoryQOS"
BLKIO_QOS = "koordinator.sh/blkioQOS"
NETWORK_QOS = "koordinator.sh/networkQOS"
EVICTION_ENABLED = "koordinator.sh/eviction-enabled"
EVICTION_POLICY = "koordinator.sh/eviction-policy"
EVICTION_PRIORITY = "koordinator.sh/eviction-priority"
OOM_SCORE = "koordinator.sh/oom-score-adj"
OOM_SCORE_OF_CONTAINERS = "koordinator.sh/oom-score-adj-spec"
CORE_SCHED_GROUP = "koordinator.sh/core-sched-group-id"
CORE_SCHED_POLICY = "koordinator.sh/core-sched-policy"
REAL_TIME = "koordlet.io/real-time"

#: Limits as quantities of bits per second.
_network = pod_annotations.record(
    wishes.Network,
    ingress=("ingressLimit", shapes.units),
    egress=("egressLimit", shapes.units),
)

#: Annotation to (field of ``wishes.Wishes``, decoder).
DECODERS: Mapping[str, tuple[str, pod_annotations.Decoder[Any]]] = {
    pod_annotations.RESOURCE_STATUS: ("grant", pod_annotations.grant),
    pod_annotations.RESOURCE_SPEC: ("binding", pod_annotations.binding),
    pod_annotations.NUMA_SPEC: ("numa", pod_annotations.numa),
    CPU_BURST: ("cpu_burst", strategy_reader.annotation(strategies.CpuBurst)),
    CPU_QOS: ("cpu_qos", strategy_reader.annotation(strategies.CpuQos)),
    MEMORY_QOS: ("memory_qos", strategy_reader.annotation(strategies.MemoryQos)),
    BLKIO_QOS: ("blkio_qos", strategy_reader.annotation(strategies.BlkioQos)),
    NETWORK_QOS: ("network", _network),
    REAL_TIME: ("real_time", pod_annotations.of(shapes.boolean)),
}
#: Without one of these keys there is nothing to decode.
_OTHERS = frozenset(
    {
        *(EVICTION_ENABLED, EVICTION_POLICY, EVICTION_PRIORITY),
        *(OOM_SCORE, OOM_SCORE_OF_CONTAINERS, CORE_SCHED_GROUP, CORE_SCHED_POLICY),
    }
)

_INT = re.compile(r"[+-]?[0-9]{1,10}\Z", re.ASCII)
_INT32 = 2**31
#: What /proc/PID/oom_score_adj takes (proc_pid_oom_score_adj(5)).
_LOW, _HIGH = -1000, 1000
_SCORES = pod_annotations.of(shapes.table(shapes.integer(_LOW, _HIGH)))
_CORE_POLICIES = ("", "none", "exclusive")


def decode(
    labels: Mapping[str, str], notes: Mapping[str, str], problems: list[str]
) -> wishes.Wishes:
    """Decode all labels and annotations; invalid ones are reported and ignored."""
    keys = labels.keys() | notes.keys()
    if keys.isdisjoint(_OTHERS) and keys.isdisjoint(DECODERS):
        return wishes.NONE
    values: dict[str, Any] = {
        name: pod_annotations.read(key, notes, decoder, problems)
        for key, (name, decoder) in DECODERS.items()
        if key in notes
    }
    return wishes.Wishes(
        eviction=eviction(labels, notes, problems),
        oom_score=oom_score(notes, problems),
        core_sharing=core_sharing(labels, problems),
        **values,
    )


def eviction(
    labels: Mapping[str, str], notes: Mapping[str, str], problems: list[str]
) -> wishes.Eviction:
    """Eviction settings from label and annotations together."""
    return wishes.Eviction(
        enabled=labels.get(EVICTION_ENABLED) == "true",
        features=_features(notes.get(EVICTION_POLICY), problems),
        priority=int32(notes, EVICTION_PRIORITY, problems) or 0,
    )


def _features(text: str | None, problems: list[str]) -> frozenset[str] | None:
    if text is None:
        return None
    try:
        listed = shapes.parse(text) if text else []
        if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
            return frozenset(listed)
        why = "expected a list of texts"
    except ValueError as error:
        why = str(error)
    problems.append(f"annotation {EVICTION_POLICY}: {why}; the pod is not evicted")
    return frozenset()


def oom_score(notes: Mapping[str, str], problems: list[str]) -> wishes.OomScore | None:
    """Scores of the pod and of its containers."""
    pod = int32(notes, OOM_SCORE, problems)
    if pod is not None and not _LOW <= pod <= _HIGH:
        problems.append(f"{OOM_SCORE}: expected {_LOW} to {_HIGH}, found {pod}")
        pod = None
    containers = pod_annotations.read(OOM_SCORE_OF_CONTAINERS, notes, _SCORES, problems) or {}
    return (
        wishes.OomScore(pod=pod, containers=containers) if pod is not None or containers else None
    )


def core_sharing(labels: Mapping[str, str], problems: list[str]) -> wishes.CoreSharing | None:
    """The group that a pod shares cores with, and its policy."""
    group, policy = labels.get(CORE_SCHED_GROUP), labels.get(CORE_SCHED_POLICY)
    if policy is not None and policy not in _CORE_POLICIES:
        problems.append(f"label {CORE_SCHED_POLICY}: {shapes.shown(policy)} is not a policy")
        policy = None
    if group is None and policy is None:
        return None
    return wishes.CoreSharing(group=group, policy=policy)


def int32(texts: Mapping[str, str], key: str, problems: list[str]) -> int | None:
    """Parse a whole number; ``None`` if it is absent or invalid."""
    text = texts.get(key)
    if text is None:
        return None
    value = int(text) if _INT.match(text) else _INT32
    if -_INT32 <= value < _INT32:
        return value
    problems.append(f"{key}: {shapes.shown(text)} is not a 32-bit number")
    return None
