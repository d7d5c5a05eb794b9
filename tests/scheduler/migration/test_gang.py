"""A gang that moves whole: nobody leaves before all have room, and one that stays keeps all."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.kubeapi.pod_groups import GangForm
from koordlet.scheduler.gangs.book import GangEntry
from koordlet.scheduler.gangs.gang import Gang
from koordlet.scheduler.migration import flow, gang, job
from koordlet.scheduler.migration.flow import EvictPod, MakeFollowers
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.picture import Picture
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.spec import Condition
from tests.scheduler.migration.test_flow import NOW, pod

MEMBERS = [pod(f"web-{number}", f"u-{number}", on="n1", at=NOW - 60) for number in (1, 2, 3)]


def condition(kind: str, *, holds: bool = True) -> Condition:
    """One condition."""
    return Condition(type=kind, status=holds, reason="", changed="2027-01-15T08:00:00Z")


def status(*conditions: Condition, phase: Phase = Phase.RUNNING, **more: Any) -> JobStatus:
    """A status with these."""
    return JobStatus(phase=phase, node="n2", conditions=conditions, **more)


ROOM = status(condition(flow.SCHEDULED))
LEAVES = status(condition(flow.SCHEDULED), condition(flow.EVICTION, holds=False))
LEFT = status(condition(flow.SCHEDULED), condition(flow.EVICTION))
LEADER = MigrationJob(
    name="a", uid="a", created=NOW, pod=PodRef("d", "web-1", "u-1"), whole_gang=True, status=ROOM
)


def follower(number: int, known: JobStatus) -> MigrationJob:
    """The job of another member."""
    ref = PodRef("d", f"web-{number}", f"u-{number}")
    return MigrationJob(
        name=f"a.web-{number}", uid=f"j{number}", created=NOW, pod=ref, leader="a", status=known
    )


def test_the_leader_makes_the_jobs_of_the_others_on_nodes_and_waits_for_their_room() -> None:
    """A member that has no node waits anyhow."""
    waiting = pod("web-4", "u-4", at=NOW)
    plan = gang.lead(LEADER, [LEADER], [*MEMBERS, waiting])
    assert [each.name for each in plan.missing] == ["web-2", "web-3"]
    several = [LEADER, follower(2, ROOM), follower(3, status())]
    plan = gang.lead(LEADER, several, MEMBERS)
    assert (plan.missing, plan.waits) == ((), "1 of 2 others of its gang have room")
    several[2] = follower(3, ROOM)
    assert gang.lead(LEADER, several, MEMBERS) == gang.ALONE


def test_a_follower_that_ends_before_ends_all() -> None:
    """With its own reason; one that succeeded is none of them."""
    failed = status(phase=Phase.FAILED, message="no node serves")
    plan = gang.lead(LEADER, [follower(2, failed), follower(3, ROOM)], MEMBERS)
    assert plan.broken == 'job "a.web-2" of its gang is over: no node serves'


@pytest.mark.parametrize(
    ("leader", "leading", "waits"),
    [
        (ROOM, MEMBERS[0], True),
        (LEAVES, MEMBERS[0], True),
        (LEAVES, dataclasses.replace(MEMBERS[0], terminating=True), False),
        (LEAVES, None, False),
        (LEFT, None, False),
        (status(*LEFT.conditions, phase=Phase.SUCCEEDED), None, False),
    ],
)
def test_a_follower_goes_once_the_leaders_pod_goes(
    leader: JobStatus, leading: Pod | None, *, waits: bool
) -> None:
    """That it was asked is not enough: a bound or a budget may refuse it."""
    known = dataclasses.replace(LEADER, status=leader)
    plan = gang.follow(follower(2, ROOM), {"a": known}, leading)
    assert (bool(plan.waits), plan.broken) == (waits, "")


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.ABORTED, None])
def test_a_follower_ends_with_its_leader_unless_that_has_left(phase: Phase | None) -> None:
    """It gives its room back then; also where somebody deleted the leader."""
    known = {}
    if phase is not None:
        known["a"] = dataclasses.replace(LEADER, status=dataclasses.replace(LEAVES, phase=phase))
    plan = gang.follow(follower(2, ROOM), known, MEMBERS[0])
    assert plan.broken == 'job "a", which moves the gang, is over'


def test_the_flow_makes_followers_waits_and_ends_as_the_plan_says() -> None:
    """Nothing is evicted meanwhile; the condition keeps what it waits for."""
    running = dataclasses.replace(LEADER, status=status(), reservation="r")
    plans = [
        gang.GangPlan(missing=tuple(MEMBERS[1:])), gang.GangPlan(broken="job is over"),
    ]  # fmt: skip

    def step(plan: gang.GangPlan, known: MigrationJob = running) -> flow.Step:
        picture = Picture(
            pod=lambda _: MEMBERS[0], room=lambda _: None, members=lambda _: MEMBERS,
            gang=lambda _: plan,
        )  # fmt: skip
        return flow.step(known, picture, NOW + 1)

    made = step(plans[0])
    assert made.actions == (MakeFollowers(tuple(MEMBERS[1:])),)
    assert step(plans[1]).status.reason == "GangStays"
    pending = dataclasses.replace(running, status=JobStatus())
    assert step(plans[1], pending).status.phase is Phase.FAILED
    # Once its own pod goes, others change nothing.
    gone = dataclasses.replace(running, status=LEAVES)
    assert step(plans[1], gone).status.reason != "GangStays"
    assert not any(isinstance(action, EvictPod) for action in made.actions)


def test_the_job_of_a_follower_has_a_name_that_follows_and_no_time_of_its_own() -> None:
    """Made twice it is one; it lasts as long as its leader."""
    leader = dataclasses.replace(LEADER, reason="a move", by="descheduler/X", policy="Eviction")
    body = job.following(leader, PodRef("d", "web-2", "u-2"))
    made = job.decode(body)
    assert (made.name, made.leader, made.whole_gang) == ("a.web-2", "a", False)
    assert (made.ttl, made.reason, made.by, made.policy) == (
        None, "a move", "descheduler/X", "Eviction",
    )  # fmt: skip
    leads = job.decode({"metadata": {"name": "x", **job.request(made.pod, gang=True)["metadata"]}})
    assert leads.whole_gang


@pytest.mark.parametrize(("bound", "words"), [(3, ""), (2, "gang d/g has 2 members on nodes and")])
def test_a_member_leaves_alone_where_the_minimum_does_not_need_it(bound: int, words: str) -> None:
    """The others are enough meanwhile."""
    known = Gang(id="d/g", key="d/g", source=GangForm.POD_GROUP, min=2, total=3)
    entry = GangEntry("d/g", known, bound={f"d/web-{place}" for place in range(bound)})
    why = gang.keeps(entry)
    assert (why == "") is (words == "")
    assert why.startswith(words)


def test_a_member_that_has_no_move_ends_the_gang_of_a_plan() -> None:
    """Nobody but the plan knows where it may go: no job is made for it."""
    leader = dataclasses.replace(LEADER, plan="u")
    plan = gang.lead(leader, [follower(2, ROOM)], MEMBERS)
    assert (plan.missing, plan.broken) == ((), "pod d/web-3 of its gang is in no move of the plan")
    # Until the plan lets it go, others are still made.
    waiting = dataclasses.replace(leader, waits=True)
    assert gang.lead(waiting, [], MEMBERS) == gang.ALONE
