"""A long random walk of plans: each eviction has its room, one pod is down at a time, all ends.

Covers: plans by the real search and check, the real steps of plans and of their jobs, each killed
anywhere, among strangers who take whatever is free, and budgets as a server keeps them. Does not
cover: stores (``tests.scheduler.loop.test_plan_controller``), the ledgers of rates
(``tests.scheduler.disruption.test_ledger_properties``).
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import pytest

from koordlet.model import moment
from koordlet.scheduler.migration import cleanup, flow
from koordlet.scheduler.migration import room as job_rooms
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import plan_flow
from koordlet.scheduler.rescheduling.make_room import RoomPlanner
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanMove, PlanPhase, PlanStatus
from koordlet.scheduler.rescheduling.plan_check import PlanCheck
from koordlet.scheduler.reservation.spec import Phase as RoomPhase
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import descheduling
from tests.kit.descheduling import NOW, Body

NODES, CPUS = tuple(f"n{place}" for place in range(8)), 8
#: CPUs of a pod of each workload; a server lets one of its three pods be down.
SIZES = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "f": 4}
REPLICAS, LEAST_UP = 3, 2
TTL = 120.0
WAITS, STRANGER = "big", "stranger"


def app(name: str) -> str:
    """Whose pod it is."""
    return name.partition("-")[0]


class Walk:
    """A cluster, its plans and their jobs, and one step of somebody after the other."""

    def __init__(self, seed: int) -> None:
        self.now, self._random, self._next = NOW, random.Random(seed), 0
        self._decoder = Decoder({})
        self.pods: dict[str, Pod] = {}
        self._bodies: dict[str, Body] = {}
        self.rooms: dict[str, JobReservation] = {}
        self.jobs: dict[str, MigrationJob] = {}
        self.plans: dict[str, MovePlan] = {}
        #: How plans ended, and how often a pod was evicted.
        self.ends: list[str] = []
        self.evictions = 0
        for workload in SIZES:
            self._replace(workload)
        for pod in self.pods.values():
            self._schedule(pod)
            pod.ready = bool(pod.node)

    # Amounts.

    def size(self, name: str) -> int:
        """The CPUs of a pod."""
        return SIZES.get(app(name), 1) if app(name) != WAITS else int(name.split("-")[1])

    def _leaving(self, plan: MovePlan) -> Iterator[Pod]:
        """Those whose room the place of a plan takes over, while they are there."""
        for move in plan.moves:
            pod = self.pods.get(move.pod.name)
            if move.origin == plan.node and pod is not None and pod.uid == move.pod.uid:
                yield pod

    def _holds(self, held: JobReservation) -> int:
        """The CPUs that a reservation keeps from everybody else."""
        if held.owner is not None or held.phase.over:
            return 0
        if held.job:
            return self.size(self.jobs[held.job].pod.name)
        plan = next(plan for plan in self.plans.values() if held.name == plan_flow.place_name(plan))
        assert plan.pod is not None
        freed = sum(self.size(m.pod.name) for m in plan.moves if m.origin == plan.node)
        there = sum(self.size(pod.name) for pod in self._leaving(plan))
        return max(self.size(plan.pod.name), freed) - there

    def free(self, node: str) -> int:
        """What nobody has or holds of a node."""
        pods = sum(self.size(pod.name) for pod in self.pods.values() if pod.node == node)
        return CPUS - pods - sum(self._holds(r) for r in self.rooms.values() if r.node == node)

    def up(self, workload: str) -> int:
        """How many of its pods serve."""
        return sum(pod.up for pod in self.pods.values() if app(pod.name) == workload)

    def scene(self) -> LimitedDump:
        """The cluster as the search sees it: reservations are pods that belong to their node."""
        bodies = [descheduling.node(name, cpu=str(CPUS), pods=100) for name in NODES]
        for name, body in self._bodies.items():
            if self.pods[name].node and not self.pods[name].terminating:
                spec = {**body["spec"], "nodeName": self.pods[name].node}
                bodies.append({**body, "spec": spec})
        bodies += [
            descheduling.pod(f"room-{held.name}", held.node, cpu=str(much), owner="DaemonSet/room")
            for held in self.rooms.values()
            if held.node and (much := self._holds(held))
        ]
        for workload in SIZES:
            meta = {"name": workload, "namespace": "default", "generation": 1}
            status = {"disruptionsAllowed": self.up(workload) - LEAST_UP, "observedGeneration": 1}
            spec = {"selector": {"matchLabels": {"app": workload}}}
            kind = "PodDisruptionBudget"
            bodies.append({"kind": kind, "metadata": meta, "spec": spec, "status": status})
        return LimitedDump(bodies, self.now)

    # Plans and their jobs.

    def _pod(self, ref: PodRef) -> Pod | None:
        return self.pods.get(ref.name)

    def _check(self, plan: MovePlan) -> tuple[str, str]:
        scene = self.scene()
        pod = None if plan.pod is None else self._pod(plan.pod)
        return PlanCheck(scene.state, scene.limiter).objection(pod, plan.node, plan.moves)

    def plan_step(self, plan: MovePlan) -> None:
        """One step of a plan, perhaps killed on the way, or done twice."""
        picture = plan_flow.PlanPicture(
            pod=self._pod, job=self.jobs.get, room=self.rooms.get, check=self._check
        )
        made = plan_flow.step(plan, picture, self.now)
        if made.status != plan.status:
            if made.status.phase.over:
                self.ends.append(made.status.reason or made.status.phase)
            self.plans[plan.name] = dataclasses.replace(plan, status=made.status)
            return
        for action in made.actions:
            for _ in range(self._random.choice((0, 1, 1, 1, 2))):
                self._act(plan, action)

    def _act(self, plan: MovePlan, action: plan_flow.Action) -> None:
        if not isinstance(action, plan_flow.FindMoves):
            assert plan.acts, "a plan in shadow writes nothing but what it would do"
        match action:
            case plan_flow.FindMoves():
                self._find(plan)
            case plan_flow.HoldPlace():
                name = plan_flow.place_name(plan)
                self.rooms.setdefault(name, JobReservation(name=name, uid=name))
            case plan_flow.MakeJob(place):
                name, pod = plan.job(place), plan.moves[place].pod
                running = JobStatus(phase=Phase.RUNNING)
                made = MigrationJob(name=name, uid=name, pod=pod, created=self.now, plan=plan.uid,
                                    waits=True, ttl=TTL + 60, status=running)  # fmt: skip
                self.jobs.setdefault(name, made)
            case plan_flow.ReleaseJob(job):
                self.jobs[job.name] = dataclasses.replace(self.jobs[job.name], waits=False)
            case plan_flow.EndJob(job):
                self.jobs[job.name] = dataclasses.replace(self.jobs[job.name], aborts=True)
            case plan_flow.DropPlace(held):
                self.rooms.pop(held.name, None)

    def _find(self, plan: MovePlan) -> None:
        scene, pod = self.scene(), None if plan.pod is None else self._pod(plan.pod)
        planner = RoomPlanner(scene.state, scene.limiter)
        answer: Any = "it is gone or placed"
        if pod is None or not pod.node:
            answer = planner.empty_node() if pod is None else planner.make_room(pod)
        if isinstance(answer, str):
            ended = PlanStatus(phase=PlanPhase.FAILED, reason="NoPlan", message=answer)
            self.plans[plan.name] = dataclasses.replace(plan, status=ended)
            self.ends.append("NoPlan")
            return
        moves = tuple(
            PlanMove(PodRef(m.pod.namespace, m.pod.name, m.pod.uid), m.origin, m.target, m.after)
            for m in answer.moves
        )
        self.plans[plan.name] = dataclasses.replace(plan, node=answer.node, moves=moves)

    def job_step(self, job: MigrationJob) -> None:
        """One step of a job, perhaps killed after any write."""

        def members(controller: tuple[str, str, str]) -> list[Pod]:
            return [pod for pod in self.pods.values() if app(pod.name) == controller[2]]

        picture = flow.Picture(pod=self._pod, room=self.rooms.get, members=members)
        made = flow.step(job, picture, self.now)
        self.jobs[job.name] = dataclasses.replace(job, status=made.status)
        for action in made.actions:
            if self._random.random() < 0.2:
                return
            self._do(self.jobs[job.name], action)

    def _do(self, job: MigrationJob, action: flow.Action) -> None:
        match action:
            case flow.MakeReservation():
                controller = ("default", "ReplicaSet", app(job.pod.name))
                expires = self.now + 2 * TTL
                made = JobReservation(name=job.uid, uid=job.uid, job=job.name, closed=True,
                                      controller=controller, expires=expires)  # fmt: skip
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
        plan = next(plan for plan in self.plans.values() if plan.uid == job.plan)
        place = next(n for n, move in enumerate(plan.moves) if plan.job(n) == job.name)
        held, move = self.rooms[job.reservation], plan.moves[place]
        assert plan.acts
        assert (held.node, held.owner, held.closed) == (move.target, None, False)
        assert move.target != pod.node
        for number, other in enumerate(plan.moves):
            known = self.jobs.get(plan.job(number))
            if number < place:
                assert known is not None
                assert known.status.phase is Phase.SUCCEEDED, "one after the other"
            elif not other.after:
                assert known is not None
                assert self.rooms[known.reservation].node == other.target, "room for all first"
        if plan.pod is not None:
            # Where the plan is over meanwhile, its place is given back.
            assert plan.status.phase.over or self.rooms[plan_flow.place_name(plan)].node
        workload = app(pod.name)
        if self.up(workload) - pod.up >= LEAST_UP:
            pod.terminating = True
            self.evictions += 1
            self._replace(workload)

    # What everybody else does.

    def _create(self, name: str, workload: str) -> None:
        self._next += 1
        name = f"{name}-{self._next}"
        belongs = "DaemonSet" if workload in {WAITS, STRANGER} else "ReplicaSet"
        body = descheduling.pod(name, "", cpu=str(self.size(name)), owner=f"{belongs}/{workload}",
                                labels={"app": workload},
                                meta={"creationTimestamp": moment.spell(self.now)})  # fmt: skip
        self._bodies[name], self.pods[name] = body, self._decoder.decode(body, 0)
        self.pods[name].ready = False

    def _replace(self, workload: str) -> None:
        """What the controller of a workload does."""
        for _ in range(REPLICAS - sum(not p.terminating for p in self.pods.values()
                                      if app(p.name) == workload)):  # fmt: skip
            self._create(workload, workload)

    def _go(self, pod: Pod) -> None:
        del self.pods[pod.name], self._bodies[pod.name]

    def _schedule(self, pod: Pod) -> None:
        """A pod takes the room that is held for it, or what is free."""
        ref = PodRef(pod.namespace, pod.name, pod.uid)
        for held in self.rooms.values():
            plan = next((p for p in self.plans.values() if p.pod == ref), None)
            waits = plan is not None and next(self._leaving(plan), None) is not None
            own = plan is not None and held.name == plan_flow.place_name(plan) and not waits
            theirs = held.controller == ("default", "ReplicaSet", app(pod.name)) and not held.closed
            if (own or theirs) and held.node and held.owner is None and not held.phase.over:
                pod.node, pod.draws_on = held.node, held.uid
                self._change(held.name, owner=ref, phase=RoomPhase.SUCCEEDED)
                return
        several = [node for node in NODES if self.free(node) >= self.size(pod.name)]
        if several:
            pod.node = self._random.choice(several)

    def _reserve(self, held: JobReservation) -> None:
        """A reservation gets its node, where that has room for it."""
        if held.job:
            plan = next(p for p in self.plans.values() if p.uid == self.jobs[held.job].plan)
            job = self.jobs[held.job].name
            node = next(m.target for n, m in enumerate(plan.moves) if plan.job(n) == job)
        else:
            plan = next(p for p in self.plans.values() if held.name == plan_flow.place_name(p))
            node = plan.node
        if self.free(node) >= self._holds(held):
            self._change(held.name, node=node, phase=RoomPhase.AVAILABLE)

    def _kubelet(self, pod: Pod) -> None:
        if pod.terminating:
            self._go(pod)
        elif pod.node:
            pod.ready = True

    def _clean(self) -> None:
        """Leftovers go, what expires has expired, plans that are over are forgotten."""
        by_uid = {job.uid: job for job in self.jobs.values()}
        for held in list(cleanup.leftovers(by_uid, [r for r in self.rooms.values() if r.job])):
            del self.rooms[held.name]
        for held in list(self.rooms.values()):
            if held.expires is not None and self.now >= held.expires and not held.phase.over:
                self._change(held.name, phase=RoomPhase.FAILED)
        for plan in list(self.plans.values()):
            held_place = self.rooms.get(plan_flow.place_name(plan))
            names = [plan.job(place) for place in range(len(plan.moves))]
            jobs = [self.jobs[name] for name in names if name in self.jobs]
            if not plan.status.phase.over or any(job.active for job in jobs):
                continue
            if held_place is not None and held_place.owner is None:
                continue
            del self.plans[plan.name]
            self.rooms.pop(plan_flow.place_name(plan), None)
            for job in jobs:
                self.rooms.pop(job.uid, None)
                del self.jobs[job.name]

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
                self._create(STRANGER, STRANGER)
            case "go" if gone := [pod for pod in self.pods.values() if self._may_go(pod)]:
                self._go(choose.choice(gone))

    def _may_go(self, pod: Pod) -> bool:
        if app(pod.name) == STRANGER:
            return True
        planned = any(plan.pod is not None and plan.pod.uid == pod.uid
                      for plan in self.plans.values())  # fmt: skip
        return app(pod.name) == WAITS and (not planned or self._random.random() < 0.01)

    def _want(self) -> None:
        ref, choose = None, self._random
        least = min(CPUS, max(map(self.free, NODES)) + 1)
        if choose.random() < 0.8:
            self._create(f"{WAITS}-{choose.randint(least, CPUS)}", WAITS)
            ref = PodRef("default", list(self.pods)[-1], list(self.pods.values())[-1].uid)
        name = f"p{self._next}-{int(self.now)}"
        if name not in self.plans:
            acts = choose.random() < 0.8
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
                self._kubelet(choose.choice(list(self.pods.values())))
            case "clean":
                self._clean()
            case "time":
                self.now += choose.choice((0.0, 0.5, 1.0, 3.0))
            case "somebody":
                self._somebody()
        self.look()

    def look(self) -> None:
        """No node has more than it has, no budget is broken, whoever was moved has room."""
        for node in NODES:
            assert self.free(node) >= 0, node
        for workload in SIZES:
            assert self.up(workload) >= LEAST_UP, workload
            homeless = sum(app(p.name) == workload and not p.node for p in self.pods.values())
            open_rooms = sum(
                bool(held.node) and not (held.closed or held.owner or held.phase.over)
                for held in self.rooms.values()
                if held.controller == ("default", "ReplicaSet", workload)
            )
            assert homeless <= open_rooms, workload


def walked(seed: int, steps: int) -> Walk:
    """A walk of so many steps, and then until all is quiet: everybody was served."""
    walk = Walk(seed)
    for _ in range(steps):
        walk.step()
    for plan in walk.plans.values():
        walk.plans[plan.name] = dataclasses.replace(plan, aborts=plan.aborts or not plan.acts)
    for _ in range(5000):
        walk.step(quiet=True)
    assert walk.plans == {}, "each plan ends, and gives back what it holds"
    assert (walk.jobs, walk.rooms) == ({}, {})
    assert {workload: walk.up(workload) for workload in SIZES} == dict.fromkeys(SIZES, REPLICAS)
    return walk


@pytest.mark.parametrize("seed", [1, 2])
def test_no_prefix_of_a_plan_loses_capacity_or_breaks_a_budget(seed: int) -> None:
    """Killed anywhere, among strangers; plans in shadow write nothing, and each plan ends."""
    walk = walked(seed, 6000)
    assert "Done" in walk.ends
    assert walk.evictions > 10


@pytest.mark.soak
def test_no_prefix_of_a_plan_loses_capacity_in_a_hundred_thousand_steps() -> None:
    """As above; plans end in every way."""
    walk = walked(0, 100_000)
    assert {"Done", "NoPlan", "NoRoom", "Timeout", "Aborted", "NotNeeded"} <= set(walk.ends)
