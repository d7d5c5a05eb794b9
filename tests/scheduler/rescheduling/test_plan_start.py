"""Plans begin by themselves where a pod has waited long, or no pod waits; one at a time."""

from __future__ import annotations

import dataclasses

from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.settings import PlanSettings
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling.move_plan import STARTER, MovePlan
from koordlet.scheduler.rescheduling.plan_start import DuePlan, PlanStart
from koordlet.scheduler.rescheduling.plan_status import PlanPhase, PlanStatus
from tests.kit import gangs
from tests.scheduler.migration.test_flow import pod

WANTED = PlanSettings(make_room_after=600.0, consolidate_every=3600.0)


def at(seconds: float) -> Clock:
    """A moment."""
    return Clock(wall=1_800_000_000.0 + seconds, steady=seconds)


def refused(name: str) -> Pod:
    """A pod that its scheduler has refused."""
    made = pod(name, f"u-{name}")
    made.stored_condition = ("Unschedulable", "no room", "", 0)
    return made


def plan(wanted: Pod | None, *, acts: bool = False, phase: str = "Checking") -> MovePlan:
    """One that began by itself."""
    ref = None if wanted is None else PodRef(wanted.namespace, wanted.name, wanted.uid)
    status = PlanStatus(phase=PlanPhase(phase))
    return MovePlan(name="p", uid="u", pod=ref, acts=acts, starter=STARTER, status=status)


def test_the_pod_that_has_waited_longest_comes_first_and_not_before_its_time() -> None:
    """Counted from when it was first seen; as long again until it gets another plan."""
    start, old, young = PlanStart(), refused("b-old"), refused("a-young")
    assert start.due([old], [], WANTED, at(0)) is None
    assert start.due([old, young], [], WANTED, at(599)) is None
    assert start.due([old, young], [], WANTED, at(600)) == DuePlan(old)
    assert start.due([old, young], [plan(old)], WANTED, at(601)) is None
    assert start.due([old, young], [plan(old)], WANTED, at(1199)) == DuePlan(young)
    over = [plan(old, phase="Failed"), plan(young, phase="Failed")]
    assert start.due([old, young], over, WANTED, at(1199)) is None
    assert start.due([old, young], over, WANTED, at(1200)) == DuePlan(old)


def test_a_gang_has_one_plan_at_a_time_whichever_of_its_pods_it_is_for() -> None:
    """It makes room for all of it; and the gang waits as long again."""
    start, several = PlanStart(), [gangs.decoded(gangs.member(name, "g", 2)) for name in "ab"]
    for each in several:
        each.stored_condition = ("Unschedulable", "no room", "", 0)
    start.due(several, [], WANTED, at(0))
    assert start.due(several, [], WANTED, at(600)) == DuePlan(several[0])
    assert start.due(several, [plan(several[0])], WANTED, at(1300)) is None
    assert start.due(several, [], WANTED, at(1199)) is None
    assert start.due(several, [], WANTED, at(1200)) == DuePlan(several[0])


def test_while_a_plan_of_its_own_moves_pods_no_other_begins() -> None:
    """One in shadow moves nobody, and keeps only its own pod from another."""
    start, first, second = PlanStart(), refused("a"), refused("b")
    start.due([first, second], [], WANTED, at(0))
    assert start.due([first, second], [plan(first, acts=True)], WANTED, at(700)) is None
    assert start.due([first, second], [plan(first)], WANTED, at(700)) == DuePlan(second)


def test_a_node_is_emptied_now_and_then_while_no_pod_waits() -> None:
    """Not at the start, and not beside another plan that moves pods; one in shadow is outdated."""
    start = PlanStart()
    assert start.due([], [], WANTED, at(0)) is None
    assert start.due([], [], WANTED, at(3600)) == DuePlan(None)
    assert start.due([], [], WANTED, at(3601)) is None
    assert start.due([], [plan(None, acts=True)], WANTED, at(7200)) is None
    assert start.due([refused("a")], [], WANTED, at(7200)) is None
    assert start.due([], [plan(None)], WANTED, at(7201)) == DuePlan(None)


def test_room_ahead_is_made_while_no_pod_waits_one_size_after_the_other() -> None:
    """Before a node is emptied; as long again until a size gets another plan."""
    start, large, small = PlanStart(), {"cpu": 8000}, {"cpu": 4000}
    assert start.due([refused("a")], [], WANTED, at(0), [large]) is None
    assert start.due([], [], WANTED, at(1), [large, small]) == DuePlan(room=large)
    assert start.due([], [plan(None, acts=True)], WANTED, at(3), [large, small]) is None
    assert start.due([], [plan(None)], WANTED, at(3), [large, small]) == DuePlan(room=small)
    assert start.due([], [], WANTED, at(600), [large, small]) is None
    assert start.due([], [], WANTED, at(601), [large, small]) == DuePlan(room=large)
    assert start.due([], [], WANTED, at(3600), []) == DuePlan()


def test_nothing_begins_that_nobody_has_configured() -> None:
    """Both are off; a pod that was not refused yet is not in need."""
    start, wanted = PlanStart(), dataclasses.replace(WANTED, make_room_after=0.0)
    off = PlanSettings()
    for seconds in (0, 10_000):
        assert start.due([refused("a")], [], off, at(seconds)) is None
        assert start.due([refused("a")], [], wanted, at(seconds)) is None
        assert start.due([pod("new", "u-new")], [], off, at(seconds)) is None
