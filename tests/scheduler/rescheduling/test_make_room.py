"""Plans: the cheapest moves that make room, each with a place, and nothing worse at any prefix."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.rescheduling.make_room import RoomPlan, RoomPlanner
from koordlet.scheduler.rescheduling.move_plan import PlanMove
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import clusters
from tests.kit.descheduling import NOW, node, pod

Body = dict[str, Any]


def plan(*bodies: Body, **wanted: Any) -> RoomPlan | str:
    """The plan for a pod that waits; none of its own: that empties a node."""
    scene = LimitedDump(bodies, NOW)
    planner = RoomPlanner(scene.state, scene.limiter)
    if not wanted:
        return planner.empty_node()
    return planner.make_room(waiting(**wanted))


def waiting(**wanted: Any) -> Any:
    """A pod without a node."""
    return Decoder({}).decode(clusters.pod("big", **wanted), 0)


def moves(found: RoomPlan | str) -> list[tuple[str, str, str]]:
    """Pod, origin and target of each move."""
    assert isinstance(found, RoomPlan), found
    return [(each.pod.name, each.origin, each.target) for each in found.moves]


def test_the_fewest_pods_move_and_the_cheapest_of_them() -> None:
    """One large pod of node b is cheaper than two small ones of node a."""
    bodies = [
        node("a", cpu="4"),
        node("b", cpu="4"),
        node("c", cpu="4"),
        *(pod(f"a{n}", "a", cpu="1") for n in range(3)),
        *(pod(f"b{n}", "b", cpu="1500m") for n in range(2)),
        pod("c0", "c", cpu="2"),
    ]
    found = plan(*bodies, cpu="2500m")
    assert moves(found) == [("b0", "b", "c")]
    assert isinstance(found, RoomPlan)
    assert found.node == "b"
    # 1, no priority, the only replica that is known of, 1.5 of 4 CPUs
    assert found.cost == pytest.approx(1 + 1 / 2 + 0.375 - (1 / 2 - 1 / 6))


def test_each_mover_has_its_own_place() -> None:
    """Two that must leave do not fit on one node together."""
    bodies = [
        node("a", cpu="4"),
        node("b", cpu="4"),
        node("c", cpu="4"),
        *(pod(f"a{n}", "a", cpu="2") for n in range(2)),
        pod("b0", "b", cpu="2"),
        pod("c0", "c", cpu="2"),
    ]
    found = plan(*bodies, cpu="4")
    assert len({target for *_, target in moves(found)}) == len(moves(found))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": {"priority": 7}}, "on no node are there"),
        ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, "on no node are there"),
        ({"annotations": {"koordlet.io/movable": "false"}}, "on no node are there"),
        ({"owner": "DaemonSet/agent"}, "on no node are there"),
    ],
)
def test_who_may_not_move_is_not_planned_with(change: Body, words: str) -> None:
    """More important, with data, protected, of the node itself; without that there is a plan."""
    rest = [node("a"), node("b", cpu="1500m"), pod("b0", "b", cpu="1")]
    assert moves(plan(*rest, node("c", cpu="1"), pod("a0", "a", cpu="1"), cpu="2"))
    found = plan(*rest, node("c", cpu="1"), pod("a0", "a", cpu="1", **change), cpu="2")
    assert isinstance(found, str)
    assert words in found


def test_what_fits_already_and_what_nothing_helps_is_said() -> None:
    """A plan is no answer to either."""
    assert plan(node("a"), cpu="1") == "d/big fits on node a as it is"
    found = plan(node("a"), nodeSelector={"disk": "ssd"}, cpu="1")
    assert isinstance(found, str)
    assert found.startswith("no move helps d/big: 0/1 nodes are available: 1 node(s) didn't match")


def test_the_node_that_is_cheapest_to_empty_is_emptied() -> None:
    """What belongs to it stays; a node whose pods have no place is none."""
    bodies = [
        *map(node, ("a", "b", "c")),
        *(pod(f"a{n}", "a", cpu="600m") for n in range(3)),
        pod("b0", "b", cpu="500m"),
        pod("agent", "b", owner="DaemonSet/agent"),
        *(pod(f"c{n}", "c", cpu="500m") for n in range(2)),
    ]
    found = plan(*bodies)
    assert moves(found) == [("b0", "b", "c")]
    full = [node("a"), node("b"), pod("a0", "a", cpu="2"), pod("b0", "b", cpu="2")]
    assert plan(*full) == (
        "of 2 nodes whose pods may move, none has room for all of them elsewhere"
    )


def rooms(scene: LimitedDump) -> list[list[int]]:
    """What is requested of each node."""
    requested: list[list[int]] = scene.state.columns.requested.tolist()
    return requested


@pytest.mark.parametrize("seed", range(40))
def test_no_prefix_of_a_plan_exceeds_a_node_and_the_pod_fits_in_the_end(seed: int) -> None:
    """Each replacement is held beside all that runs; planning itself changes nothing."""
    chance = random.Random(seed)
    names = [f"n{place}" for place in range(6)]
    bodies = [node(name, cpu=str(chance.randint(2, 8)), pods=100) for name in names]
    left = {
        body["metadata"]["name"]: 1000 * int(body["status"]["allocatable"]["cpu"])
        for body in bodies
    }
    for place in range(60):
        name, size = chance.choice(names), chance.choice((250, 500, 1000, 1500))
        if size <= left[name]:
            left[name] -= size
            priority = chance.choice((0, 0, 5))
            bodies.append(pod(f"p{place}", name, cpu=f"{size}m", spec={"priority": priority}))
    scene = LimitedDump(bodies, NOW)
    before = rooms(scene)
    big = waiting(cpu=f"{max(left.values()) + chance.choice((250, 500, 1000))}m")
    found = RoomPlanner(scene.state, scene.limiter).make_room(big)
    assert rooms(scene) == before
    if isinstance(found, str):
        return
    columns = scene.state.columns
    held = []
    for move in found.moves:
        assert move.origin == found.node != move.target
        assert move.pod.priority <= big.priority
        row = columns.rows[move.target]
        held.append((columns.vectors(move.pod.pod_class)[0], row))
        columns.requested[: held[-1][0].size, row] += held[-1][0]
        assert (columns.requested <= columns.allocatable).all()  # room first, all still run
    for amounts, row in held:
        columns.requested[: amounts.size, row] -= amounts
    for move in found.moves:
        columns.remove(move.pod)
    cycle = Cycle(columns, scene.state.profile("default-scheduler"))
    assert cycle.choose(big) == columns.rows[found.node]
    assert np.count_nonzero(columns.requested < 0) == 0


RATE: Body = {
    "kind": "DisruptionRate",
    "metadata": {"name": "all", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {}}, "limits": [{"count": 1, "window": "1h"}]},
}
SHARED = (
    *(node(name, cpu="4") for name in "ab"),
    *(pod(f"a{n}", "a", cpu="1") for n in range(2)),
    pod("b0", "b", cpu="3500m"),
    node("c", cpu="2"),
)


def test_a_budget_that_lets_one_go_makes_no_plan_of_two_and_is_as_before() -> None:
    """One would go, and the second an hour later: nobody begins what does not end."""
    assert len(moves(plan(*SHARED, cpu="4"))) == 2
    scene = LimitedDump((*SHARED, RATE), NOW)
    planner = RoomPlanner(scene.state, scene.limiter)
    reason = planner.make_room(waiting(cpu="4"))
    assert isinstance(reason, str)
    assert "on no node are there at most" in reason
    (held,) = scene.limiter.rates
    assert [len(ledger) for ledger in held.ledgers.values()] == [0]
    assert not scene.limiter.pace.waits
    # One alone may go.
    assert len(moves(planner.make_room(waiting(cpu="3")))) == 1


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
    planner = RoomPlanner(scene.state, scene.limiter)
    found = planner.objection(waiting(cpu="4"), change.get("node", "a"), several)
    assert found[0] == reason
    assert words in found[1]
    assert rooms(scene) == before
