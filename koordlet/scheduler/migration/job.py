"""A PodMigrationJob: what is wanted, how far it is.

Covers: reading and making the object, with the peer's names. Does not cover: its life (``flow``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.model import duration, moment
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import traits
from koordlet.scheduler.descheduling.evictor_settings import MODES, RESERVATION_FIRST
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import parsing
from koordlet.scheduler.reservation.spec import Condition

#: Annotations of the peer: why, on whose behalf, by which process, and that it may begin.
REASON, TRIGGER = "koordinator.sh/evict-reason", "koordinator.sh/evict-trigger"
CREATED_BY = "koordinator.sh/job-created-by"
PASSED = "descheduler.koordinator.sh/passed-arbitration"
#: Ours: ``"true"`` ends a job; the workload of its pod (``KIND/NAME``), the node that it left.
ABORT = "koordlet.io/abort"
WORKLOAD, SOURCE = "koordlet.io/workload", "koordlet.io/source-node"
#: Ours: the UID of the plan that it is a part of; ``"true"``: room is held, and nobody is evicted
#: until the plan says so.
PLAN, WAITS = "koordlet.io/move-plan", "koordlet.io/waits-for-plan"
#: Ours: ``"true"`` moves the whole gang of the pod; the job that leads, on those that follow.
GANG, LEADER = "koordlet.io/migrate-gang", "koordlet.io/gang-leader"
#: Ours: for so long the pod's workload avoids the node that it left, ``2h``.
AVOID = "koordlet.io/avoid"
#: Conditions that others ask for, too (``flow``).
SCHEDULED, EVICTION = "ReservationScheduled", "Eviction"
#: Whoever asks for a job by hand, as the limiter knows it.
BY_HAND = "migrate"


class Phase(enum.StrEnum):
    """How far a job is."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ABORTED = "Aborted"

    @property
    def over(self) -> bool:
        """Whether the phase is final."""
        return self in {Phase.SUCCEEDED, Phase.FAILED, Phase.ABORTED}


