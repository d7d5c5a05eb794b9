"""What a pod says of its own end: whether it may be moved, whether it is up, why it ends.

Covers: conditions Ready and DisruptionTarget, the annotations of movers and of static pods.
Does not cover: what follows from it (``scheduler.disruption``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import Body

#: Annotations: ``true`` or ``false``; who evicts the pod and why, as JSON.
MOVABLE, EVICTION = "koordlet.io/movable", "koordlet.io/eviction"
#: The peer's: somebody else is asked to move the pod.
SOFT_EVICTION = "scheduling.koordinator.sh/soft-eviction"
_MIRROR, _SOURCE = "kubernetes.io/config.mirror", "kubernetes.io/config.source"
_SHUTDOWN = "shutdown"
_CAUSES = {
    "PreemptionByScheduler": "Preemption",
    "EvictionByEvictionAPI": "Eviction",
    "DeletionByTaintManager": "TaintNoExecute",
    "TerminationByKubelet": "NodePressure",
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


def true_conditions(status: Body) -> dict[str, Body]:
    """The conditions of a pod that are true, by type; of several of a type the first."""
    return {
        str(condition.get("type")): condition
        for condition in reversed(wire.bodies(status, "conditions"))
        if condition.get("status") == "True"
    }


def read(meta: Body, conditions: Mapping[str, Body]) -> dict[str, Any]:
    """Fields of a placed ``Pod``, by its true conditions; what cannot be read says nothing."""
    target = conditions.get("DisruptionTarget")
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
        by = asker(notes)
        fields["leaving"] = Leaving(cause, by, *_span(meta))
    return fields


def asker(notes: Mapping[str, Any]) -> str:
    """Who evicts a pod, by its annotation; empty where nobody does."""
    try:
        body = json.loads(notes.get(EVICTION, "{}"))
    except (TypeError, ValueError, RecursionError):
        return ""
    by = body.get("by") if isinstance(body, Mapping) else ""
    return by if isinstance(by, str) else ""


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
