"""The life of a migration job: one step, from what it is and what the cluster shows.

Covers: phases, conditions, texts (the peer's: tools match them), what is to be done. Pure. Does not
cover: which jobs may begin (``arbitration``), doing it (``loop.migration_controller``).

======== ======================================= ========= ========================================
from     seen                                    to        condition, reason
======== ======================================= ========= ========================================
Pending  its pod is gone, or is no pod's name    Failed    MissingPod, InvalidPodRef
Pending  ``arbitration`` lets it begin           Running
Running  its reservation exists                  Running   ReservationCreated
Running  ... and has no node, or has one         Running   ReservationScheduled
Running  the eviction is asked for               Running   Eviction False: Evicting, FailedEvict
Running  the pod is gone                         Running   Eviction True: EvictComplete
Running  the replacement took the reservation    Running   PodBoundReservation
Running  ... and is ready                        Succeeded BoundPodReady
Running  its controller wants no pod instead     Succeeded EvictComplete
any      its time is over                        Failed    Timeout
any      somebody ends it                        Aborted
======== ======================================= ========= ========================================

Rules:
1. The status is written first, each action may be done twice: killed anywhere, a job ends the same.
2. Room before disruption: nothing is evicted unless a reservation on another node is there for
   the replacement, and the watch shows that it is open for at least ``room.LEAST`` seconds. The
   eviction is in a later second than the opening, which tells a replacement from its siblings.
3. After the eviction a job waits for the replacement at least that long, whatever its ttl.
4. A sibling that took the reservation is no failure if the replacement is up elsewhere; nor is a
   replacement that was placed elsewhere with the room free. Each pod replaces one. Of a gang that
   moves, a replacement may have any of its rooms: nobody stays for it. A workload that was scaled
   in or deleted meanwhile makes none: nobody waits for it.
5. A pod that got another owner, or lost it, stays: its room is for the old owner's pods alone.
6. A job of a plan holds room, and evicts nobody until its plan says so (``job.WAITS``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from koordlet.model.record import dataclass
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.migration import room
from koordlet.scheduler.migration.gang import ALONE
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.picture import Picture, came_after
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.spec import Condition, with_condition
from koordlet.scheduler.reservation.spec import Phase as ReservationPhase

CREATED, SCHEDULED, EVICTION = "ReservationCreated", jobs.SCHEDULED, jobs.EVICTION
BOUND, READY = "PodBoundReservation", "BoundPodReady"
#: Of a job whose pod waits for a node.
POD_SCHEDULED = "PodScheduled"
FORBIDDEN = "ForbiddenMigratePod"
COMPLETE = "Complete"
_BOUND_BY_OTHER = "Reservation is already bound by another Pod"
#: Seconds in which one watch may be behind another.
SETTLE = 5.0


@dataclass(frozen=True, slots=True)
class MakeReservation:
    """Create the reservation of the job, and write it into the job."""


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """Let the replacement into the reservation, for long enough."""

    room: JobReservation
    #: From when on it may have come.
    since: float


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Ask for the eviction of the pod."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class MakeFollowers:
    """Create the jobs of other members of the gang."""

    pods: tuple[Pod, ...]


Action = MakeReservation | OpenReservation | EvictPod | MakeFollowers


@dataclass(frozen=True, slots=True)
class Step:
    """What a job should be now, and what is to be done then."""

    status: JobStatus
    actions: tuple[Action, ...] = ()


def lost_room(job: MigrationJob) -> bool:
    """Whether a job ended as a sibling of its pod had taken its room: another job gets other."""
    status = job.status
    return status.phase is Phase.FAILED and status.message == _BOUND_BY_OTHER


def step(job: MigrationJob, picture: Picture, now: float) -> Step:
    """One step of a job."""
    if not job.active or (job.paused and not job.aborts):
        return Step(job.status)
    made = _Step(job, picture, now)
    if job.aborts:
        return made.end(Phase.ABORTED, "Aborted", "somebody ended the job")
    reason, why = ("InvalidJob", job.fault) if job.fault else ("GangStays", made.gang.broken)
    if why:
        return made.fail(reason, why)
    if made.overdue:
        refusal = picture.refusals.get(job.uid) or job.status.message
        return made.fail("Timeout", _with("Abort job caused by timeout", refusal))
    if job.status.phase is Phase.PENDING:
        return made.pending()
    return made.reserved() if job.reserves else made.directly()


def _with(text: str, why: str) -> str:
    return f"{text}: {why}" if why and not why.startswith(text) else text


class _Step:
    """One step under way."""

    def __init__(self, job: MigrationJob, picture: Picture, now: float) -> None:
        self._job, self._picture, self._now = job, picture, now
        self._status = job.status
        self._pod = picture.target(job)
        self._refusal = picture.refusals.get(job.uid, "")
        #: Nothing more once its own pod goes.
        self.gang = ALONE if self._asked else picture.gang(job)

    # Ends.

    def end(self, phase: Phase, reason: str, message: str) -> Step:
        """The job is over."""
        return Step(dataclasses.replace(self._status, phase=phase, reason=reason, message=message))

    def fail(self, reason: str, message: str) -> Step:
        """The job has failed."""
        return self.end(Phase.FAILED, reason, message)

    def _succeed(self, message: str, pod: PodRef | None) -> Step:
        ended = dataclasses.replace(self._status, status=COMPLETE, pod=pod)
        return Step(dataclasses.replace(ended, phase=Phase.SUCCEEDED, reason="", message=message))

    def _stay(self, *actions: Action) -> Step:
        return Step(self._status, actions)

    def _note(self, kind: str, reason: str, message: str = "", *, holds: bool) -> None:
        """A condition, which is also what the job says of itself."""
        made = Condition(type=kind, status=holds, reason=reason, message=message)
        conditions = with_condition(self._status.conditions, made, self._now)
        self._status = dataclasses.replace(
            self._status, status=kind, reason=reason, message=message, conditions=conditions
        )

    @property
    def overdue(self) -> bool:
        """Whether its time is over; after the eviction the replacement has time of its own."""
        job, left = self._job, self._left()
        ends = None if job.ttl is None else job.created + job.ttl
        if left:
            return self._now >= max(left + room.LEAST, ends or 0.0)
        leaving = self._asked and (self._pod is None or self._pod.terminating)
        return ends is not None and self._now >= ends and not leaving

    def _left(self) -> float:
        """When its pod was gone; 0 while it is not."""
        condition = self._job.status.condition(EVICTION)
        if condition is None or not condition.status:
            return 0.0
        # A condition without a time: the job has been there for that long at least.
        return condition.since or self._job.created or self._now

    @property
    def _asked(self) -> bool:
        """Whether the eviction was asked for, perhaps by a process that ended then."""
        return self._job.status.condition(EVICTION) is not None

    # Steps.

    def pending(self) -> Step:
        """Whether there is anything to arbitrate."""
        job, pod = self._job, self._pod
        if not job.pod.namespace or not job.pod.name:
            return self.fail("InvalidPodRef", "spec.podRef needs a namespace and a name")
        if pod is None:
            return self._missing() if self._now - job.created >= SETTLE else self._stay()
        inner = job.template
        for key in ("spec", "template", "spec"):
            part = inner.get(key)
            inner = part if isinstance(part, Mapping) else {}
        if pod.node and inner.get("nodeName") == pod.node:
            why = f'Pod "{job.pod}" is on node {pod.node} already'
            return self.fail(FORBIDDEN, why)
        return self._stay()

    def _missing(self) -> Step:
        return self.fail("MissingPod", f'Abort job caused by missing Pod "{self._job.pod}"')

    def directly(self) -> Step:
        """Without a reservation: the job is over when the pod is gone."""
        if not self._evicted():
            return self._evict() if self._pod is not None else self._missing()
        return self._succeed(f'Pod "{self._job.pod}" has been evicted', None)

    def _evicted(self) -> bool:
        """Whether its pod is gone after its eviction was asked for."""
        if self._left():
            return True
        if not self._asked or self._pod is not None:
            return False
        self._note(EVICTION, "EvictComplete", f'Pod "{self._job.pod}" has been evicted', holds=True)
        return True

    def reserved(self) -> Step:
        """With a reservation."""
        job, held = self._job, self._picture.room(self._job.reservation)
        if self.gang.missing:
            return self._stay(MakeFollowers(self.gang.missing))
        if not job.reservation:
            return self._reserve()
        if not self._holds(CREATED):
            self._note(CREATED, "", f'Reservation "{job.reservation}" is created', holds=True)
        if held is None:
            return self._lost()
        if held.phase is ReservationPhase.FAILED:
            return self.fail(*held.failure)
        if held.node:
            return self._placed(held)
        self._note(SCHEDULED, "Unschedulable", held.message, holds=False)
        return self._missing() if self._pod is None else self._stay()

    def _reserve(self) -> Step:
        if self._pod is None:
            return self._missing()
        if self._refusal:
            self._note(CREATED, "FailedCreateReservation", self._refusal, holds=False)
        return self._stay(MakeReservation())

    def _lost(self) -> Step:
        """No reservation of that name, or the watch has yet to show it."""
        created = self._status.condition(CREATED)
        if created is not None and self._now - created.since < SETTLE:
            return self._stay()
        why = f'Abort job caused by missing Reservation "{self._job.reservation}"'
        return self.fail("MissingReservation", why)

    def _holds(self, kind: str) -> bool:
        condition = self._status.condition(kind)
        return condition is not None and condition.status

    def _placed(self, held: JobReservation) -> Step:
        """There is room on a node."""
        pod = self._pod
        if not self._holds(SCHEDULED):
            if pod is not None and pod.node == held.node:
                return self.fail(
                    FORBIDDEN,
                    f'Scheduler assigns the Reservation "{held.name}" on the same node as the Pod',
                )
            text = f'Assigned Reservation "{held.name}" to node "{held.node}"'
            self._note(SCHEDULED, "", text, holds=True)
            self._status = dataclasses.replace(self._status, node=held.node)
        if held.for_pod and held.job:
            return self._assigned()
        if self._evicted():
            return self._replaced(held)
        if pod is None:
            return self._missing()
        owner, stays = held.owner, not (pod.terminating or self._job.leader)
        if owner is not None and owner.uid != pod.uid and stays:
            return self._taken(held, owner)
        return self._evict(held)

    def _taken(self, held: JobReservation, owner: PodRef) -> Step:
        """Somebody has the room, and the pod seems to stay.

        One that came after the room was opened may be the replacement of a pod that ends by now:
        of two watches one is behind. Nobody is evicted for it, and a moment is waited.
        """
        pod = self._picture.pod(owner)
        if self._asked and (pod is None or came_after(pod, held.opened)):
            self._note(BOUND, "WaitForPodBindReservation", _BOUND_BY_OTHER, holds=False)
            bound = self._status.condition(BOUND)
            if bound is not None and self._now - bound.since < SETTLE:
                return self._stay()
        return self.fail(FORBIDDEN, _BOUND_BY_OTHER)

    def _assigned(self) -> Step:
        """The pod waits for a node: the reservation is for itself."""
        pod = self._pod
        if pod is None:
            return self._missing()
        if not pod.node:
            self._note(POD_SCHEDULED, "Unschedulable", holds=False)
            return self._stay()
        self._note(POD_SCHEDULED, "", holds=True)
        return self._succeed(f'Assign Pod "{self._job.pod}" to node "{pod.node}"', self._job.pod)

    def _evict(self, held: JobReservation | None = None) -> Step:
        job, pod = self._job, self._pod
        if pod is None:
            return self._missing()
        if held is not None and held.job and not (pod.terminating or held.serves(pod)):
            why = f'what replaces it may not use Reservation "{held.name}"'
            text = f'Pod "{job.pod}" has lost or changed its owner: {why}'
            return self.fail(FORBIDDEN, text)
        if job.waits and not self._asked:
            return self._stay()  # rule 6
        if self.gang.waits:
            self._note(SCHEDULED, "WaitForGang", self.gang.waits, holds=True)
            return self._stay()
        reason, text = "Evicting", f'Pod "{job.pod}" evicted from node "{pod.node}"'
        if job.reason:
            text = f'{text} by the reason "{job.reason}"'
        if self._refusal and not pod.terminating:
            reason, text = "FailedEvict", self._refusal
        self._note(EVICTION, reason, text, holds=False)
        if held is not None and held.job and held.owner is None and held.ends_soon(self._now):
            return self._stay(self._opening(held))
        # Objects have whole seconds: whoever was created in that of the opening was there before.
        waits = pod.terminating or (held is not None and int(self._now) <= held.opened)
        return self._stay(*([] if waits else [EvictPod(pod)]))

    def _replaced(self, held: JobReservation) -> Step:
        """The pod is gone: wait for the one that comes instead."""
        owner, pod = held.owner, self._picture.replacement(self._job, held)
        if pod is not None:
            return self._bound(held, pod)
        if self._unreplaced(held):
            text = f'Pod "{self._job.pod}" has been evicted'
            return self._succeed(f"{text}: its controller wants no other pod instead", None)
        taken = owner is not None and owner.uid != self._job.pod.uid
        why = _BOUND_BY_OTHER if taken else ""
        self._note(BOUND, "WaitForPodBindReservation", why, holds=False)
        opens = held.job and owner is None and held.ends_soon(self._now)
        return self._stay(*([self._opening(held)] if opens else []))

    def _opening(self, held: JobReservation) -> OpenReservation:
        pod = self._pod
        if pod is not None and not pod.terminating:
            return OpenReservation(held, self._now)
        # It comes already: in the second in which the end of its pod began, or since.
        ends = 0.0 if pod is None or pod.leaving is None else pod.leaving.at - 1
        return OpenReservation(held, held.opened or ends or self._now)

    def _unreplaced(self, held: JobReservation) -> bool:
        """Whether nothing replaces the pod: its workload has been scaled in or deleted."""
        left = self._left()
        return left > 0 and self._now - left >= SETTLE and not self._picture.awaited(held)

    def _bound(self, held: JobReservation, pod: Pod) -> Step:
        ref = PodRef.of(pod)
        text = f'Bind Pod "{ref}" in Reservation "{held.name}"'
        if pod.draws_on != held.uid and held.owner != ref:
            text = f'Pod "{ref}" is ready on node "{pod.node}"'
        if not self._holds(BOUND):
            self._note(BOUND, "", text, holds=True)
        self._status = dataclasses.replace(self._status, pod=ref)
        if not pod.up:
            self._note(READY, "WaitForBoundPodReady", holds=False)
            return self._stay()
        self._note(READY, "", holds=True)
        return self._succeed(text, ref)
