"""The life of a plan, killed anywhere, in a cluster that does its part or changes meanwhile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from koordlet.model import moment
from koordlet.scheduler.migration import flow as job_flow
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import plan_flow, plan_places, plan_step
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanMove
from koordlet.scheduler.rescheduling.plan_status import MovePhase, PlanPhase
from koordlet.scheduler.rescheduling.plan_step import PlanPicture
from koordlet.scheduler.reservation.spec import Condition
from tests.scheduler.migration.test_flow import NOW, Killed, pod

BIG = PodRef("d", "big", "u-big")
MOVES = tuple(PlanMove(PodRef("d", f"p{n}", f"u-{n}"), "n1", f"n{n + 2}") for n in range(3))


class Cluster:
    """Pods, jobs that do their work, a place, one plan; each write may be the last."""

    def __init__(self, plan: MovePlan, *, kill: int = -1, after: bool = False) -> None:
        self.now, self.plan = NOW, plan
        self.pods: dict[str, Pod] = {"big": pod("big", "u-big")}
        for move in plan.moves or MOVES:
            self.pods[move.pod.name] = pod(move.pod.name, move.pod.uid, on=move.origin, up=True)
        self.jobs: dict[str, MigrationJob] = {}
        self.place: JobReservation | None = None
        #: What happened, in order: ``hold``, ``evict NAME``.
        self.log: list[str] = []
        self.objection = ("", "")
        #: Whether rooms are found, and whether budgets let pods go.
        self.rooms, self.lets = True, True
        self.writes, self._kill, self._after = 0, kill, after

    def _write(self) -> bool:
        self.writes += 1
        if self.writes - 1 == self._kill and not self._after:
            raise Killed
        return self.writes - 1 == self._kill

    def picture(self) -> PlanPicture:
        """What the plan sees."""
        return PlanPicture(
            pod=lambda ref: self.pods.get(ref.name),
            job=self.jobs.get,
            room=lambda name: self.place if name == plan_places.name(self.plan) else None,
            check=lambda _: self.objection,
        )

    def step(self) -> None:
        """One step of the plan, as the controller does it."""
        made = plan_flow.step(self.plan, self.picture(), self.now)
        if made.status != self.plan.status:
            killed = self._write()
            self.plan = dataclasses.replace(self.plan, status=made.status)
            if killed:
                raise Killed
            return
        for action in made.actions:
            killed = self._write()
            self._act(action)
            if killed:
                raise Killed

    def _act(self, action: plan_step.Action) -> None:
        match action:
            case plan_step.FindMoves():
                self.plan = dataclasses.replace(self.plan, moves=MOVES)
            case plan_step.HoldPlace(_):
                if self.place is None:
                    name = plan_places.name(self.plan)
                    self.place = JobReservation(name=name, uid="r", node="n1", owner=MOVES[0].pod)
                    self.log.append("hold")
            case plan_step.MakeJob(place):
                self._make(place)
            case plan_step.ReleaseJob(job):
                gang = [each for each in self.jobs.values() if each.leader == job.name]
                assert not any(each.waits for each in gang), "the one that leads is the last"
                self._put(dataclasses.replace(self.jobs[job.name], waits=False))
            case plan_step.EndJob(job):
                ended = dataclasses.replace(job.status, phase=Phase.ABORTED)
                self._put(dataclasses.replace(job, aborts=True, status=ended))
            case plan_step.DropPlace(_):
                self.place = None

    def _make(self, place: int) -> None:
        name, ref = self.plan.job(place), self.plan.moves[place].pod
        if name not in self.jobs:
            self.log.append(f"job {ref.name}")
            status = JobStatus(phase=Phase.RUNNING)
            made = MigrationJob(name=name, uid=name, pod=ref, plan="u", waits=True, status=status,
                                leader=self.plan.leader(place))  # fmt: skip
            self._put(made)

    def _put(self, job: MigrationJob) -> None:
        self.jobs[job.name] = job

    def happen(self) -> None:
        """What schedulers, kubelets and the jobs' own controller do meanwhile."""
        self.now += 1.0
        there = set(self.pods)
        for place, move in enumerate(self.plan.moves):
            job = self.jobs.get(self.plan.job(place))
            if job is None or not job.active:
                continue
            if not job.status.node and self.rooms:
                self._put(_with(job, node=move.target))
            elif job.waits or (job.leader and self.jobs[job.leader].pod.name in there):
                continue  # for the plan, or for the job that leads
            elif self.lets and job.status.condition(job_flow.EVICTION) is None:
                self.log.append(f"evict {job.pod.name}")
                del self.pods[job.pod.name]
                gone = Condition(type=job_flow.EVICTION, status=True, reason="EvictComplete",
                                 changed=moment.spell(self.now))  # fmt: skip
                self._put(_with(job, conditions=(gone,)))
            elif job.status.condition(job_flow.EVICTION) is not None:
                new = PodRef("d", f"{job.pod.name}-new")
                self._put(_with(job, phase=Phase.SUCCEEDED, pod=new))
        left = [m for m in self.plan.moves if m.origin == "n1" and m.pod.name in self.pods]
        if self.plan.moves and not left and self.place is not None and "big" in self.pods:
            self.pods["big"] = dataclasses.replace(self.pods["big"], node="n1")
            self.place = None

    def run(self, until: Callable[[], bool] | None = None) -> MovePlan:
        """Until the plan is over and nothing is left to do, or something is so."""
        for _ in range(300):
            try:
                self.step()
            except Killed:
                continue  # it starts again from what is stored
            if until is not None and until():
                break
            if (
                self.plan.status.phase.over
                and not plan_flow.step(self.plan, self.picture(), self.now).actions
            ):
                break
            self.happen()
        return self.plan


