"""Moves of somebody else are made only where every filter and every budget lets them."""

from __future__ import annotations

import pytest

from koordlet.scheduler.disruption.answers import Clock, Deny, Mover
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import plan_check
from koordlet.scheduler.rescheduling.move_plan import PlanMove
from koordlet.scheduler.rescheduling.plan_check import PlanCheck
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit.descheduling import NOW
from tests.scheduler.rescheduling.test_make_room import RATE, SHARED, Body, rooms, waiting


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ({}, "", ""),
        ({"target": "b"}, "NoRoom", "node b does not take default/a1"),
        ({"target": "z"}, "WorldChanged", "node z is not there"),
        ({"origin": "b"}, "WorldChanged", "pod default/a1 is not there"),
        ({"node": "b"}, "NoRoom", "d/big would not fit on node b without them"),
        ({"rate": True}, "RateSpent", "DisruptionRate default/all allows 1 in 1h"),
    ],
)
def test_moves_of_somebody_else_are_checked(change: Body, reason: str, words: str) -> None:
    """In their order, with all filters, by every budget; the state is as before."""
    scene = LimitedDump((*SHARED, *([RATE] if change.get("rate") else [])), NOW)
    before = rooms(scene)
    several = [
        PlanMove(PodRef("default", "a0"), "a", "c"),
        PlanMove(PodRef("default", "a1"), change.get("origin", "a"), change.get("target", "c")),
    ]
    check = PlanCheck(scene.state, scene.limiter)
    objection = check.objection(waiting(cpu="4"), change.get("node", "a"), several)
    assert objection[0] == reason
    assert words in objection[1]
    assert rooms(scene) == before


def test_a_rehearsal_leaves_no_trace_and_a_plan_is_bound_by_budgets_alone() -> None:
    """A workload that was moved a while ago still rests, for everybody but a person's plan."""
    scene = LimitedDump(SHARED, NOW)
    limiter, now = scene.limiter, scene.state.now
    pods = [each.pod for each in scene.state.residents(scene.state.columns.rows["a"])]
    earlier = Clock(wall=now.wall - 1200, steady=now.steady - 1200)
    background = Mover(name="descheduler", acts=True)
    limiter.begin(pods[0], "Descheduled", background, earlier)
    limiter.accepted(pods[0], earlier)
    limiter.pace.gone(pods[0].uid, earlier.steady)
    for _ in range(2):
        answer = limiter.may_evict(pods[1], "Descheduled", background, now)
        assert isinstance(answer, Deny)
        assert answer.reason == "CoolDown"
        assert plan_check.rehearse(limiter, pods[1:], now) == ("", "")
