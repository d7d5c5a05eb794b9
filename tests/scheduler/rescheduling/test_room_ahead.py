"""Room ahead is made on one node more, and never taken from one that is counted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from koordlet.scheduler.descheduling.landing import ghost
from koordlet.scheduler.disruption.headroom import Headroom
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import plan_check, room_ahead
from koordlet.scheduler.rescheduling.move_plan import PlanMove
from koordlet.scheduler.rescheduling.plan_check import PlanCheck
from koordlet.scheduler.rescheduling.room_plan import RoomPlan
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit.descheduling import NOW, node, pod

Body = dict[str, Any]
SIZE = {"cpu": 3000}


def scene(*bodies: Body, **headroom: int) -> LimitedDump:
    """A cluster in which so many nodes are to have room for pods of sizes c1, c2, c3 (CPUs)."""
    several = (Headroom({"cpu": int(name[1:]) * 1000}, n) for name, n in headroom.items())
    return LimitedDump(bodies, NOW, disruption=DisruptionSettings(headroom=tuple(several)))


def find(known: LimitedDump, size: dict[str, int]) -> RoomPlan | str:
    """The plan for a size; of none: that empties a node."""
    return room_ahead.find(known.state, known.limiter, plan_check.MOVER, None, size)


def count(known: LimitedDump, cpus: int) -> int:
    """The nodes with room."""
    return len(room_ahead.rows(known.state, {"cpu": cpus * 1000}))


def ways(plan: RoomPlan | str) -> list[tuple[str, str]]:
    """Origin and target of each move."""
    assert isinstance(plan, RoomPlan), plan
    return [(move.origin, move.target) for move in plan.moves]


def moved(known: LimitedDump, plan: RoomPlan) -> None:
    """All moves are made."""
    columns = known.state.columns
    for move in plan.moves:
        columns.remove(move.pod)
        columns.place(ghost(move.pod), columns.rows[move.target])


def test_a_node_has_room_where_the_scheduler_would_place_such_a_pod() -> None:
    """Not where it is cordoned, not ready, or has too little left."""
    known = scene(
        node("a", cpu="4"),
        node("b", cpu="4", unschedulable=True),
        node("c", cpu="4", ready=False),
        node("d", cpu="4"),
        pod("d0", "d", cpu="2"),
    )
    names = [known.state.node(row).name for row in room_ahead.rows(known.state, SIZE)]
    assert names == ["a"]


def test_room_is_made_on_one_node_more_and_not_where_it_takes_that_of_another() -> None:
    """Node a has room: what leaves b goes to c; where c has none, nothing is moved."""
    bodies = [node("a", cpu="4"), node("b", cpu="4"), pod("b0", "b", cpu="2")]
    known = scene(*bodies, node("c", cpu="4"), pod("c0", "c", cpu="2"))
    assert ways(find(known, SIZE)) in ([("b", "c")], [("c", "b")])
    answer = find(
        scene(*bodies, node("c", cpu="4"), pod("c0", "c", cpu="2500m"), pod("c1", "c", cpu="1")),
        SIZE,
    )
    assert isinstance(answer, str), answer


def test_a_node_that_is_emptied_leaves_the_room_that_is_wanted() -> None:
    """The pod of b would fit beside that of a, the one node with room for 4 CPUs."""
    bodies = [
        node("a", cpu="8"), pod("a0", "a", cpu="4"), node("b", cpu="2"), pod("b0", "b", cpu="1"),
    ]  # fmt: skip
    assert ways(find(scene(*bodies), {})) == [("b", "a")]
    assert isinstance(find(scene(*bodies, c4=1), {}), str)
    assert isinstance(find(scene(*bodies, c3=1), {}), RoomPlan)


def test_as_many_nodes_keep_their_room_as_are_wanted_and_no_more() -> None:
    """Both have room for 1 CPU: where one is to have it, the other takes the pod."""
    bodies = [node("a"), pod("a0", "a", cpu="1"), node("b"), pod("b0", "b", cpu="1")]
    assert ways(find(scene(*bodies, c1=1), {})) == [("a", "b")]
    assert isinstance(find(scene(*bodies, c1=2), {}), str)


def test_a_node_that_has_room_for_one_size_gets_it_for_a_larger_one() -> None:
    """What is kept there is part of the larger room."""
    bodies = [node("a", cpu="4"), *(pod(f"a{n}", "a", cpu="1") for n in range(2))]
    known = scene(*bodies, node("b", cpu="1"), c2=1)
    assert ways(find(known, SIZE)) == [("a", "b")]


def cluster(chance: random.Random) -> list[Body]:
    """Eight nodes with pods of several sizes."""
    bodies: list[Body] = []
    for name in "abcdefgh":
        bodies.append(node(name, cpu="4", pods=50))
        left = 4000
        while left > 800 and chance.random() < 0.8:
            cpu = min(left, chance.choice((500, 1000, 1500)))
            left -= cpu
            bodies.append(pod(f"{name}{left}", name, cpu=f"{cpu}m"))
    return bodies


@pytest.mark.parametrize("size", [SIZE, {}])
def test_a_plan_adds_one_node_and_leaves_no_entry_with_less_than_it_wants(
    size: dict[str, int],
) -> None:
    """The check agrees, and searching changes nothing."""
    made = 0
    for seed in range(40):
        chance = random.Random(seed)
        wanted = {1: chance.randint(1, 8), 2: chance.randint(1, 5)}
        known = scene(*cluster(chance), c1=wanted[1], c2=wanted[2])
        before = {cpus: count(known, cpus) for cpus in (1, 2, 3)}
        requested = known.state.columns.requested.copy()
        plan = find(known, size)
        assert (known.state.columns.requested == requested).all()
        if isinstance(plan, str):
            continue
        made += 1
        moves = [
            PlanMove(PodRef(m.pod.namespace, m.pod.name), m.origin, m.target) for m in plan.moves
        ]
        kept = room_ahead.kept(known.state, known.limiter.settings.headroom, size)
        check = PlanCheck(known.state, known.limiter, kept=kept)
        guest = room_ahead.sized(size) if size else None
        assert check.objection(guest, plan.node, moves) == ("", "")
        assert (known.state.columns.requested == requested).all()
        moved(known, plan)
        for cpus, nodes in wanted.items():
            assert count(known, cpus) >= min(nodes, before[cpus]), (seed, cpus)
        assert not size or count(known, 3) > before[3], seed
    assert made >= 10


def test_moves_that_would_take_room_ahead_fail_their_check() -> None:
    """As when the world has changed since they were found."""
    known = scene(node("a", cpu="4"), node("b", cpu="4"), pod("b0", "b", cpu="2"), c4=1)
    kept = room_ahead.kept(known.state, known.limiter.settings.headroom, {})
    moves = [PlanMove(PodRef("default", "b0"), "b", "a")]
    reason, why = PlanCheck(known.state, known.limiter, kept=kept).objection(None, "b", moves)
    assert (reason, why) == ("NoRoom", "node a does not take default/b0")
    assert PlanCheck(known.state, known.limiter).objection(None, "b", moves) == ("", "")