def _with(job: MigrationJob, **status: object) -> MigrationJob:
    changed = dataclasses.replace(job.status, **status)  # type: ignore[arg-type]
    return dataclasses.replace(job, status=changed)


def plan(**more: object) -> MovePlan:
    """Three moves that make room for a pod."""
    usual = {"name": "p", "uid": "u", "acts": True, "pod": BIG, "node": "n1", "moves": MOVES}
    return MovePlan(**{**usual, **more})  # type: ignore[arg-type]


def started(cluster: Cluster, *evicted: str) -> Callable[[], bool]:
    """Whether so many have left."""
    return lambda: (
        [line for line in cluster.log if line.startswith("evict")]
        == [f"evict {name}" for name in evicted]
    )


def test_all_have_room_before_the_first_leaves_and_they_leave_one_by_one() -> None:
    """The place of the pod that is to fit is held with theirs; then it takes it."""
    cluster = Cluster(plan())
    over = cluster.run()
    assert cluster.log == [
        *("job p0", "job p1", "job p2", "hold"),
        *("evict p0", "evict p1", "evict p2"),
    ]
    assert (over.status.phase, over.status.message) == (PlanPhase.DONE, "d/big has node n1")
    assert [state.phase for state in over.status.moves] == [MovePhase.DONE] * 3
    assert [state.replacement for state in over.status.moves] == [f"d/p{n}-new" for n in range(3)]
    assert not any(job.active for job in cluster.jobs.values())


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_it_ends_the_same(after: bool) -> None:
    """Before the write or after it: the same moves, each once, in the same order."""
    whole = Cluster(plan())
    whole.run()
    assert whole.writes > 12
    for kill in range(whole.writes):
        cluster = Cluster(plan(), kill=kill, after=after)
        assert cluster.run().status == dataclasses.replace(
            whole.plan.status, began=cluster.plan.status.began
        )
        assert sorted(cluster.log[:4]) == sorted(whole.log[:4])
        assert cluster.log[4:] == whole.log[4:]


def test_moves_that_nobody_named_are_found_first() -> None:
    """Then all is as if somebody had named them."""
    assert Cluster(plan(moves=(), node="n1")).run().status.phase is PlanPhase.DONE


def test_in_shadow_it_checks_and_moves_nobody_until_it_is_to_act() -> None:
    """The answer is its message; with mode Act it goes on."""
    cluster = Cluster(plan(acts=False))
    seen = cluster.run(lambda: cluster.now > NOW + 20)
    assert (seen.status.phase, seen.status.reason) == (PlanPhase.CHECKING, "Shadow")
    assert "3 moves would make room for d/big" in seen.status.message
    assert cluster.log == []
    cluster.plan = dataclasses.replace(seen, acts=True)
    assert cluster.run().status.phase is PlanPhase.DONE


