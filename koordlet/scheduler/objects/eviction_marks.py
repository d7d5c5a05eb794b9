"""What a pod says of its own end: whether it may be moved, whether it is up, why it ends.

Covers: conditions Ready and DisruptionTarget, the annotations of movers and of static pods.
Does not cover: what follows from it (``scheduler.disruption``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import disruption_target, pod_annotations
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import Body

#: Annotations: ``true`` or ``false``; who evicts the pod and why, as JSON.
MOVABLE, EVICTION = "koordlet.io/movable", pod_annotations.EVICTION
#: Seconds from an agent's note to the eviction that it is about: an older one was refused.
_NOTED = 60.0
#: In that JSON: the replacement shall come to the front of the queue.
REQUEUE, FRONT = "requeue", "Front"
#: The peer's: somebody else is asked to move the pod.
SOFT_EVICTION = "scheduling.koordinator.sh/soft-eviction"
_MIRROR, _SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"
_SHUTDOWN = "shutdown"
_CAUSES = {
    "PreemptionByScheduler": "Preemption",
    "EvictionByEvictionAPI": "Eviction",
    "DeletionByTaintManager": "TaintNoExecute",
    "TerminationByKubelet": pod_annotations.NODE_PRESSURE,
    "DeletionByPodGC": "PodGC",
}


@dataclass(frozen=True, slots=True)
class Leaving:
    """The beginning of a pod's end."""

    #: Empty: no condition says; a user or the pod's controller deleted it.
    cause: str
    #: The component that evicts it, by its annotation.
    by: str
    at: float
    #: From when on it counts nowhere that it is still there; 0 where nobody says.
    overdue: float = 0.0
    #: Its replacement shall come to the front of the queue.
    front: bool = False


def true_conditions(status: Body) -> dict[str, Body]:
    """The conditions of a pod that are true, by type; of several of a type the first."""
    return {
        str(condition.get("type")): condition
        for condition in reversed(wire.bodies(status, "conditions"))
        if condition.get("status") == "True"
    }


def read(meta: Body, conditions: Mapping[str, Body]) -> dict[str, Any]:
    """Fields of a placed ``Pod``, by its true conditions; what cannot be read says nothing."""
    target = conditions.get(disruption_target.TYPE)
    cause = "" if target is None else _cause(target)
    notes = wire.mapping(meta, "annotations")
    fields: dict[str, Any] = {"ready": "Ready" in conditions}
    if MOVABLE in notes:
        fields["movable"] = notes[MOVABLE] == "true"
        fields["immovable"] = (
            f'its annotation {MOVABLE} is "false"' if notes[MOVABLE] == "false" else ""
        )
    if _MIRROR in notes or notes.get(_SOURCE, "api") != "api":
        fields["immovable"] = "it is a static pod, which only its node starts and ends"
    if meta.get("deletionTimestamp") is not None or cause:
        note = _note(notes)
        by, span = note.get("by"), _span(meta)
        # An agent evicts through the API, or deletes, which leaves no condition.
        if cause in {"", _CAUSES["EvictionByEvictionAPI"]} and _is_pressure(note, span[0]):
            cause = pod_annotations.NODE_PRESSURE
        fields["leaving"] = Leaving(
            cause,
            by if isinstance(by, str) else "",
            *span,
            front=bool(cause) and note.get(REQUEUE) == FRONT,
        )
    return fields


def _note(notes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Who evicts a pod and how, by its annotation; empty where nobody does."""
    if EVICTION not in notes:
        return {}
    try:
        body = json.loads(notes[EVICTION])
    except (TypeError, ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}


def _is_pressure(note: Mapping[str, Any], began: float) -> bool:
    """Whether an agent evicts a pod by its note, and not somebody else long after it."""
    try:
        noted = moment.parse(note.get("time"))
    except ValueError:
        return False
    return note.get("cause") == pod_annotations.NODE_PRESSURE and abs(began - noted) <= _NOTED


def _cause(condition: Body) -> str:
    reason = str(condition.get("reason") or "")
    if reason == "TerminationByKubelet" and _SHUTDOWN in str(condition.get("message")):
        return "NodeShutdown"
    return _CAUSES.get(reason, reason)


def _span(meta: Body) -> tuple[float, float]:
    """When its end began, and when it is overdue; 0 where nobody says.

    The API's timestamp is that of its deadline; overdue it is one more grace period later, as the
    peer has it: the kubelet may have begun late.
    """
    grace = meta.get("deletionGracePeriodSeconds")
    try:
        deadline = moment.parse(meta.get("deletionTimestamp"))
    except ValueError:
        return 0.0, 0.0
    seconds = grace if isinstance(grace, int) else 0
    return deadline - seconds, deadline + seconds
