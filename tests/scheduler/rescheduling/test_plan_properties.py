"""A long random walk of plans: each eviction has its room, one pod or gang is down at a time.

Covers: plans by the real search and check, the real steps of plans and of their jobs, each killed
anywhere, among strangers who take whatever is free, budgets as a server keeps them, a gang that
moves, and gangs that wait.
Does not cover: stores (``loop.test_plan_controller``), ledgers (``test_ledger_properties``).
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any

import pytest

from koordlet.scheduler.migration import cleanup, flow, gang, picture
from koordlet.scheduler.migration import room as job_rooms
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import plan_flow, plan_places, plan_step, room_ahead
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanMove, PlanPlace
from koordlet.scheduler.rescheduling.plan_check import MOVER, PlanCheck
from koordlet.scheduler.rescheduling.plan_status import PlanPhase, PlanStatus
from koordlet.scheduler.rescheduling.plan_step import Action
from koordlet.scheduler.reservation import spec
from tests.kit.crowded_cluster import (
    CPUS,
    GANG,
    LEAST_UP,
    NODES,
    REPLICAS,
    SIZES,
    STRANGER,
    TOGETHER,
    WAITS,
    app,
)
from tests.kit.held_rooms import HeldRooms

TTL = 120.0
LARGE = frozenset("cdef")


class Walk(HeldRooms):
    """A cluster, its plans and their jobs, and one step of somebody after the other."""

    def __init__(self, seed: int, staying: frozenset[str], ganged: float) -> None:
        """``ganged``: how many of those that wait are gangs."""
        super().__init__(staying)
        self._random, self._ganged = random.Random(seed), ganged
        #: How plans ended, and how often a pod of each workload was evicted.
        self.ends: list[str] = []
        self.gangs = 0
        self.evictions: Counter[str] = Counter()
        for pod in self.pods.values():
            self._schedule(pod)
            pod.ready = bool(pod.node)

    # Plans and their jobs.

    def _check(self, plan: MovePlan) -> tuple[str, str]:
        scene = self.scene()
        pods = [self.pods[place.pod.name] for place in plan.places]
        members = [(self.pods[place.pod.name], place.node) for place in plan.members]
        check = PlanCheck(scene.state, scene.limiter)
        return check.objection(pods[0] if pods else None, plan.node, plan.moves, members)

    def plan_step(self, plan: MovePlan) -> None:
        """One step of a plan, perhaps killed on the way, or done twice."""
        picture = plan_step.PlanPicture(
            pod=self.pod, job=self.jobs.get, room=self.rooms.get, check=self._check
        )
        made = plan_flow.step(plan, picture, self.now)
        if made.status != plan.status:
            if made.status.phase.over:
                self.ends.append(made.status.reason or made.status.phase)
            if made.status.phase is PlanPhase.DONE:
                assert all(self.pods[p.pod.name].node == p.node for p in plan.places)
                self.gangs += bool(plan.members)
            self.plans[plan.name] = dataclasses.replace(plan, status=made.status)
            return
        for action in made.actions:
            times = self._random.choice((0, 1, 1, 1, 2))
            for _ in range(times):
                self._act(plan, action)
            if not times:
                return

    def _act(self, plan: MovePlan, action: Action) -> None:
        writes = not isinstance(action, plan_step.FindMoves)
        assert plan.acts or not writes, "a plan in shadow writes nothing but what it would do"
        match action:
            case plan_step.FindMoves():
                self._find(plan)
            case plan_step.HoldPlace(number):
                name = plan_places.name(plan, number)
                self.rooms.setdefault(name, JobReservation(name=name, uid=name))
            case plan_step.MakeJob(place):
                name, move, leader = plan.job(place), plan.moves[place], plan.leader(place)
                made = MigrationJob(name=name, uid=name, pod=move.pod, created=self.now,
                                    plan=plan.uid, waits=True, ttl=None if leader else TTL + 60,
                                    leader=leader, whole_gang=bool(move.gang) > bool(leader),
                                    status=JobStatus(phase=Phase.RUNNING))  # fmt: skip
                self.jobs.setdefault(name, made)
            case plan_step.ReleaseJob(job):
                self._look_ahead(plan)
                self.jobs[job.name] = dataclasses.replace(self.jobs[job.name], waits=False)
            case plan_step.EndJob(job):
                self.jobs[job.name] = dataclasses.replace(self.jobs[job.name], aborts=True)
            case plan_step.DropPlace(held):
                self.rooms.pop(held.name, None)

    def _look_ahead(self, plan: MovePlan) -> None:
        """Room for all first, and nobody leaves where a later move has failed."""
        for number, move in enumerate(plan.moves):
            job = self.jobs.get(plan.job(number))
            assert move.after or job is not None
            if job is not None and job.status.phase is not Phase.SUCCEEDED:
                assert job.active, job.status
                assert move.after or self.rooms[job.reservation].node == move.target

    def _find(self, plan: MovePlan) -> None:
        scene, pod = self.scene(), None if plan.pod is None else self.pod(plan.pod)
        answer: Any = "it is gone or placed"
        if pod is None or not pod.node:
            answer = room_ahead.find(scene.state, scene.limiter, MOVER, pod, {})
        if isinstance(answer, str):
            ended = PlanStatus(phase=PlanPhase.FAILED, reason="NoPlan", message=answer)
            self.plans[plan.name] = dataclasses.replace(plan, status=ended)
            self.ends.append("NoPlan")
            return
        moves = tuple(
            PlanMove(PodRef("default", m.pod.name, m.pod.uid), m.origin, m.target, m.after, m.gang)
            for m in answer.moves
        )
        members = tuple(
            PlanPlace(PodRef(pod.namespace, pod.name, pod.uid), node)
            for pod, node in answer.members
        )
        self.plans[plan.name] = dataclasses.replace(
            plan, node=answer.node, moves=moves, members=members
        )

    def job_step(self, job: MigrationJob) -> None:
        """One step of a job, perhaps killed after any write."""

        def members(controller: tuple[str, str, str]) -> list[Pod]:
            return [pod for pod in self.pods.values() if app(pod.name) == controller[2]]

        seen = picture.Picture(pod=self.pod, room=self.rooms.get, members=members, gang=self._gang)
        made = flow.step(job, seen, self.now)
        self.jobs[job.name] = dataclasses.replace(job, status=made.status)
        for action in made.actions:
            if self._random.random() < 0.2:
                return
            self._do(self.jobs[job.name], action)

    def _gang(self, job: MigrationJob) -> gang.GangPlan:
        """How far the gang of a job is."""
        if job.leader:
            leader = self.jobs.get(job.leader)
            return gang.follow(job, self.jobs, None if leader is None else self.pod(leader.pod))
        members = [pod for pod in self.pods.values() if app(pod.name) == GANG]
        return gang.lead(job, self.jobs.values(), members) if job.whole_gang else gang.ALONE

    def _do(self, job: MigrationJob, action: flow.Action) -> None:
        match action:
            case flow.MakeReservation():
                owner = spec.OwnerPattern("default", name=app(job.pod.name), kind="ReplicaSet")
                owners = (spec.ReservationOwner(controller=owner),)
                made = JobReservation(name=job.uid, uid=job.uid, job=job.name, closed=True,
                                      owners=owners, expires=self.now + 2 * TTL)  # fmt: skip
                self.rooms.setdefault(job.uid, made)
                self.jobs[job.name] = dataclasses.replace(job, reservation=job.uid)
            case flow.OpenReservation(held):
                expires = self.now + job_rooms.GIVEN
                self._change(held.name, closed=False, opened=self.now, expires=expires)
            case flow.EvictPod(pod):
                self._evict(job, pod)

    def _change(self, name: str, **more: Any) -> None:
        if name in self.rooms:
            self.rooms[name] = dataclasses.replace(self.rooms[name], **more)

    def _evict(self, job: MigrationJob, pod: Pod) -> None:
        """The server takes an eviction, or its budget refuses; what holds at each is looked at."""
        if pod.terminating or self.pods.get(pod.name) is not pod:
            return
        held = self.rooms[job.reservation]
        plan, _ = self.plan_of(held)
        place = next(n for n, _ in enumerate(plan.moves) if plan.job(n) == job.name)
        move = plan.moves[place]
        assert plan.acts
        assert (held.node, held.closed) == (move.target, False)
        assert held.owner is None or job.leader, "``look`` counts the rooms that a gang has left"
        assert move.target != pod.node
        for number, other in enumerate(plan.moves):
            known = self.jobs.get(plan.job(number))
            assert known is not None or (other.after and number > place)
            if known is not None and number < place and not (move.gang and other.gang == move.gang):
                assert known.status.phase is Phase.SUCCEEDED, "one after the other"
        for number in range(len(plan.places)):
            # Where the plan is over meanwhile, its places are given back, and the other rooms.
            assert plan.status.phase.over or self.rooms[plan_places.name(plan, number)].node
        workload = app(pod.name)
        assert bool(move.gang) is (workload == GANG)
        if self.up(workload) - pod.up >= LEAST_UP[workload]:
            pod.terminating = True
            self.evictions[workload] += 1
            self.replace(workload)

    # What everybody else does.

    def _schedule(self, pod: Pod) -> None:
        """A pod gets a node; of a gang that waits all do, or none."""
        before = dict(self.rooms)
        several = [each for each in self.siblings(pod) or [pod] if not each.node]
        whole = len(self.siblings(pod)) in {0, TOGETHER}
        if not whole or all(map(self._take, several)):
            return
        self.rooms = before
        for each in several:
            each.node = each.draws_on = ""

    def _take(self, pod: Pod) -> bool:
        """Whether a pod has got the room that is held for it, or what is free."""
        ref = PodRef(pod.namespace, pod.name, pod.uid)
        plan, number = self.place_of(ref) or (None, 0)
        waits = plan is not None and self.leaving(plan, number)
        for held in self.rooms.values():
            own = plan is not None and held.name == plan_places.name(plan, number) and not waits
            theirs = held.controller == ("default", "ReplicaSet", app(pod.name)) and not held.closed
            if (own or theirs) and held.node and held.owner is None and not held.phase.over:
                pod.node, pod.draws_on = held.node, held.uid
                self._change(held.name, owner=ref, phase=spec.Phase.SUCCEEDED)
                return True
        several = [node for node in NODES if self.free(node) >= self.size(pod.name)]
        pod.node = self._random.choice(several) if several else ""
        return bool(several)

    def _reserve(self, held: JobReservation) -> None:
        """A reservation gets its node, where that has room for it."""
        plan, number = self.plan_of(held)
        targets = {plan.job(place): move.target for place, move in enumerate(plan.moves)}
        node = targets[held.job] if held.job else plan.places[number].node
        places = [r for r in self.rooms.values() if not r.job and r.owner is None]
        takes_over = not held.job and plan.leaving(number)
        if takes_over and any(place.node == node for place in places):
            return  # those who leave leave their room to one of them
        if self.free(node) >= self.holds(held):
            self._change(held.name, node=node, phase=spec.Phase.AVAILABLE)

    def _clean(self) -> None:
        """Leftovers go, what expires has expired, plans that are over are forgotten."""
        by_uid = {job.uid: job for job in self.jobs.values()}
        for held in list(cleanup.leftovers(by_uid, [r for r in self.rooms.values() if r.job])):
            del self.rooms[held.name]
        for held in list(self.rooms.values()):
            if held.expires is not None and self.now >= held.expires and not held.phase.over:
                self._change(held.name, phase=spec.Phase.FAILED)
        for plan in list(self.plans.values()):
            names = [plan_places.name(plan, number) for number in range(len(plan.places))]
            places = [self.rooms[name] for name in names if name in self.rooms]
            jobs = [job for job in self.jobs.values() if job.plan == plan.uid]
            waits = any(j.active for j in jobs) or any(place.owner is None for place in places)
            if plan.status.phase.over and not waits:
                for name in (*names, *(job.uid for job in jobs)):
                    self.rooms.pop(name, None)
                    self.jobs.pop(name, None)
                del self.plans[plan.name]

    def _somebody(self) -> None:
        """Plans are wanted and given up; strangers come and go, and pods that had waited."""
        choose = self._random
        match choose.choices(("want", "change", "come", "go"), (4, 1, 3, 5))[0]:
            case "want" if sum(not plan.status.phase.over for plan in self.plans.values()) < 2:
                self._want()
            case "change" if self.plans and choose.random() < 0.2:
                plan = choose.choice(list(self.plans.values()))
                self.plans[plan.name] = dataclasses.replace(plan, acts=True, aborts=plan.acts)
            case "come" if max(map(self.free, NODES)) > 2:
                self.create(STRANGER, STRANGER)
            case "go" if gone := [pod for pod in self.pods.values() if self._may_go(pod)]:
                self.go(choose.choice(gone))

    def _may_go(self, pod: Pod) -> bool:
        planned = self.place_of(PodRef(pod.namespace, pod.name, pod.uid)) is not None
        waits = app(pod.name) == WAITS and (not planned or self._random.random() < 0.01)
        return waits or app(pod.name) == STRANGER

    def _want(self) -> None:
        ref, choose = None, self._random
        least = min(CPUS, max(map(self.free, NODES)) + 1)
        if choose.random() < 0.8:
            sizes = [choose.randint(least, CPUS)]
            gang = f"w{self.made}" if self._ganged and choose.random() < self._ganged else ""
            if gang:  # the others are smaller: half of it would fit at times
                sizes = [least, *(choose.randint(1, least) for _ in range(TOGETHER - 1))]
            for size in sizes:
                self.create(f"{WAITS}-{size}", WAITS, gang)
            ref = PodRef("default", list(self.pods)[-1], list(self.pods.values())[-1].uid)
        self.made += 1
        name, acts = f"p{self.made}", choose.random() < 0.8
        self.plans[name] = MovePlan(name=name, uid=name, created=self.now, acts=acts, ttl=TTL,
                                    pod=ref)  # fmt: skip

    # The walk.

    def step(self, *, quiet: bool = False) -> None:
        """Somebody does something."""
        choose = self._random
        kinds = ("plan", "job", "job", "pod", "pod", "room", "kubelet", "kubelet", "clean", "time")
        match choose.choice(kinds if quiet else (*kinds, "somebody")):
            case "plan" if self.plans:
                self.plan_step(choose.choice(list(self.plans.values())))
            case "job" if active := [job for job in self.jobs.values() if job.active]:
                self.job_step(choose.choice(active))
            case "pod" if waiting := [p for p in self.pods.values() if not p.node]:
                self._schedule(choose.choice(waiting))
            case "room" if waiting_rooms := [r for r in self.rooms.values() if not r.node]:
                self._reserve(choose.choice(waiting_rooms))
            case "kubelet" if self.pods:
                self.kubelet(choose.choice(list(self.pods.values())))
            case "clean":
                self._clean()
            case "time":
                self.now += choose.choice((0.0, 0.5, 1.0, 3.0))
            case "somebody":
                self._somebody()
        self.look()

    def look(self) -> None:
        """No node or budget is overdrawn; who was moved has room; of a gang all leave, or none."""
        for node in NODES:
            assert self.free(node) >= 0, node
        for workload in SIZES:
            assert self.up(workload) >= LEAST_UP[workload], workload
            homeless = sum(app(p.name) == workload and not p.node for p in self.pods.values())
            open_rooms = sum(
                bool(held.node) and not (held.closed or held.owner or held.phase.over)
                for held in self.rooms.values()
                if held.controller == ("default", "ReplicaSet", workload)
            )
            assert homeless <= open_rooms, workload
        for job in self.jobs.values():
            leader = self.jobs.get(job.leader)
            if leader is not None and cleanup.has_evicted(leader):
                leaves = job.active or cleanup.has_evicted(job)
                assert (leaves, job.waits) == (True, False), job.status


def walked(
    seed: int, steps: int, staying: frozenset[str] = frozenset(), *, ganged: float = 0.0
) -> Walk:
    """A walk of so many steps, and then until all is quiet: everybody was served."""
    walk, whole = Walk(seed, staying, ganged), dict.fromkeys(SIZES, REPLICAS)
    for _ in range(steps):
        walk.step()
    for plan in walk.plans.values():
        walk.plans[plan.name] = dataclasses.replace(plan, aborts=plan.aborts or not plan.acts)
    for _ in range(20_000):
        walk.step(quiet=True)
        if not walk.plans and {workload: walk.up(workload) for workload in SIZES} == whole:
            break
    assert (walk.plans, walk.jobs, walk.rooms) == ({}, {}, {}), "each plan gives back what it holds"
    assert {workload: walk.up(workload) for workload in SIZES} == whole
    return walk


@pytest.mark.parametrize("seed", [1, 6])
def test_no_prefix_of_a_plan_loses_capacity_or_breaks_a_budget(seed: int) -> None:
    """Killed anywhere, among strangers; plans in shadow write nothing, and each plan ends."""
    walk = walked(seed, 6000)
    assert "Done" in walk.ends
    assert walk.evictions.total() >= 10


@pytest.mark.parametrize("seed", [2, 9])
def test_no_prefix_of_a_plan_splits_a_gang(seed: int) -> None:
    """Of others few may move: it moves whole or stays, though everything is killed anywhere."""
    walk = walked(seed, 6000, LARGE)
    assert walk.evictions[GANG] % REPLICAS == 0
    assert walk.evictions[GANG] > REPLICAS


@pytest.mark.parametrize("seed", [2, 8])
def test_no_prefix_of_a_plan_keeps_room_for_half_a_gang_that_waits(seed: int) -> None:
    """Nobody is evicted before all members have places; once it is done, all have their nodes."""
    walk = walked(seed, 6000, ganged=0.8)
    assert walk.evictions.total() > walk.gangs > 1


@pytest.mark.soak
def test_no_prefix_of_a_plan_loses_capacity_in_a_hundred_thousand_steps() -> None:
    """As above; plans end in most of their ways."""
    walk = walked(0, 100_000, ganged=0.3)
    assert {"Done", "NoPlan", "NoRoom", "Aborted", "NotNeeded"} <= set(walk.ends)