@dataclass(frozen=True, slots=True)
class PodRef:
    """A pod by name; an empty UID means whichever has the name."""

    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, pod: Pod) -> PodRef:
        """The reference to a pod."""
        return cls(pod.namespace, pod.name, pod.uid)

    def body(self) -> dict[str, str]:
        """As objects have it."""
        return {"namespace": self.namespace, "name": self.name, "uid": self.uid}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The stored status."""

    phase: Phase = Phase.PENDING
    #: The type of the condition that changed last; ``Complete`` at the end.
    status: str = ""
    reason: str = ""
    message: str = ""
    #: Where room is held.
    node: str = ""
    #: The replacement.
    pod: PodRef | None = None
    conditions: tuple[Condition, ...] = ()

    def condition(self, kind: str) -> Condition | None:
        """One condition by its type."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def body(self) -> dict[str, Any]:
        """As the object has it; ``None`` removes what is not so any more."""
        return {
            "phase": self.phase.value,
            "status": self.status or None,
            "reason": self.reason or None,
            "message": self.message or None,
            "nodeName": self.node or None,
            "podRef": None if self.pod is None else self.pod.body(),
            "conditions": [condition.body() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationJob:
    """One job."""

    name: str
    uid: str
    revision: str = ""
    #: Seconds since 1970.
    created: float = 0.0
    pod: PodRef
    mode: str = RESERVATION_FIRST
    #: ``None``: it waits for ever.
    ttl: float | None = None
    paused: bool = False
    aborts: bool = False
    #: The reservation that it uses; empty until there is one.
    reservation: str = ""
    #: What its author wants of the reservation that is made.
    template: Body = field(default_factory=dict)
    #: How its pod goes: ``Eviction``, ``Delete``, ``SoftEviction``; empty: as is configured.
    policy: str = ""
    grace_seconds: int | None = None
    #: Why, and who wants it, as the limiter knows movers.
    reason: str = ""
    by: str = BY_HAND
    workload: str = ""
    source: str = ""
    #: Seconds for which its workload avoids the node that it left; ``None``: as long as usual.
    avoid_seconds: float | None = None
    #: The UID of its plan, and whether that has yet to let it evict.
    plan: str = ""
    waits: bool = False
    #: Its pod's whole gang is to move; and the job that leads, where this one follows.
    whole_gang: bool = False
    leader: str = ""
    #: Why the object cannot be carried out.
    fault: str = ""
    #: Its annotation passes the rates of jobs, as the peer has it.
    urgent: bool = False
    status: JobStatus = field(default_factory=JobStatus)

    @property
    def reserves(self) -> bool:
        """Whether room is held first."""
        return self.mode == RESERVATION_FIRST

    @property
    def active(self) -> bool:
        """Whether it is not over."""
        return not self.status.phase.over


def read(body: Body, mode: str = RESERVATION_FIRST) -> MigrationJob:
    """A job, whatever stands there: one that cannot be read says why.

    ``mode``: that of a job which does not name its own.
    """
    try:
        return decode(body, mode)
    except BadObjectError as error:
        meta, written = objects.metadata(body), objects.part(body, "status")
        phase = str(written.get("phase"))
        created, status = (
            0.0,
            JobStatus(phase=Phase(phase) if phase in set(Phase) else Phase.PENDING),
        )
        with contextlib.suppress(BadObjectError):
            created = _created(meta)
        with contextlib.suppress(BadObjectError):
            status = _status(written)
        return MigrationJob(
            name=objects.text(body, "name"),
            uid=objects.text(body, "uid"),
            revision=objects.revision(body),
            created=created,
            pod=PodRef("", ""),
            fault=str(error),
            aborts=objects.part(meta, "annotations").get(ABORT) == "true",
            status=status,
        )


def decode(body: Body, mode: str = RESERVATION_FIRST) -> MigrationJob:
    """A job; ``BadObjectError`` names the field that cannot be read."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    notes, options = wire.mapping(meta, "annotations"), wire.mapping(spec, "reservationOptions")
    grace = wire.mapping(spec, "deleteOptions").get("gracePeriodSeconds")
    mode = wire.text(spec, "mode") or mode
    policy = str(wire.mapping(meta, "labels").get(traits.POLICY) or "")
    for value, known, where in (
        (mode, MODES, "spec.mode"),
        (policy, ("", *traits.POLICIES), f"label {traits.POLICY}"),
    ):
        if value not in known:
            raise BadObjectError(f"{where} {value!r} is none of {', '.join(filter(None, known))}")
    return MigrationJob(
        name=wire.name(meta),
        uid=wire.text(meta, "uid"),
        revision=wire.text(meta, "resourceVersion"),
        created=_created(meta),
        pod=_pod(wire.mapping(spec, "podRef")),
        mode=mode,
        ttl=_seconds(spec.get("ttl"), "spec.ttl") or None,
        paused=wire.flag(spec, "paused"),
        aborts=notes.get(ABORT) == "true" or meta.get("deletionTimestamp") is not None,
        reservation=wire.text(wire.mapping(options, "reservationRef"), "name"),
        template=wire.mapping(options, "template"),
        policy=policy,
        grace_seconds=grace if isinstance(grace, int) and grace >= 0 else None,
        reason=str(notes.get(REASON) or ""),
        by=str(notes.get(TRIGGER) or BY_HAND),
        workload=str(notes.get(WORKLOAD) or ""),
        source=str(notes.get(SOURCE) or ""),
        avoid_seconds=_seconds(notes.get(AVOID), f"annotation {AVOID}"),
        plan=str(notes.get(PLAN) or ""),
        waits=notes.get(WAITS) == "true",
        whole_gang=notes.get(GANG) == "true",
        urgent=traits.EVICT in notes,
        leader=str(notes.get(LEADER) or ""),
        status=_status(wire.mapping(body, "status")),
    )


def _created(meta: Body) -> float:
    return wire.instant(meta.get("creationTimestamp"), "metadata.creationTimestamp") or 0.0


def _pod(body: Body) -> PodRef:
    return PodRef(*wire.texts(body, "namespace", "name", "uid"))


def _seconds(spelled: object, where: str) -> float | None:
    if spelled is None:
        return None
    try:
        return max(0.0, moment.duration(spelled))
    except ValueError as error:
        raise BadObjectError(f"{where}: {error}") from error


def _status(status: Body) -> JobStatus:
    phase = wire.text(status, "phase") or Phase.PENDING
    if phase not in set(Phase):
        raise BadObjectError(f"status.phase {phase!r} is unknown")
    return JobStatus(
        phase=Phase(phase),
        status=wire.text(status, "status"),
        reason=wire.text(status, "reason"),
        message=wire.text(status, "message"),
        node=wire.text(status, "nodeName"),
        pod=_pod(wire.mapping(status, "podRef")) if status.get("podRef") else None,
        conditions=tuple(map(parsing.condition, wire.bodies(status, "conditions"))),
    )


def request(
    pod: PodRef,
    *,
    mode: str = RESERVATION_FIRST,
    ttl_seconds: float = 0.0,
    reason: str = "",
    by: str = BY_HAND,
    creator: str = "",
    policy: str = "",
    grace_seconds: int | None = None,
    node: str = "",
    gang: bool = False,
    leader: str = "",
    plan: str = "",
    avoid_seconds: float | None = None,
) -> dict[str, Any]:
    """A new job for a store; ``node``: room is held there and nowhere else.

    ``gang``: it moves the whole gang of the pod; ``leader``: the job that does, where this one
    follows. ``plan``: the UID of the plan that says when its pod may be evicted.
    """
    notes = {REASON: reason, TRIGGER: by, CREATED_BY: creator, LEADER: leader}
    notes |= {GANG: "true"} if gang else {}
    notes |= {} if avoid_seconds is None else {AVOID: duration.text(avoid_seconds)}
    notes |= {PLAN: plan, WAITS: "true"} if plan else {}
    spec: dict[str, Any] = {"mode": mode, "podRef": {k: v for k, v in pod.body().items() if v}}
    if ttl_seconds:
        spec["ttl"] = duration.text(ttl_seconds)
    if grace_seconds is not None:
        spec["deleteOptions"] = {"gracePeriodSeconds": grace_seconds}
    if node:
        template: Mapping[str, Any] = {"spec": {"template": {"spec": {"nodeName": node}}}}
        spec["reservationOptions"] = {"template": template}
    return {
        "apiVersion": kinds.POD_MIGRATION_JOBS.api_version,
        "kind": kinds.POD_MIGRATION_JOBS.name,
        "metadata": {
            "generateName": f"{pod.name[:200]}-",
            "annotations": {key: value for key, value in notes.items() if value},
            **({"labels": {traits.POLICY: policy}} if policy else {}),
        },
        "spec": spec,
    }


def following(leader: MigrationJob, pod: PodRef) -> dict[str, Any]:
    """The job of another member of a gang; made again, it has the same name."""
    body = request(
        pod, reason=leader.reason, by=leader.by, policy=leader.policy,
        grace_seconds=leader.grace_seconds, leader=leader.name, avoid_seconds=leader.avoid_seconds,
    )  # fmt: skip
    meta = body["metadata"]
    del meta["generateName"]
    meta["name"] = f"{leader.name[:126]}.{pod.name[:126]}"
    return body


def arbitrated(status: JobStatus, phase: Phase, reason: str, message: str) -> JobStatus:
    """A status that arbitration has changed."""
    return dataclasses.replace(status, phase=phase, reason=reason, message=message)
