"""Moves of somebody else are made only where every filter and every budget lets them."""

from __future__ import annotations

import pytest

from koordlet.scheduler.migration.job import PodRef
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
    found = check.objection(waiting(cpu="4"), change.get("node", "a"), several)
    assert found[0] == reason
    assert words in found[1]
    assert rooms(scene) == before
