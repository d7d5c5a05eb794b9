"""Carries out PodMigrationJobs: reservations, evictions, statuses, and what is left of them.

Covers: watching jobs, arbitration at its interval, when a job makes a step. Does not cover: what a
step is (``migration.flow``), who may begin (``migration.arbitration``), writing it
(``migration_writer``), deleting what is left (``migration_leftovers``).

Rules:
1. The state is in the objects: after a restart all goes on from there.
2. Nothing of a job is decided while a write of it is under way, nor on what was there before it.
   Thousands are looked at in slices; what changes meanwhile refuses the write.
3. Who does not lead does nothing. Leftovers are deleted while jobs are watched, never while nobody
   knows which there are.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from koordlet import log
from koordlet.kubeapi import informer, kinds, objects, refusals
from koordlet.scheduler.descheduling import traits
from koordlet.scheduler.descheduling.evictor_settings import EvictorSettings
from koordlet.scheduler.descheduling.round import EvictionProposal
from koordlet.scheduler.descheduling.traits import PodTraits, Resident
from koordlet.scheduler.disruption.answers import Clock, Refusal, unshadowed
from koordlet.scheduler.disruption.workloads import Signature, each
from koordlet.scheduler.loop.evictions import EvictionResult
from koordlet.scheduler.loop.job_memory import JobMemories
from koordlet.scheduler.loop.metrics import Gauges
from koordlet.scheduler.loop.migration_leftovers import MigrationLeftovers
from koordlet.scheduler.loop.migration_writer import (
    COMPONENT,
    PAUSE,
    JobWriter,
    WatchedCluster,
    cause,
    mover,
)
from koordlet.scheduler.loop.slices import sliced
from koordlet.scheduler.migration import flow, gang
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.migration.arbitration import Arbiter, Candidate, JobBounds
from koordlet.scheduler.migration.job import MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.picture import Picture
from koordlet.scheduler.migration.replacements import Replacements
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError

#: How often leftovers and old jobs are looked for.
_SWEEP = 5.0
_LOOK = 0.1
#: Why the pod of a job must not be moved; empty where it may.
Protection = Callable[[MigrationJob, Resident], str]


class MigrationController:
    """The jobs of one cluster."""

    def __init__(
        self,
        store: objects.Objects,
        watched: WatchedCluster,
        settings: EvictorSettings,
        *,
        instance: str = "",
        grace_seconds: int | None = None,
        leads: Callable[[], bool] = lambda: True,
        only: Callable[[MigrationJob], bool] | None = None,
        in_plan: Callable[[MigrationJob], bool] = lambda _job: False,
        protection: Callable[[], Protection] = lambda: lambda _job, _resident: "",
    ) -> None:
        """``only``: the jobs that are carried out, where others are somebody else's.

        ``in_plan``: whether a plan that is under way has made a job. ``protection``: what keeps the
        pods of jobs, by the cluster of the moment in which it is called.
        """
        self._only, self._protection = only, protection
        self._store, self._watched, self._settings = store, watched, settings
        self._instance, self._leads = instance, leads
        self._grace_seconds = grace_seconds
        read = functools.partial(jobs.read, mode=settings.migration.mode)
        self.source: informer.Informer[MigrationJob] = informer.Informer(
            store, kinds.POD_MIGRATION_JOBS, read, changed=self._changed
        )
        #: Jobs under way by the pod that they name, those that were just made included.
        self._by_pod: dict[tuple[str, str], frozenset[str]] = {}
        #: Jobs that were just made and that the watch has yet to show, until a moment.
        self._unseen: dict[str, tuple[MigrationJob, float]] = {}
        self._memories = JobMemories()
        self._writer = JobWriter(store, watched, settings, self._memories, in_plan)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._replacements = Replacements()
        self._leftovers = MigrationLeftovers(store, watched)
        self._swept = 0.0
        #: The UIDs of jobs that were made here and are not over.
        self._made: set[str] = set()

    # What others ask.

    def held(self, resident: Resident) -> str:
        """Why a pod may not be chosen now; empty where nothing forbids it."""
        names = self._by_pod.get((resident.pod.namespace, resident.pod.name))
        return f'pod is migrated by job "{min(names)}"' if names else ""

    async def move(self, proposal: EvictionProposal) -> EvictionResult:
        """Make the job of a proposal that an arbiter lets pass."""
        pod, evictor = proposal.resident.pod, proposal.evictor
        ref = PodRef.of(pod)
        body = jobs.request(
            ref, mode=evictor.migration.mode, ttl_seconds=evictor.migration.ttl_seconds,
            reason=proposal.reason, by=f"{COMPONENT}/{proposal.strategy}", creator=self._instance,
            policy=proposal.resident.traits.policy or evictor.policy,
            grace_seconds=evictor.grace(self._grace_seconds),
            avoid_seconds=proposal.avoid_seconds or None,
        )  # fmt: skip
        try:
            made = await self._store.create(kinds.POD_MIGRATION_JOBS, body)
        except refusals.ObjectsError as error:
            self._watched.core.measures.asked("migration_job", error.code)
            return EvictionResult("Error", str(error))
        job = jobs.read(made)
        self._unseen[job.name] = job, self._now().steady + flow.SETTLE
        shown = self.source.get(job.name)
        if shown is None or shown.active:  # else it was over before the store had answered
            self._count(job)
            self._made.add(job.uid)
        return EvictionResult("Evicted")

    def bounds(self, resident: Resident) -> list[tuple[str, str]]:
        """What keeps a job of a pod from beginning now, with numbers."""
        pod = resident.pod
        pod_name = pod.namespace, pod.name
        draft = MigrationJob(name="", uid="", pod=PodRef.of(pod))
        signature = self._signature(draft, pod)
        candidate = Candidate(job=draft, resident=resident, signature=signature)
        others = [job for job in self._active() if (job.pod.namespace, job.pod.name) != pod_name]
        return self.arbiter(others).refusals(candidate)

    def jobs(self) -> list[MigrationJob]:
        """All jobs, the oldest first."""
        return sorted(self.source.snapshot.values(), key=lambda job: (job.created, job.name))

    def refusal(self, job: MigrationJob) -> str:
        """Why the last action of a job was in vain."""
        return self._memories.of(job).refusal

    # Working.

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.source.run())
            await self.source.synced()
            try:
                while True:
                    await self.look()
                    await asyncio.sleep(self._settings.migration.arbitration_seconds)
            finally:
                for task in self._busy.values():
                    task.cancel()

    async def synced(self) -> None:
        """Wait until the jobs are known, or there is no such kind."""
        while not self._watches():
            if self.source.health.failures:
                log.get().warning("migration.jobs_missing", detail=self.source.health.error)
                return
            await asyncio.sleep(_LOOK)

    async def finished(self) -> None:
        """Wait until the jobs that were made here are over."""
        while self._made:  # noqa: ASYNC110 -- the watch shows it
            await asyncio.sleep(_LOOK)

    async def look(self) -> None:
        """Begin what is due."""
        if not self._leads():
            return
        now = self._now()
        several = {job.uid: job for job in self.source.snapshot.values()}
        self._memories.keep(several)
        free = [
            job
            for job in several.values()
            if job.active and job.uid not in self._busy and not self._memories.is_stale(job)
            if self._only is None or self._only(job)
        ]
        self._replacements.see(several)
        picture = self._picture()
        waiting = []
        async for job in sliced(free):
            try:
                step = flow.step(job, picture, now.wall)
            except Exception as error:  # noqa: BLE001 -- it costs this job a step, and no other
                self._writer.failed(job, error)
                continue
            self._replacements.name(job, step.status)
            if step.status == job.status and job.status.phase is Phase.PENDING:
                if not job.paused:
                    waiting.append(job)
                continue
            due = self._memories.is_due(job, now.steady)
            if step.status != job.status or (step.actions and due):
                actions = step.actions if due else ()
                self._start(job, self._writer.advance(job, flow.Step(step.status, actions)))
        if waiting:
            await self._arbitrate(waiting)
        if now.steady - self._swept >= _SWEEP:
            self._swept = now.steady
            await self.sweep()

    async def sweep(self) -> None:
        """Delete what is left of the jobs that are carried out here."""
        if self._watches():
            several = {job.uid: job for job in self.source.snapshot.values()}
            await self._leftovers.sweep(several, self._now().wall, self._only)

    def _watches(self) -> bool:
        return self.source.health.state is informer.State.WATCHING

    def _now(self) -> Clock:
        return self._watched.disruptions.now()

    def _start(self, job: MigrationJob, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._busy[job.uid] = task
        task.add_done_callback(functools.partial(self._done, job))

    def _done(self, job: MigrationJob, task: asyncio.Task[None]) -> None:
        self._busy.pop(job.uid, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._writer.failed(job, error)

    # What is seen.

    def _pod(self, ref: PodRef) -> Pod | None:
        return self._watched.sources.informers[kinds.PODS].get(ref.name, ref.namespace)

    def _members(self, controller: tuple[str, str, str]) -> Iterable[Pod]:
        known = self._watched.disruptions.limiter.workloads
        return each(known.members(known.of_controller(*controller)))

    def _picture(self) -> Picture:
        return Picture(
            pod=self._pod, room=self._leftovers.room, members=self._members,
            refusals=self._memories.refusals(), of_other=self._replacements.of_other,
            awaited=self._leftovers.may_be_replaced, gang=self._plan,
        )  # fmt: skip

    # Arbitration.

    def _active(self) -> list[MigrationJob]:
        now, shown = self._now().steady, self.source.snapshot.values()
        self._unseen = {
            name: (job, until)
            for name, (job, until) in self._unseen.items()
            if now < until and self.source.get(name) is None
        }
        return [*(job for job in shown if job.active), *(job for job, _ in self._unseen.values())]

    def arbiter(self, counted: Iterable[MigrationJob] | None = None) -> Arbiter:
        """An arbiter over the jobs under way, or over those that are to count as such."""
        workloads = self._watched.disruptions.limiter.workloads
        settings, now = self._settings.migration, self._now()
        bounds = JobBounds(settings, workloads, now.wall)
        for job in self.source.snapshot.values():
            if not job.active:
                bounds.add_ended(job, self._signature(job, None))
        running = map(self._candidate, self._active() if counted is None else counted)
        return Arbiter(settings, bounds, running, self._asks, self._forbids)

    def _candidate(self, job: MigrationJob) -> Candidate:
        pod, memory = self._target(job), self._memories.of(job)
        signature = self._signature(job, pod)
        if pod is None:
            return Candidate(job=job, signature=signature)
        return Candidate(
            job=job, resident=Resident(pod, memory.traits or PodTraits(), -1), signature=signature,
            unproved=self._writer.unproved(job, pod), protection=memory.protection,
        )  # fmt: skip

    def _signature(self, job: MigrationJob, pod: Pod | None) -> Signature | None:
        if pod is not None:
            return self._watched.disruptions.limiter.workloads.signature(pod.pod_class)
        kind, slash, name = job.workload.partition("/")
        return Signature(job.pod.namespace, kind, name) if slash else None

    def _asks(self, candidate: Candidate, pod: Pod) -> Refusal | None:
        job, limiter = candidate.job, self._watched.disruptions.limiter
        moved_by = mover(job.by, self._settings, acts=candidate.acts)
        return unshadowed(limiter.may_evict(pod, cause(job), moved_by, self._now()))

    def _forbids(self, candidate: Candidate, pod: Pod) -> str:
        job, limiter = candidate.job, self._watched.disruptions.limiter
        moved_by = mover(job.by, self._settings, acts=candidate.acts)
        return self._gang(job, pod) or limiter.protection(pod, moved_by)

    def _gang(self, job: MigrationJob, pod: Pod) -> str:
        """Why the gang of a pod cannot do without it."""
        entry = self._watched.core.gangs.book.of(pod)
        if job.leader:
            leader = self.source.get(job.leader)
            leading = self._target(leader) if leader is not None and leader.whole_gang else None
            whole = None if leading is None else self._watched.core.gangs.book.of(leading)
            if entry is None or whole is not entry:
                return f'job "{job.leader}" does not move the gang of this pod'
            return ""
        if entry is None or entry.gang is None:
            return ""
        if job.whole_gang:
            return "" if job.reserves else f"gang {entry.gang.id} moves whole with room held only"
        why = gang.keeps(entry)
        return f"{why}; {jobs.GANG} on the job moves them all" if why else ""

    def _plan(self, job: MigrationJob) -> gang.GangPlan:
        """How far the gang of a job is."""
        if job.leader:
            leader = self.source.get(job.leader)
            known = {} if leader is None else {job.leader: leader}
            return gang.follow(job, known, None if leader is None else self._target(leader))
        pod = self._target(job) if job.whole_gang else None
        entry = None if pod is None else self._watched.core.gangs.book.of(pod)
        if entry is None:
            return gang.ALONE
        return gang.lead(job, self.source.snapshot.values(), entry.members.values())

    def _target(self, job: MigrationJob) -> Pod | None:
        pod = self._pod(job.pod)
        return pod if pod is not None and job.pod.uid in {"", pod.uid} else None

    async def _ask(self, waiting: list[MigrationJob]) -> None:
        """Learn what strategies would know of pods; of thousands some at each look."""
        pods = [(job, pod) for job in waiting if (pod := self._target(job)) is not None]
        protection = self._protection()
        for job in self._memories.to_ask(pods):
            ref = objects.Ref(kinds.PODS, job.pod.name, job.pod.namespace)
            try:
                body = await self._store.get(ref)
            except refusals.ObjectsError as error:
                # Who cannot be asked about might be protected.
                self._memories.of(job).pause(self._now().steady + PAUSE, str(error))
                continue
            if (pod := self._target(job)) is None:
                continue
            try:
                known = traits.decode(body)
            except BadObjectError:
                known = PodTraits(uid=pod.uid)
            self._memories.of(job).learn(known, protection(job, Resident(pod, known, -1)))

    async def _arbitrate(self, waiting: list[MigrationJob]) -> None:
        await self._ask(waiting)
        running = [job for job in self._active() if job.status.phase is Phase.RUNNING]
        candidates = [
            each async for each in sliced(map(self._candidate, waiting))
            if each.resident is None or self._memories.of(each.job).knows(each.resident.pod)
        ]  # fmt: skip
        async for verdict in sliced(self.arbiter(running).verdicts(candidates)):
            job, old = verdict.candidate.job, verdict.candidate.job.status
            if verdict.passes:
                self._start(job, self._writer.begin(verdict.candidate))
            elif verdict.final:
                status = jobs.arbitrated(old, Phase.FAILED, verdict.reason, verdict.message)
                self._start(job, self._writer.advance(job, flow.Step(status)))
            elif verdict.reason != old.reason:
                # Numbers change all the time: a new reason is news.
                status = jobs.arbitrated(old, Phase.PENDING, verdict.reason, verdict.message)
                self._start(job, self._writer.advance(job, flow.Step(status)))

    def _count(self, job: MigrationJob) -> None:
        """A job under way is about its pod."""
        pod = job.pod.namespace, job.pod.name
        self._by_pod[pod] = self._by_pod.get(pod, frozenset()) | {job.name}

    def _changed(
        self, _key: informer.Key, old: MigrationJob | None, new: MigrationJob | None
    ) -> None:
        for job in filter(None, (old, new)):
            pod = job.pod.namespace, job.pod.name
            if names := self._by_pod.pop(pod, frozenset()) - {job.name}:
                self._by_pod[pod] = names
        if new is not None and new.active:
            self._count(new)
        elif (over := new or old) is not None:
            self._made.discard(over.uid)

    def gauges(self) -> Gauges:
        """The number of jobs in each phase, and the age of the oldest that is under way."""
        now = self._now().wall
        oldest = max((now - job.created for job in self._active()), default=0.0)
        counts = Counter(job.status.phase for job in self.source.snapshot.values())
        gauges: Gauges = {
            ("koordlet_migration_jobs", (("phase", each.value),)): counts[each] for each in Phase
        }
        gauges["koordlet_migration_oldest_seconds", ()] = oldest
        return gauges
