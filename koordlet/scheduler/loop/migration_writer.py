"""Writes what a step of a migration job decides: status, reservation, eviction, events.

Covers: one job at a time, in the order that a kill cannot harm. Does not cover: when
(``migration_controller``), what (``migration.flow``), how a pod is evicted (``evictions``).

Rules:
1. A status is written against the revision that was decided on, and before its actions: of two
   that carry out one job, one is told no and does nothing.
2. A reservation has the UID of its job as its name: there is never a second one.
3. What failed is tried again after ``PAUSE`` seconds; it is all that is remembered of a job.
4. Whoever may create a job may write into it that it is of a drain or of a plan, which pass bounds.
   Such a job waits until the cluster shows it: the node is cordoned, the plan has this job.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Protocol

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.descheduling.evictor_settings import EvictorSettings
from koordlet.scheduler.descheduling.traits import PodTraits
from koordlet.scheduler.disruption.answers import Clock, EvictionRate, Mover
from koordlet.scheduler.disruption.disruptions import Disruptions
from koordlet.scheduler.loop import evictions
from koordlet.scheduler.loop.agents import Agents
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.event_handlers import EventHandlers
from koordlet.scheduler.loop.job_memory import JobMemories
from koordlet.scheduler.migration import flow, room
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.migration.arbitration import Candidate
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.rescheduling import plan_check

#: Seconds after a refused eviction, or a failed request, before the next.
PAUSE = 5.0
_MINUTE = 60.0
#: For so long a workload avoids the node that a pod of it was moved away from, unless its job says.
_AVOID_SECONDS = 3600.0
#: Who evicts in the name of a strategy, and why, as the limiter knows them; and by hand.
COMPONENT, CAUSE, BY_HAND = "descheduler", "Descheduled", "Migrated"


class WatchedCluster(Protocol):
    """A cluster that is watched, and the one way to evict: a scheduler's loop, a descheduler."""

    core: Core
    agents: Agents
    disruptions: Disruptions
    sources: EventHandlers
    evictions: evictions.Evictions
    #: There is no cluster, and nobody makes pods for controllers.
    alone: bool


