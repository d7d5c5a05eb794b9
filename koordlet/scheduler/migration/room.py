"""The reservation of a migration job: made of the pod that is to leave, and as a job sees it.

Covers: the object for the pod's replacement, what a job reads of one. Does not cover: reservations
themselves (``scheduler.reservation``).

Rules:
1. The template is the pod as its controller would make it again, and never on the pod's own node.
2. It is closed to all pods (``unschedulable``) until the pod is about to leave: no sibling that
   waited before takes the place. Opening it also gives it time enough to be used.
3. What the author of a job wants of it has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import kinds, pod_annotations, pod_groups
from koordlet.model import duration, moment
from koordlet.model.record import dataclass
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.objects import eviction_marks, peer_keys, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import keys, lifecycle, matching, parsing
from koordlet.scheduler.reservation.spec import Phase, ReservationOwner
from koordlet.scheduler.store import merging

#: Annotations of ours: the job that it was made for, and since when its pod may have come.
JOB, OPENED = "koordlet.io/migration-job", "koordlet.io/opened"
_LABELS = {"app.kubernetes.io/created-by": "koordlet-descheduler"}
#: Seconds that it outlives its job, so that the job is the one that ends first.
_LONGER = 60.0
#: Once a pod leaves, its replacement has at least so long; given anew before that is over.
LEAST, GIVEN = 600.0, 900.0
#: Annotations of a pod that say what was done with it, and not what it is.
_DONE = frozenset(
    (
        *(pod_annotations.RESOURCE_STATUS, peer_keys.DEVICE_ALLOCATED),
        *(keys.ALLOCATED, "kubectl.kubernetes.io/last-applied-configuration"),
        *(eviction_marks.EVICTION, eviction_marks.SOFT_EVICTION),
    )
)
_UNSAID = (
    *("nodeName", "schedulingGates", "ephemeralContainers", "hostname", "subdomain"),
    "schedulingGroup",
)
#: Keys of gangs: a reservation is no member of one.
_GANG = (pod_groups.POD_GROUP, pod_groups.GANG_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReservation:
    """A reservation as a job sees it."""

    name: str
    uid: str
    phase: Phase = Phase.PENDING
    node: str = ""
    #: Why no node serves.
    message: str = ""
    #: It says that its time is over.
    expired: bool = False
    #: The job that it was made for; empty where somebody else made it.
    job: str = ""
    closed: bool = False
    #: From when on the replacement may have come; 0: from the start.
    opened: float = 0.0
    #: ``None``: never.
    expires: float | None = None
    #: The pod that took it.
    owner: PodRef | None = None
    #: Whose pods may take it.
    owners: tuple[ReservationOwner, ...] = ()

    @property
    def controller(self) -> tuple[str, str, str] | None:
        """Namespace, kind and name of the controller whose pods may take it."""
        patterns = (entry.controller for entry in self.owners)
        named = ((each.namespace, each.kind, each.name) for each in patterns if each is not None)
        return next(named, None)

    @property
    def for_pod(self) -> bool:
        """Whether it is for one pod that waits for a node."""
        return any(entry.object is not None for entry in self.owners)

    def serves(self, pod: Pod) -> bool:
        """Whether a pod of the same controller and labels as this one may take it."""
        return any(matching.owns(entry, pod) for entry in self.owners)

    @property
    def failure(self) -> tuple[str, str]:
        """Reason and message of a job whose reservation has failed."""
        if self.message and not self.expired:
            return "Unschedulable", self.message
        return "ReservationExpired", "Reservation expired"

    @property
    def leftover(self) -> bool:
        """Whether nobody loses anything by its end."""
        return self.owner is None or self.phase.over

    def ends_soon(self, now: float) -> bool:
        """Whether a replacement might come too late for it."""
        return self.closed or (self.expires is not None and self.expires - now < LEAST)


def read(body: Body) -> JobReservation:
    """A reservation; ``BadObjectError`` where it cannot be read."""
    spec, status = parsing.read(body), parsing.read_status(body)
    owner = next(iter(status.owners), None)
    scheduled, ready = map(status.condition, (lifecycle.SCHEDULED, lifecycle.READY))
    return JobReservation(
        name=spec.name,
        uid=spec.uid,
        phase=status.phase,
        node=status.node,
        message="" if scheduled is None or scheduled.status else scheduled.message,
        expired=ready is not None and ready.reason == "Expired",
        job=spec.annotations.get(JOB, ""),
        closed=spec.unschedulable,
        opened=_opened(spec.annotations.get(OPENED)),
        expires=spec.expires_at,
        owner=None
        if owner is None
        else PodRef(owner.get("namespace", ""), owner.get("name", ""), owner.get("uid", "")),
        owners=spec.owners,
    )


def _opened(spelled: str | None) -> float:
    try:
        return 0.0 if spelled is None else moment.parse(spelled)
    except ValueError:
        return 0.0


def opening(now: float, since: float) -> dict[str, Any]:
    """The patch that lets the replacement in, for long enough; ``since``: it may have come."""
    return {
        "metadata": {"annotations": {OPENED: moment.spell(since)}},
        "spec": {"unschedulable": False, "expires": moment.spell(now + GIVEN)},
    }


def body(job: MigrationJob, pod: Body, now: float) -> dict[str, Any]:
    """The reservation for the replacement of a pod; ``BadObjectError``: nobody would make one."""
    meta, spec = wire.mapping(pod, "metadata"), wire.mapping(pod, "spec")
    node = wire.text(spec, "nodeName")
    notes = wire.mapping(meta, "annotations")
    inner = {key: value for key, value in spec.items() if key not in _UNSAID}
    if node:
        inner["affinity"] = _elsewhere(wire.mapping(spec, "affinity"), node)
    made = {
        "metadata": {
            "labels": {**_LABELS, keys.ORDER: str(int(now * 1000))},
        },
        "spec": {
            "template": {
                "metadata": {
                    "namespace": job.pod.namespace,
                    "labels": kept(wire.mapping(meta, "labels")),
                    "annotations": kept(notes),
                },
                "spec": inner,
            },
            "owners": [_owner(job, meta, node)],
            "unschedulable": bool(node),
            **({} if job.ttl is None else {"ttl": duration.text(job.ttl + _LONGER)}),
        },
    }
    wanted = merging.merge(made, job.template)
    try:
        outer_meta, outer_spec = (wire.mapping(wanted, key) for key in ("metadata", "spec"))
        outer_notes = wire.mapping(outer_meta, "annotations")
    except BadObjectError as error:
        raise BadObjectError(f"spec.reservationOptions.template: {error}") from error
    return {
        **wanted,
        "apiVersion": kinds.RESERVATIONS.api_version,
        "kind": kinds.RESERVATIONS.name,
        "metadata": {
            **outer_meta,
            "name": job.uid,
            "annotations": {**outer_notes, JOB: job.name},
        },
        "spec": {**outer_spec, "allocateOnce": True},
    }


def kept(texts: Body) -> dict[str, Any]:
    """Labels or annotations that say what a pod is."""
    return {
        key: value for key, value in texts.items() if key not in _DONE and not key.startswith(_GANG)
    }


def _owner(job: MigrationJob, meta: Body, node: str) -> dict[str, Any]:
    """Whose it is: the pod itself while it waits for a node, else what its controller creates."""
    if not node:
        return {"object": {"kind": "Pod", **job.pod.body()}}
    references = wire.bodies(meta, "ownerReferences")
    controller = next((each for each in references if each.get("controller") is True), None)
    if controller is None:
        raise BadObjectError(f"nobody would create pod {job.pod} again")
    return {"controller": {**controller, "namespace": job.pod.namespace}}


def _elsewhere(affinity: Body, node: str) -> dict[str, Any]:
    """The affinity of a pod, without its own node, in each required term."""
    there = wire.mapping(affinity, "nodeAffinity")
    required = wire.mapping(there, "requiredDuringSchedulingIgnoredDuringExecution")
    other = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    terms: list[Mapping[str, Any]] = [
        {**term, "matchFields": [*wire.sequence(term, "matchFields"), other]}
        for term in wire.bodies(required, "nodeSelectorTerms") or [{}]
    ]
    narrowed = {**required, "nodeSelectorTerms": terms}
    return {
        **affinity,
        "nodeAffinity": {**there, "requiredDuringSchedulingIgnoredDuringExecution": narrowed},
    }
