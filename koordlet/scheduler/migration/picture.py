"""What migration jobs see of the cluster: their pods and rooms, and which pod replaces which.

Covers: the pod that a job is about, the one that came instead. Pure. Does not cover: what a job
makes of it (``flow``), which pod came for which of several jobs (``replacements``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.migration.gang import ALONE, GangPlan
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What jobs see of the cluster."""

    #: The living pod of a namespace and name.
    pod: Callable[[PodRef], Pod | None]
    room: Callable[[str], JobReservation | None]
    #: The pods of a controller: namespace, kind, name.
    members: Callable[[tuple[str, str, str]], Iterable[Pod]]
    #: Why the last action of a job was in vain, by its UID.
    refusals: Mapping[str, str] = field(default_factory=dict)
    #: Whether a pod came for another job.
    of_other: Callable[[MigrationJob, Pod], bool] = lambda _job, _pod: False
    #: Whether a pod may yet come that would take a room.
    awaited: Callable[[JobReservation], bool] = lambda _room: True
    #: How far the gang of a job is that moves it, or follows.
    gang: Callable[[MigrationJob], GangPlan] = lambda _job: ALONE

    def target(self, job: MigrationJob) -> Pod | None:
        """The pod that a job is about, unless another one has its name now."""
        pod = self.pod(job.pod)
        return pod if pod is not None and job.pod.uid in {"", pod.uid} else None

    def replacement(self, job: MigrationJob, held: JobReservation) -> Pod | None:
        """The pod that came instead of one that has left."""
        owner = held.owner
        if owner is None or owner.uid == job.pod.uid:
            elsewhere = list(self._siblings(job, held, held.opened + 1))
            up = held.opened and elsewhere and all(pod.up for pod in elsewhere)
            return elsewhere[0] if up else None
        pod = self.pod(owner)
        if pod is not None and pod.uid == owner.uid and came_after(pod, held.opened):
            return pod
        # A sibling that was there before took the room, or its owner is gone again: of those that
        # came elsewhere one that is up replaces the pod.
        return next((each for each in self._siblings(job, held) if each.up), None)

    def _siblings(
        self, job: MigrationJob, held: JobReservation, since: float = 0.0
    ) -> Iterator[Pod]:
        """The pods that were created for the one that left, the first of them first."""
        if held.controller is None:
            return
        known = {job.pod.uid, "" if held.owner is None else held.owner.uid}
        several = self.members(held.controller)
        for pod in sorted(several, key=lambda pod: (pod.created, pod.key)):
            taken = pod.uid in known or self.of_other(job, pod)
            if not taken and came_after(pod, max(since, held.opened)):
                yield pod


def came_after(pod: Pod, opened: float) -> bool:
    """Whether a pod came after a moment; objects have whole seconds."""
    try:
        return moment.parse(pod.created) >= int(opened)
    except ValueError:
        return False