class JobWriter:
    """Writes of the jobs of one cluster."""

    def __init__(
        self,
        store: objects.Objects,
        watched: WatchedCluster,
        settings: EvictorSettings,
        memories: JobMemories,
        in_plan: Callable[[MigrationJob], bool],
    ) -> None:
        self._store, self._watched, self._settings = store, watched, settings
        self._memories, self._in_plan = memories, in_plan

    def _now(self) -> Clock:
        return self._watched.disruptions.now()

    async def _write(
        self, job: MigrationJob, ref: objects.Ref, patch: objects.Patch, subresource: str = ""
    ) -> objects.Object | None:
        """The object after a patch; ``None`` where it failed, which the next look sees."""
        measures = self._watched.core.measures
        try:
            body = await self._store.patch(ref, patch, subresource=subresource)
        except refusals.ObjectsError as error:
            measures.asked("migration_job", error.code)
            if not isinstance(error, refusals.Conflict | refusals.NotFound):
                self._memories.of(job).pause(self._now().steady + PAUSE, str(error))
            return None
        measures.asked("migration_job", "ok")
        return body

    def failed(self, job: MigrationJob, error: BaseException) -> None:
        """A step ended in an error of ours, which is logged once; the job is as it was."""
        memory, why = self._memories.of(job), repr(error)[:300]
        if memory.refusal != why:
            log.get().error("migration.failed", job=job.name, detail=why)
        memory.pause(self._now().steady + PAUSE, why)

    async def advance(self, job: MigrationJob, step: flow.Step, *, revision: str = "") -> None:
        """Write what a job is now, then do what follows (rule 2)."""
        if step.status != job.status:
            patch = objects.Merge({"status": step.status.body()}, revision or job.revision)
            ref = objects.Ref(kinds.POD_MIGRATION_JOBS, job.name)
            if await self._write(job, ref, patch, "status") is None:
                return
            self._memories.of(job).written(job.revision)
            await self._tell(job, step.status)
        for action in step.actions:
            if not await self._act(job, action):
                return

    async def _act(self, job: MigrationJob, action: flow.Action) -> bool:
        """Whether the next action may follow."""
        if isinstance(action, flow.EvictPod):
            return await self._evict(job, action.pod)
        try:
            if isinstance(action, flow.MakeReservation):
                await self._reserve(job)
            elif isinstance(action, flow.MakeFollowers):
                await self._lead(job, action.pods)
            else:
                opening = objects.Merge(room.opening(self._now().wall, action.since))
                ref = objects.Ref(kinds.RESERVATIONS, action.room.name)
                await self._store.patch(ref, opening)
        except (refusals.ObjectsError, BadObjectError) as error:
            self._memories.of(job).pause(self._now().steady + PAUSE, str(error))
            return False
        return True

    async def _reserve(self, job: MigrationJob) -> None:
        """A reservation has the UID of its job as its name: there is never a second one."""
        pod = await self._store.get(objects.Ref(kinds.PODS, job.pod.name, job.pod.namespace))
        if objects.text(pod, "uid") != job.pod.uid:
            raise refusals.NotFound("it is another pod now", culprit=str(job.pod))
        try:
            made = await self._store.create(
                kinds.RESERVATIONS, room.body(job, pod, self._now().wall)
            )
        except refusals.AlreadyExists:
            made = await self._store.get(objects.Ref(kinds.RESERVATIONS, job.uid))
        reference = {
            "apiVersion": kinds.RESERVATIONS.api_version,
            "kind": kinds.RESERVATIONS.name,
            "name": objects.text(made, "name"),
            "uid": objects.text(made, "uid"),
        }
        patch = {"spec": {"reservationOptions": {"reservationRef": reference}}}
        await self._store.patch(
            objects.Ref(kinds.POD_MIGRATION_JOBS, job.name), objects.Merge(patch)
        )
        self._memories.of(job).pause(0.0, "")

    async def _lead(self, job: MigrationJob, pods: Iterable[Pod]) -> None:
        """The jobs of other members have names that follow from theirs: there are never two."""
        for pod in pods:
            body = jobs.following(job, jobs.PodRef.of(pod))
            with contextlib.suppress(refusals.AlreadyExists):
                await self._store.create(kinds.POD_MIGRATION_JOBS, body)

    def unproved(self, job: MigrationJob, pod: Pod) -> tuple[str, str]:
        """What a job says of itself and the cluster does not show (rule 4)."""
        by = mover(job.by, self._settings, acts=True)
        if by.drains:
            node = self._watched.sources.informers[kinds.NODES].get(pod.node)
            text = f"the job is of {job.by}, and its pod is on node {pod.node}"
            if job.by != f"drain/{pod.node}":
                return "NotDrained", f"{text}, another one"
            if node is None or not node.unschedulable:
                return "NotDrained", f"{text}, which is not cordoned: cordon it first"
        elif (by.planned or job.plan) and not self._in_plan(job):
            return "NotInPlan", f"the job is of {job.by}, and no plan under way has made it"
        return "", ""

    async def _evict(self, job: MigrationJob, pod: Pod) -> bool:
        memory = self._memories.of(job)
        reason, why = self.unproved(job, pod)
        if reason:
            memory.pause(self._now().steady + PAUSE, f"{reason}: {why}")
            return False
        known = memory.traits or PodTraits()
        moved_by = mover(job.by, self._settings, acts=True, follows=bool(job.leader))
        usual = 0.0 if moved_by.planned else _AVOID_SECONDS
        result = await self._watched.evictions.evict(
            evictions.EvictionRequest(
                pod=pod,
                mover=moved_by,
                cause=cause(job),
                reason=job.reason or f'migration job "{job.name}"',
                plan=job.leader or job.name,
                avoid_seconds=usual if job.avoid_seconds is None else job.avoid_seconds,
                front=True,
                policy=job.policy or known.policy or self._settings.policy,
                grace_seconds=job.grace_seconds,
                evict_only=known.evict_only,
                attempts=1,
            )
        )
        in_vain = not result.evicted and result.reason != "Gone"
        text = f"{result.reason}: {result.message}" if in_vain else ""
        memory.pause(self._now().steady + PAUSE, text)
        return result.evicted

    async def _tell(self, job: MigrationJob, status: JobStatus) -> None:
        """What has changed, for people and for metrics."""
        if status.phase is Phase.PENDING:
            return
        measures, events = self._watched.core.measures, self._watched.evictions.events
        reason = (
            status.reason or (status.phase if status.phase.over else status.status) or "Running"
        )
        if status.phase.over:
            measures.migrated(status.phase.value, self._now().wall - job.created)
            log.get().info(
                "migration.ended",
                job=job.name,
                pod=str(job.pod),
                phase=status.phase.value,
                reason=status.reason,
                detail=status.message,
            )
        warning = status.phase in {Phase.FAILED, Phase.ABORTED}
        text = status.message or f"pod {job.pod}: {status.phase.value}"
        await self._watched.evictions.tell(
            events.about_migration(job, reason, text, warning=warning)
        )

    async def begin(self, candidate: Candidate) -> None:
        """Let a job run: whose pod it is about is written first."""
        job, pod = candidate.job, candidate.pod
        resident, signature = candidate.resident, candidate.signature
        notes = {
            jobs.PASSED: "true",
            jobs.WORKLOAD: "" if signature is None else str(signature),
            jobs.SOURCE: "" if resident is None else resident.pod.node,
        }
        patch = {
            "metadata": {"annotations": {key: value for key, value in notes.items() if value}},
            "spec": {"podRef": {"uid": pod.uid}},
        }
        ref = objects.Ref(kinds.POD_MIGRATION_JOBS, job.name)
        body = await self._write(job, ref, objects.Merge(patch, job.revision))
        if body is not None:
            status = jobs.arbitrated(job.status, Phase.RUNNING, "", "")
            await self.advance(job, flow.Step(status), revision=objects.revision(body))


def mover(name: str, evictor: EvictorSettings, *, acts: bool, follows: bool = False) -> Mover:
    """A mover as the limiter knows it; a peer's own rate takes the place of the cluster's."""
    limit = None
    if evictor.migrates and name.startswith(COMPONENT):
        limit = EvictionRate(max(evictor.burst, int(evictor.per_second * _MINUTE)), _MINUTE)
    return Mover(name=name, acts=acts, limit=limit, follows=follows)


def cause(job: MigrationJob) -> str:
    """Why a job evicts, as the limiter counts it."""
    if job.plan:
        return plan_check.CAUSE
    return CAUSE if job.by.startswith(COMPONENT) else BY_HAND
