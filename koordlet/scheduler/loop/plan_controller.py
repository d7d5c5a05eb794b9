"""Carries out MovePlans: finds their moves, makes and releases their jobs, gives room back.

Covers: watching plans, writing what a step decides, plans that are over for long. Does not cover:
what a step is (``rescheduling.plan_flow``), which moves (``rescheduling.make_room``), beginning one
(``plan_starter``), the life of a job (``migration_controller``): no pod is evicted here.

Rules:
1. The state is in the objects: after a restart all goes on from there.
2. A status is written against the revision that was decided on; what follows from it is done once
   the watch shows it.
3. Who does not lead does nothing. What has failed is tried again after ``PAUSE`` seconds.
4. What a plan has left that is deleted, or cannot be read any more, is ended and given back, as if
   somebody had ended it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from koordlet import log
from koordlet.kubeapi import informer, kinds, objects, refusals
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.answers import Clock, Mover
from koordlet.scheduler.loop.metrics import Gauges
from koordlet.scheduler.loop.migration_controller import MigrationController
from koordlet.scheduler.loop.migration_writer import PAUSE, WatchedCluster
from koordlet.scheduler.loop.plan_starter import PlanStarter
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.migration import room
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.rescheduling import (
    move_plan,
    plan_flow,
    plan_room,
    plan_step,
    room_ahead,
)
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanMove, PlanPlace
from koordlet.scheduler.rescheduling.plan_check import PlanCheck
from koordlet.scheduler.rescheduling.plan_status import PlanPhase, PlanStatus

LOOK, _SWEEP = 0.2, 5.0
#: A job is given up somewhat later than its plan, which says why; with it those that follow.
_LONGER = 60.0
#: Plans that are over are kept for so long, for whoever asks.
KEPT = 24 * 3600.0


class PlanController:
    """The plans of one cluster."""

    def __init__(
        self,
        store: objects.Objects,
        watched: WatchedCluster,
        migrations: MigrationController,
        state: Callable[[], ClusterState],
        *,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """``state``: the cluster now, in which moves are looked for."""
        self._store, self._watched, self._migrations = store, watched, migrations
        self._state, self._leads = state, leads
        self.source: informer.Informer[MovePlan] = informer.Informer(
            store, kinds.MOVE_PLANS, move_plan.read
        )
        #: Of plans by UID: when the next action is due, monotonic, and why the last was in vain.
        self._due: dict[str, float] = {}
        self._refusals: dict[str, str] = {}
        self._swept = 0.0
        self._starter = PlanStarter(store, watched, state)

    def plans(self) -> list[MovePlan]:
        """All plans, the oldest first."""
        return sorted(self.source.snapshot.values(), key=lambda plan: (plan.created, plan.name))

    def has_made(self, job: MigrationJob) -> bool:
        """Whether a job is that of a move of a plan under way, and not only says so."""
        return any(
            job.name == plan.job(place) and str(job.pod) == str(move.pod)
            for plan in self.source.snapshot.values()
            if plan.uid == job.plan and not plan.status.phase.over
            for place, move in enumerate(plan.moves)
        )

    def _now(self) -> Clock:
        return self._watched.disruptions.now()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.source.run())
            group.create_task(self._work())

    async def _work(self) -> None:
        # Neither plan nor job is judged before all jobs are known.
        await self.source.synced()
        await self._migrations.source.synced()
        while True:
            if self._leads():
                await self.look()
            await asyncio.sleep(LOOK)

    async def look(self) -> None:
        """Make one step of each plan."""
        now, plans = self._now(), self.plans()
        picture = self._picture() if plans else None
        for plan in plans:
            if picture is not None and now.steady >= self._due.get(plan.uid, now.steady):
                await self._advance(plan, picture, now)
        await self._starter.look(plans, now)
        if now.steady - self._swept >= _SWEEP:
            self._swept = now.steady
            await self._sweep({plan.uid: plan for plan in plans}, now)

    async def _advance(self, plan: MovePlan, picture: plan_step.PlanPicture, now: Clock) -> None:
        try:
            step = plan_flow.step(plan, picture, now.wall)
            if step.status != plan.status:
                await self._write(plan, step.status)
                return
            for action in step.actions:
                await self._act(plan, action)
        except refusals.Conflict:
            return  # somebody wrote meanwhile: the next look sees it
        except Exception as error:  # noqa: BLE001 -- it costs this plan a pause, and no other
            self._watched.core.measures.asked("move_plan", refusals.code(error))
            self._due[plan.uid] = now.steady + PAUSE
            self._refusals[plan.uid] = str(error) or repr(error)
            log.get().warning("move_plan.failed", plan=plan.name, detail=f"{error!r}"[:300])
        else:
            self._due.pop(plan.uid, None)
            self._refusals.pop(plan.uid, None)

    async def _write(self, plan: MovePlan, status: PlanStatus) -> None:
        patch = objects.Merge({"status": status.body()}, plan.revision)
        await self._store.patch(self._ref(plan), patch, subresource="status")
        self._watched.core.measures.asked("move_plan", "ok")
        if (status.phase, status.reason) == (plan.status.phase, plan.status.reason):
            return
        if status.phase.over:
            log.get().info(
                "move_plan.ended",
                plan=plan.name,
                phase=status.phase.value,
                reason=status.reason,
                detail=status.message,
            )
        events = self._watched.evictions.events
        warning = status.phase in {PlanPhase.FAILED, PlanPhase.ABORTED}
        text = status.message or status.phase.value
        event = events.about_plan(plan, status.reason or status.phase, text, warning=warning)
        await self._watched.evictions.tell(event)

    @staticmethod
    def _ref(plan: MovePlan) -> objects.Ref:
        return objects.Ref(kinds.MOVE_PLANS, plan.name)

    # What is seen.

    def _pod(self, ref: PodRef) -> Pod | None:
        return self._watched.sources.informers[kinds.PODS].get(ref.name, ref.namespace)

    def _room(self, name: str) -> room.JobReservation | None:
        body = self._watched.sources.informers[kinds.RESERVATIONS].get(name)
        with contextlib.suppress(BadObjectError):
            return None if body is None else room.read(body)
        return None

    def _picture(self) -> plan_step.PlanPicture:
        known = {job.name: job for job in self._migrations.jobs()}
        return plan_step.PlanPicture(
            pod=self._pod,
            job=known.get,
            room=self._room,
            check=self._check,
            worth=lambda plan: self._checker(plan, self._state()).worth(plan.node, plan.moves),
            refusals=self._refusals,
        )

    def _check(self, plan: MovePlan) -> tuple[str, str]:
        state, wanted = self._state(), None if plan.pod is None else self._pod(plan.pod)
        if plan.room:
            if state.columns.rows.get(plan.node) in room_ahead.rows(state, plan.room):
                return "NotNeeded", f"node {plan.node} has room for {plan.wanted} already"
            wanted = room_ahead.sized(plan.room)
        others = [(self._pod(place.pod), place.node) for place in plan.members]
        members = [(pod, node) for pod, node in others if pod is not None]
        return self._checker(plan, state).objection(wanted, plan.node, plan.moves, members)

    def _checker(self, plan: MovePlan, state: ClusterState) -> PlanCheck:
        limiter, kept = self._watched.disruptions.limiter, {}
        if plan.pod is None:
            kept = room_ahead.kept(state, limiter.settings.headroom, plan.room)
        return PlanCheck(state, limiter, Mover(name=plan.mover, acts=True), kept)

    # What is done.

    async def _act(self, plan: MovePlan, action: plan_step.Action) -> None:
        match action:
            case plan_step.FindMoves():
                await self._find(plan)
            case plan_step.HoldPlace(number):
                await self._hold(plan, number)
            case plan_step.MakeJob(place):
                await self._make(plan, place)
            case plan_step.ReleaseJob(job):
                await self._annotate(job, {jobs.WAITS: None})
            case plan_step.EndJob(job):
                await self._annotate(job, {jobs.ABORT: "true"})
            case plan_step.DropPlace(held):
                await self._drop(held.name, held.uid)

    async def _find(self, plan: MovePlan) -> None:
        """Write the moves into the plan, or that there are none."""
        limiter = self._watched.disruptions.limiter
        wanted = None
        if plan.pod is not None:
            wanted = self._pod(plan.pod)
            if wanted is None or plan.pod.uid not in {"", wanted.uid}:
                await self._end(plan, "BeneficiaryGone", f"there is no pod {plan.pod}")
                return
            if wanted.node:
                await self._end(plan, "NotNeeded", f"pod {plan.pod} has node {wanted.node} already")
                return
        mover = Mover(name=plan.mover, acts=True)
        made = room_ahead.find(self._state(), limiter, mover, wanted, plan.room)
        if isinstance(made, str):
            await self._end(plan, "NoPlan", made)
            return
        moves = [
            PlanMove(PodRef.of(each.pod), each.origin, each.target, each.after, each.gang)
            for each in made.moves
        ]
        pod = None if wanted is None else PodRef.of(wanted)
        members = [PlanPlace(PodRef.of(each), node) for each, node in made.members]
        patch = objects.Merge(move_plan.moves_patch(made.node, moves, pod, members), plan.revision)
        await self._store.patch(self._ref(plan), patch)

    def gauges(self) -> Gauges:
        """The number of plans in each phase, and of nodes with room ahead, where it leads."""
        counts = Counter(plan.status.phase for plan in self.source.snapshot.values())
        gauges: Gauges = {
            ("koordlet_move_plans", (("phase", phase.value),)): counts[phase] for phase in PlanPhase
        }
        return gauges | (self._starter.gauges() if self._leads() else {})

    async def _end(self, plan: MovePlan, reason: str, message: str) -> None:
        await self._write(plan, PlanStatus(phase=PlanPhase.FAILED, reason=reason, message=message))

    async def _hold(self, plan: MovePlan, number: int) -> None:
        pod = self._pod(plan.places[number].pod)
        if pod is None:
            return
        ref = objects.Ref(kinds.PODS, pod.name, pod.namespace)
        moving = (self._pod(move.pod) for move in plan.leaving(number))
        leaving = [leaves for leaves in moving if leaves is not None]
        body = plan_room.body(plan, number, await self._store.get(ref), pod, leaving)
        await self._create(kinds.RESERVATIONS, body)

    async def _make(self, plan: MovePlan, place: int) -> None:
        move, leader = plan.moves[place], plan.leader(place)
        pod = self._pod(move.pod)
        body = jobs.request(
            move.pod if move.pod.uid or pod is None else PodRef.of(pod),
            ttl_seconds=0.0 if leader else plan.ttl + _LONGER,
            reason=plan.reason or f"to {plan.goal}",
            by=plan.mover,
            node=move.target,
            gang=bool(move.gang) and not leader,
            leader=leader,
            plan=plan.uid,
        )
        body["metadata"].pop("generateName")
        body["metadata"]["name"] = plan.job(place)
        await self._create(kinds.POD_MIGRATION_JOBS, body)

    async def _create(self, kind: kinds.Kind, body: dict[str, Any]) -> None:
        with contextlib.suppress(refusals.AlreadyExists):  # before a restart, or a moment ago
            await self._store.create(kind, body)

    async def _annotate(self, job: MigrationJob, notes: dict[str, str | None]) -> None:
        ref = objects.Ref(kinds.POD_MIGRATION_JOBS, job.name)
        body = {"metadata": {"uid": job.uid, "annotations": notes}}
        with contextlib.suppress(refusals.NotFound):
            await self._store.patch(ref, objects.Merge(body))

    async def _drop(self, name: str, uid: str) -> None:
        with contextlib.suppress(refusals.NotFound):
            await self._store.delete(objects.Ref(kinds.RESERVATIONS, name), uid=uid)

    # What is left.

    async def _sweep(self, several: dict[str, MovePlan], now: Clock) -> None:
        """Rule 4, and plans that were over long ago."""
        if self.source.health.state is not informer.State.WATCHING:
            return
        try:
            picture = self._picture()
            readable = {uid for uid, plan in several.items() if not plan.fault}
            for job in self._migrations.jobs():
                orphan = job.plan and job.plan not in readable and job.active and not job.aborts
                if orphan and not plan_flow.has_left(job, picture):
                    await self._annotate(job, {jobs.ABORT: "true"})
            for (_, name), body in self._watched.sources.informers[
                kinds.RESERVATIONS
            ].snapshot.items():
                notes = objects.part(objects.metadata(body), "annotations")
                if notes.get(jobs.PLAN) and notes[jobs.PLAN] not in readable:
                    await self._drop(name, objects.text(body, "uid"))
            for plan in several.values():
                if plan.status.phase.over and now.wall - plan.created >= KEPT + plan.ttl:
                    with contextlib.suppress(refusals.NotFound):
                        await self._store.delete(self._ref(plan), uid=plan.uid)
        except refusals.ObjectsError as error:
            self._watched.core.measures.asked("move_plan", error.code)
