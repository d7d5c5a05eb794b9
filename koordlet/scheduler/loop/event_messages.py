"""Events and conditions as API objects.

Covers: their shape and texts, which are those of the peer. Does not cover: sending them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from koordlet.kubeapi import disruption_target, kinds
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.migration.job import MigrationJob
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas.registry import QuotaNotice
from koordlet.scheduler.rescheduling.move_plan import MovePlan
from koordlet.scheduler.reservation.spec import ReservationSpec

#: The API server takes no longer notes, in bytes.
_LONGEST = 1024
#: Of it, for what comes before a list of pods.
_HEAD = 32
_KINDS = {
    "Deployment": "apps/v1",
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
        return moment.spell(self.wall())

    def event(self, note: EventMessage) -> Body:
        """An object of ``events.k8s.io/v1``."""
        pod, about = note.pod, note.regarding
        regarding = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        if about is not None:
            version = _KINDS.get(about.kind, "")
            regarding = {"apiVersion": version, "kind": about.kind, "name": about.name}
        regarding["namespace"] = pod.namespace
        kind = "Warning" if note.warning else "Normal"
        scheduler = pod.pod_class.scheduler
        return self._body(regarding, scheduler, note.action, note.reason, kind, note.text)

    def about_reservation(
        self, spec: ReservationSpec, reason: str, text: str, *, warning: bool = False
    ) -> Body:
        """An event about a Reservation, which has no namespace: it goes to the default one."""
        regarding = {
            "apiVersion": kinds.RESERVATIONS.api_version,
            "kind": kinds.RESERVATIONS.name,
            "name": spec.name,
            "uid": spec.uid,
        }
        kind = "Warning" if warning else "Normal"
        return self._body(regarding, spec.scheduler, "Scheduling", reason, kind, text)

    def about_migration(
        self, job: MigrationJob, reason: str, text: str, *, warning: bool = False
    ) -> Body:
        """An event about a PodMigrationJob."""
        regarding = _without_namespace(kinds.POD_MIGRATION_JOBS, job)
        severity = "Warning" if warning else "Normal"
        return self._body(regarding, "koordlet-descheduler", "Migrating", reason, severity, text)

    def about_plan(self, plan: MovePlan, reason: str, text: str, *, warning: bool = False) -> Body:
        """An event about a MovePlan."""
        regarding = _without_namespace(kinds.MOVE_PLANS, plan)
        severity = "Warning" if warning else "Normal"
        return self._body(regarding, "koordlet-descheduler", "Planning", reason, severity, text)

    def about_quota(
        self, about: ElasticQuota | QuotaNotice, scheduler: str, action: str, reason: str, text: str
    ) -> Body:
        """An event about an ElasticQuota; a notice may be about a profile, and is a warning."""
        warns = isinstance(about, QuotaNotice)
        regarding = {
            "apiVersion": about.kind.api_version,
            "kind": about.kind.name,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
        severity = "Warning" if warns else "Normal"
        return self._body(regarding, scheduler, action, reason, severity, text)

    def _body(  # noqa: PLR0917 -- the fields of an event
        self, regarding: Body, scheduler: str, action: str, reason: str, kind: str, text: str
    ) -> Body:
        # No part of a name ends in a dash or a dot, wherever it was cut.
        name = f"{regarding['name'][:200].rstrip('-.')}.{uuid.uuid4().hex[:16]}"
        return {
            "metadata": {"name": name, "namespace": regarding.get("namespace", "default")},
            "eventTime": self.moment(),
            "reportingController": scheduler,
            "reportingInstance": f"{scheduler}-{self.instance}"[:128],
            "action": action,
            "reason": reason,
            "regarding": regarding,
            "note": cut(text),
            "type": kind,
        }

    def condition(self, refusal: Refusal, *, new: bool) -> Body:
        """The status of a pod without a node; the time of a condition that is not new stays."""
        condition: Body = {
            "type": "PodScheduled",
            "status": "False",
            "reason": refusal.reason,
            "message": refusal.message,
        }
        if new:
            condition["lastTransitionTime"] = self.second()
        if refusal.pod.generation:
            condition["observedGeneration"] = refusal.pod.generation
        status = {"conditions": [condition], "nominatedNodeName": refusal.node or None}
        return _status(refusal.pod, status)

    def disruption_target(self, victim: Pod, by: Refusal) -> Body:
        """The status of a victim."""
        whom = "a higher priority pod"
        if by.group:
            trigger = f"preemptor: {by.group}, triggerPod: {by.pod.key}"
            whom = f"higher priority pods, {trigger}"
        condition = disruption_target.condition(
            reason="PreemptionByScheduler",
            message=f"{victim.pod_class.scheduler}: preempting to accommodate {whom}",
            at=self.second(),
            generation=victim.generation,
        )
        return _status(victim, {"conditions": [condition]})


def _status(pod: Pod, status: Body) -> Body:
    """A patch of a pod's status; of no other pod that has its name by now."""
    return {"metadata": {"uid": pod.uid}, "status": status}


def preempted(victim: Pod, by: Refusal) -> EventMessage:
    """The event of a victim."""
    return EventMessage(victim, "Preempted", "Preempting", f"Preempted {_by(victim, by)}")


def preempted_together(
    kind: str, owner: str, several: Sequence[tuple[Pod, Refusal]]
) -> Iterator[EventMessage]:
    """The victims of an owner, each of them named, in as few events as hold the names."""
    regarding = Regarding(kind=kind, name=owner) if kind else None
    batch: list[tuple[Pod, Refusal]] = []
    texts: list[str] = []
    left = _LONGEST - _HEAD
    for victim, by in several:
        text = f"{victim.name} {_by(victim, by)}"
        size = len(f"{text}, ".encode())
        if batch and size > left:
            yield _victims(batch, texts, regarding)
            batch, texts, left = [], [], _LONGEST - _HEAD
        batch.append((victim, by))
        texts.append(text)
        left -= size
    if batch:
        yield _victims(batch, texts, regarding)


def _victims(
    batch: Sequence[tuple[Pod, Refusal]], texts: Sequence[str], regarding: Regarding | None
) -> EventMessage:
    first, by = batch[0]
    if len(batch) == 1:
        return preempted(first, by)
    text = f"Preempted {len(batch)} pods: {', '.join(texts)}"
    return EventMessage(first, "Preempted", "Preempting", text, regarding=regarding)


def _by(victim: Pod, by: Refusal) -> str:
    if by.group:
        return f"by pod group {by.group} on node {victim.node}"
    return f"by pod {by.pod.uid} on node {by.node}"


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


def _without_namespace(kind: kinds.Kind, about: MigrationJob | MovePlan) -> Body:
    """An object without a namespace: its events go to the default one."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": about.name,
        "uid": about.uid,
    }