def test_what_the_check_objects_to_is_the_reason() -> None:
    """Nobody holds anything."""
    cluster = Cluster(plan())
    cluster.objection = "RateSpent", "DisruptionRate d/p0 allows 0 in 1h"
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (PlanPhase.FAILED, "RateSpent")
    assert cluster.log == []


def test_without_room_for_all_nobody_leaves_and_everything_is_given_back() -> None:
    """After a minute."""
    cluster = Cluster(plan())
    cluster.rooms = False
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (PlanPhase.FAILED, "NoRoom")
    assert over.status.message.startswith("d/p0: no room on node n2 yet; d/p1: no room on")
    assert started(cluster)()
    assert {job.status.phase for job in cluster.jobs.values()} == {Phase.ABORTED}
    assert cluster.place is None


@pytest.mark.parametrize(
    ("change", "phase", "reason"),
    [
        (lambda c: c.pods.pop("p1"), PlanPhase.FAILED, "PodGone"),
        (
            lambda c: c.pods.update(p1=dataclasses.replace(c.pods["p1"], uid="another")),
            *(PlanPhase.FAILED, "PodGone"),
        ),
        (
            lambda c: c.pods.update(p1=dataclasses.replace(c.pods["p1"], node="n9")),
            *(PlanPhase.FAILED, "PodMoved"),
        ),
        (lambda c: c.pods.pop("big"), PlanPhase.FAILED, "BeneficiaryGone"),
        (
            lambda c: c.pods.update(big=dataclasses.replace(c.pods["big"], node="n9")),
            *(PlanPhase.ABORTED, "NotNeeded"),
        ),
        (lambda c: c.jobs.pop(c.plan.job(1)), PlanPhase.FAILED, "JobGone"),
        (
            lambda c: setattr(c, "plan", dataclasses.replace(c.plan, aborts=True)),
            *(PlanPhase.ABORTED, "Aborted"),
        ),
        (
            lambda c: setattr(c, "plan", dataclasses.replace(c.plan, fault="bad")),
            *(PlanPhase.FAILED, "InvalidPlan"),
        ),
    ],
)
def test_it_stops_with_a_reason_when_the_world_is_another(
    change: Callable[[Cluster], object], phase: PlanPhase, reason: str
) -> None:
    """After the first has left: he keeps his new place, the others stay, all room is given back."""
    cluster = Cluster(plan())
    cluster.run(started(cluster, "p0"))
    change(cluster)
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (phase, reason)
    assert started(cluster, "p0")()
    # Who was under way when it ended goes on until the replacement is up.
    assert cluster.jobs[cluster.plan.job(0)].status.phase is not Phase.ABORTED
    assert cluster.place is None


def test_it_is_done_as_soon_as_its_pod_has_the_room() -> None:
    """Somebody else has left by himself: the last need not move."""
    cluster = Cluster(plan())
    cluster.run(started(cluster, "p0"))
    cluster.pods["big"] = dataclasses.replace(cluster.pods["big"], node="n1")
    over = cluster.run()
    assert (over.status.phase, over.status.message) == (PlanPhase.DONE, "d/big has node n1")
    assert started(cluster, "p0")()


def test_a_budget_is_waited_for_until_the_time_of_the_plan_is_over() -> None:
    """The pod that it keeps stays, and so does the one after it."""
    cluster = Cluster(plan(ttl=60.0))
    cluster.run(started(cluster, "p0"))
    cluster.lets = False
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (PlanPhase.ABORTED, "Timeout")
    assert over.status.message.startswith("60 s are over: move 2 of 3: d/p1")
    assert sorted(cluster.pods) == ["big", "p1", "p2"]
    assert not any(job.active for job in cluster.jobs.values())


