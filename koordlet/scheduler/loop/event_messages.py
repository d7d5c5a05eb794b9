"""Events and conditions as API objects.

Covers: their shape and texts, which are those of the peer. Does not cover: sending them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.spec import ReservationSpec

#: The API server takes no longer notes.
_LONGEST = 1024
_KINDS = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "ReplicationController": "v1",
}

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regarding:
    """The object of an event that is not about a pod."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class EventMessage:
    """The content of one event."""

    pod: Pod
    reason: str
    action: str
    text: str
    warning: bool = False
    regarding: Regarding | None = None


@dataclass(frozen=True, slots=True)
class EventBuilder:
    """Builds events and conditions in the name of this process."""

    instance: str
    wall: Callable[[], float]

    def moment(self) -> str:
        """Now, as a MicroTime."""
        now = dt.datetime.fromtimestamp(self.wall(), dt.UTC)
        return now.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def second(self) -> str:
        """Now, as a Time."""
        now = dt.datetime.fromtimestamp(self.wall(), dt.UTC)
        return now.isoformat(timespec="seconds").replace("+00:00", "Z")

    def event(self, note: EventMessage) -> Body:
        """An object of ``events.k8s.io/v1``."""
        pod = note.pod
        about = note.regarding
        regarding = (
            {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
            if about is None
            else {"apiVersion": _KINDS.get(about.kind, ""), "kind": about.kind, "name": about.name}
        )
        name = regarding["name"]
        return {
            "metadata": {
                "name": f"{name[:200]}.{uuid.uuid4().hex[:16]}",
                "namespace": pod.namespace,
            },
            "eventTime": self.moment(),
            "reportingController": pod.pod_class.scheduler,
            "reportingInstance": f"{pod.pod_class.scheduler}-{self.instance}"[:128],
            "action": note.action,
            "reason": note.reason,
            "regarding": {**regarding, "namespace": pod.namespace},
            "note": cut(note.text),
            "type": "Warning" if note.warning else "Normal",
        }

    def about_reservation(
        self, spec: ReservationSpec, reason: str, text: str, *, warning: bool = False
    ) -> Body:
        """An event about a Reservation, which has no namespace: it goes to the default one."""
        return {
            "metadata": {
                "name": f"{spec.name[:200]}.{uuid.uuid4().hex[:16]}",
                "namespace": "default",
            },
            "eventTime": self.moment(),
            "reportingController": spec.scheduler,
            "reportingInstance": f"{spec.scheduler}-{self.instance}"[:128],
            "action": "Scheduling",
            "reason": reason,
            "regarding": {
                "apiVersion": "scheduling.koordinator.sh/v1alpha1",
                "kind": "Reservation",
                "name": spec.name,
                "uid": spec.uid,
            },
            "note": cut(text),
            "type": "Warning" if warning else "Normal",
        }

    def condition(self, refusal: Refusal, before: tuple[str, str, str]) -> Body:
        """The status of a pod without a node; the time of a condition that was false stays."""
        condition: Body = {
            "type": "PodScheduled",
            "status": "False",
            "reason": refusal.reason,
            "message": refusal.message,
        }
        if not before[0]:
            condition["lastTransitionTime"] = self.second()
        return {"status": {"conditions": [condition], "nominatedNodeName": refusal.node or None}}

    def disruption_target(self, scheduler: str) -> Body:
        """The status of a victim."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self.second(),
        }
        return {"status": {"conditions": [condition]}}


def preempted(victim: Pod, by: Refusal) -> EventMessage:
    """The event of a victim."""
    text = f"Preempted by pod {by.pod.uid} on node {by.node}"
    return EventMessage(victim, "Preempted", "Preempting", text)


def together(kind: str, owner: str, several: Sequence[Bind]) -> EventMessage:
    """One event for all pods of an owner."""
    first = several[0]
    if len(several) == 1:
        text = f"Successfully assigned {first.pod.key} to {first.node}"
        return EventMessage(first.pod, "Scheduled", "Binding", text)
    named = ", ".join(f"{bind.pod.name} to {bind.node}" for bind in several)
    text = f"Successfully assigned {len(several)} pods: {named}"
    regarding = Regarding(kind=kind, name=owner) if kind else None
    return EventMessage(first.pod, "Scheduled", "Binding", text, regarding=regarding)


def cut(text: str) -> str:
    """Cut a text to what the API server accepts."""
    raw = text.encode()
    if len(raw) <= _LONGEST:
        return text
    return raw[: _LONGEST - 4].decode(errors="ignore") + " ..."