def test_a_move_that_fails_ends_the_plan_with_the_reason_of_its_job() -> None:
    """Nobody else leaves."""
    cluster = Cluster(plan())
    cluster.run(started(cluster, "p0"))
    job = cluster.jobs[cluster.plan.job(1)]
    cluster.jobs[job.name] = _with(job, phase=Phase.FAILED, reason="Timeout", message="too late")
    over = cluster.run()
    assert (over.status.reason, over.status.message) == ("Timeout", "d/p1: too late")
    assert over.status.moves[1].phase is MovePhase.FAILED
    assert "evict p2" not in cluster.log


@pytest.mark.parametrize("reason", ["PodGone", "JobGone", "Timeout"])
def test_nobody_leaves_for_a_plan_of_which_a_later_move_has_failed(reason: str) -> None:
    """The last of three cannot be made any more while the first leaves: the second stays."""
    cluster = Cluster(plan())
    cluster.run(started(cluster, "p0"))
    name = cluster.plan.job(2)
    if reason == "PodGone":
        del cluster.pods["p2"]
    if reason != "Timeout":
        del cluster.jobs[name]
    else:
        cluster.jobs[name] = _with(cluster.jobs[name], phase=Phase.FAILED, reason="Timeout")
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (PlanPhase.FAILED, reason)
    assert "evict p1" not in cluster.log


def test_room_of_a_later_move_is_held_once_the_earlier_ones_are_done() -> None:
    """A chain: the second goes to where the first was."""
    moves = (
        PlanMove(PodRef("d", "p0", "u-0"), "n1", "n2"),
        PlanMove(PodRef("d", "p1", "u-1"), "n3", "n1", after=(0,)),
    )
    cluster = Cluster(plan(pod=None, node="n3", moves=moves))
    over = cluster.run()
    assert (over.status.phase, over.status.message) == (
        *(PlanPhase.DONE, "node n3 has no pods that could move"),
    )
    assert cluster.log == ["job p0", "evict p0", "job p1", "evict p1"]


GANG = tuple(
    dataclasses.replace(move, gang="d/g" if place else "") for place, move in enumerate(MOVES)
)


@pytest.mark.parametrize("after", [False, True])
def test_a_gang_is_let_go_whole_after_those_before_it_wherever_it_is_killed(after: bool) -> None:
    """The one that leads waits for the plan until no other does."""
    whole = Cluster(plan(moves=GANG))
    whole.run(started(whole, "p0"))
    assert [job.waits for job in whole.jobs.values()] == [False, True, True]
    over = whole.run()
    assert over.status.phase is PlanPhase.DONE
    assert whole.log[-3:] == ["evict p0", "evict p1", "evict p2"]
    for kill in range(whole.writes):
        cluster = Cluster(plan(moves=GANG), kill=kill, after=after)
        assert cluster.run().status.phase is PlanPhase.DONE
        assert cluster.log[-3:] == whole.log[-3:]


def test_the_rest_of_a_gang_follows_though_its_plan_has_ended() -> None:
    """Half a gang is of no use; while nobody has left, all of it is given back."""
    cluster = Cluster(plan(moves=GANG))
    cluster.run(started(cluster, "p0", "p1"))
    cluster.lets = False
    cluster.plan = dataclasses.replace(cluster.plan, aborts=True)
    assert cluster.run().status.phase is PlanPhase.ABORTED
    cluster.lets = True
    cluster.happen()
    cluster.happen()
    assert cluster.jobs[cluster.plan.job(2)].status.phase is Phase.SUCCEEDED
    cluster = Cluster(plan(moves=GANG))
    cluster.run(started(cluster, "p0"))
    cluster.plan = dataclasses.replace(cluster.plan, aborts=True)
    cluster.run()
    phases = [cluster.jobs[cluster.plan.job(place)].status.phase for place in (1, 2)]
    assert phases == [Phase.ABORTED] * 2


def test_a_job_that_names_itself_as_its_leader_has_not_left() -> None:
    """Anybody may write the annotation: it is one step back, and no more."""
    cluster = Cluster(plan())
    alone = MigrationJob(name="j", uid="j", pod=MOVES[0].pod, plan="u", leader="j")
    cluster.jobs["j"] = alone
    assert not plan_flow.has_left(alone, cluster.picture())
