"""Plans: the cheapest moves that make room, each with a place, and nothing worse at any prefix."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from koordlet.scheduler.descheduling import landing, traits
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.rescheduling.make_room import RoomPlanner
from koordlet.scheduler.rescheduling.room_plan import RoomPlan
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import gangs
from tests.kit.descheduling import NOW, node, pod
from tests.kit.room_scene import RATE, SHARED, Body, moves, rooms, waiting


def plan(*bodies: Body, **wanted: Any) -> RoomPlan | str:
    """The plan for a pod that waits; none of its own: that empties a node."""
    scene = LimitedDump(bodies, NOW)
    planner = RoomPlanner(scene.state, scene.limiter)
    if not wanted:
        return planner.empty_node()
    return planner.make_room(waiting(**wanted))


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
    answer = plan(*bodies, cpu="2500m")
    assert moves(answer) == [("b0", "b", "c")]
    assert isinstance(answer, RoomPlan)
    assert answer.node == "b"
    # 1, no priority, the only replica that is known of, 1.5 of 4 CPUs
    assert answer.cost == pytest.approx(1 + 1 / 2 + 0.375 - (1 / 2 - 1 / 6))


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
    answer = plan(*bodies, cpu="4")
    assert len({target for *_, target in moves(answer)}) == len(moves(answer))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": {"priority": 7}}, "on no node are there"),
        ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, "on no node are there"),
        ({"annotations": {"koordlet.io/movable": "false"}}, "on no node are there"),
        ({"annotations": {traits.IN_PROGRESS: ""}}, "on no node are there"),
        ({"owner": "DaemonSet/agent"}, "on no node are there"),
    ],
)
def test_who_may_not_move_is_not_planned_with(change: Body, words: str) -> None:
    """More important, with data, protected, moved alive, of the node itself; others may move."""
    rest = [node("a"), node("b", cpu="1500m"), pod("b0", "b", cpu="1")]
    assert moves(plan(*rest, node("c", cpu="1"), pod("a0", "a", cpu="1"), cpu="2"))
    answer = plan(*rest, node("c", cpu="1"), pod("a0", "a", cpu="1", **change), cpu="2")
    assert isinstance(answer, str)
    assert words in answer


def test_what_fits_already_and_what_nothing_helps_is_said() -> None:
    """A plan is no answer to either."""
    assert plan(node("a"), cpu="1") == "d/big fits on node a as it is"
    answer = plan(node("a"), nodeSelector={"disk": "ssd"}, cpu="1")
    assert isinstance(answer, str)
    assert answer.startswith("no move helps d/big: 0/1 nodes are available: 1 node(s) didn't match")


def test_the_node_that_is_cheapest_to_empty_is_emptied() -> None:
    """What belongs to it stays; a node whose pods have no place is none."""
    bodies = [
        *map(node, ("a", "b", "c")),
        *(pod(f"a{n}", "a", cpu="600m") for n in range(3)),
        pod("b0", "b", cpu="500m"),
        pod("agent", "b", owner="DaemonSet/agent"),
        *(pod(f"c{n}", "c", cpu="500m") for n in range(2)),
    ]
    answer = plan(*bodies)
    assert moves(answer) == [("b0", "b", "c")]
    # An empty node is no place for it: as many would have pods as before.
    answer = plan(node("a"), node("b"), pod("a0", "a", cpu="500m"))
    assert str(answer).endswith(
        "0 have a pod that may not be evicted now, 1 one without room elsewhere"
    )
    full = [node("a"), node("b"), pod("a0", "a", cpu="2"), pod("b0", "b", cpu="2")]
    assert plan(*full) == (
        "2 of 2 nodes whose pods may move were tried: 0 have a pod that may not be evicted now,"
        " 2 one without room elsewhere"
    )
    bare = pod("b0", "b", cpu="1")
    bare["metadata"] = {**bare["metadata"], "ownerReferences": []}
    assert "1 have a pod that may not be evicted now" in str(plan(node("a"), node("b"), bare))


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
    answer = RoomPlanner(scene.state, scene.limiter).make_room(big)
    assert rooms(scene) == before
    if isinstance(answer, str) or any(move.after for move in answer.moves):
        return
    columns = scene.state.columns
    held = []
    for move in answer.moves:
        assert move.origin == answer.node != move.target
        assert move.pod.priority <= big.priority
        row = columns.rows[move.target]
        held.append((columns.vectors(move.pod.pod_class)[0], row))
        columns.requested[: held[-1][0].size, row] += held[-1][0]
        assert (columns.requested <= columns.allocatable).all()  # room first, all still run
    for amounts, row in held:
        columns.requested[: amounts.size, row] -= amounts
    for move in answer.moves:
        columns.remove(move.pod)
    cycle = Cycle(columns, scene.state.profile("default-scheduler"))
    assert cycle.choose(big) == columns.rows[answer.node]
    assert np.count_nonzero(columns.requested < 0) == 0


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


def chain(b0: str, c0: str) -> list[Body]:
    """The pod of node a has no place, unless the small one of b goes to c."""
    return [
        node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="2"),
        pod("a0", "a", cpu="1500m", owner="ReplicaSet/a"),
        pod("b0", "b", cpu=b0, owner="ReplicaSet/b"),
        pod("c0", "c", cpu=c0, owner="DaemonSet/c"),
    ]  # fmt: skip


def test_a_pod_without_a_place_takes_that_of_another_which_has_one() -> None:
    """The small pod first; the room of the second is held after it."""
    answer = plan(*chain("600m", "1200m"), nodeSelector={"kubernetes.io/hostname": "a"}, cpu="2")
    assert moves(answer) == [("b0", "b", "c"), ("a0", "a", "b")]
    assert isinstance(answer, RoomPlan)
    assert [move.after for move in answer.moves] == [(), (0,)]
    # Nobody else has a place: there is no chain.
    answer = plan(*chain("600m", "1500m"), nodeSelector={"kubernetes.io/hostname": "a"}, cpu="2")
    assert isinstance(answer, str)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"priority": 7}},
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"annotations": {"koordlet.io/movable": "false"}},
        {"owner": "DaemonSet/agent"},
    ],
)
def test_who_may_not_move_gives_nobody_his_place(change: Body) -> None:
    """A chain asks of each what a plan asks."""
    bodies = chain("600m", "1200m")
    bodies[4] = pod("b0", "b", cpu="600m", **change)
    answer = plan(*bodies, nodeSelector={"kubernetes.io/hostname": "a"}, cpu="2")
    assert isinstance(answer, str)


def crowded(chance: random.Random) -> list[Body]:
    """Nodes of which most are nearly full, workloads of one or two pods, one budget for some."""
    names = [f"n{place}" for place in range(5)]
    bodies = [node(name, cpu="4", pods=100) for name in names]
    place = 0
    for name in names:
        left = 4000 - chance.choice((0, 500, 1000, 1500))
        while left >= 500:
            size = min(left, chance.choice((500, 1000, 1500, 2000, 2500)))
            app = f"w{chance.randint(0, 9)}"
            labels = {"app": app, "tier": chance.choice("xy")}
            bodies.append(pod(f"p{place}", name, cpu=f"{size}m", owner=f"ReplicaSet/{app}",
                              labels=labels))  # fmt: skip
            left, place = left - size, place + 1
    limits = [{"count": chance.choice((0, 1, 2)), "window": "1h"}]
    spec = {"selector": {"matchLabels": {"tier": "x"}}, "limits": limits}
    return [*bodies, {**RATE, "spec": spec}]


def test_no_step_of_any_plan_overcommits_a_node_or_breaks_a_budget() -> None:
    """Rooms are held beside all that runs, those of a chain once it has come so far."""
    chained = 0
    for seed in range(80):
        bodies = crowded(random.Random(seed))
        scene = LimitedDump(bodies, NOW)
        before = rooms(scene)
        big = waiting(cpu=f"{random.Random(seed).choice((2000, 2500, 3000, 3500))}m")
        answer = RoomPlanner(scene.state, scene.limiter).make_room(big)
        assert rooms(scene) == before
        if isinstance(answer, str):
            continue
        columns = scene.state.columns
        guarded = [m for m in answer.moves if m.pod.pod_class.labels["tier"] == "x"]
        assert len(guarded) <= bodies[-1]["spec"]["limits"][0]["count"]
        chained += any(move.after for move in answer.moves)
        held: dict[str, tuple[Any, int]] = {}

        def hold(move: Any, columns: Any = columns, held: Any = held) -> None:
            row, amounts = columns.rows[move.target], columns.vectors(move.pod.pod_class)[0]
            held[move.pod.uid] = amounts, row
            columns.requested[: amounts.size, row] += amounts
            assert (columns.requested <= columns.allocatable).all()

        for move in answer.moves:
            if not move.after:
                hold(move)
        for move in answer.moves:
            if move.after:
                hold(move)
            columns.remove(move.pod)
        for move in answer.moves:
            amounts, row = held[move.pod.uid]
            columns.requested[: amounts.size, row] -= amounts
            columns.place(landing.ghost(move.pod), row)
        cycle = Cycle(columns, scene.state.profile("default-scheduler"))
        assert cycle.choose(big) == columns.rows[answer.node]
    assert chained >= 5


class CountedPlanner(RoomPlanner):
    """Counts the sets of pods that it tries."""

    tried = 0

    def _moves(self, *args: Any) -> Any:
        self.tried += 1
        return super()._moves(*args)


def test_a_search_in_a_full_cluster_tries_so_many_sets_of_each_node() -> None:
    """Of twelve pods there are 792 sets of five; none of them has a place elsewhere."""
    bodies = [node(name, cpu="12", pods=20) for name in "abc"]
    bodies += [pod(f"{name}{place}", name, cpu="1") for name in "abc" for place in range(12)]
    scene = LimitedDump(bodies, NOW)
    planner = CountedPlanner(scene.state, scene.limiter)
    assert isinstance(planner.make_room(waiting(cpu="5")), str)
    # Without chains, and with them.
    assert planner.tried == 2 * 3 * 16


def ganged(*targets: str, count: int = 3) -> list[Body]:
    """A gang of which two are on node a, and nodes of one CPU that have room, in two racks."""
    group = gangs.own_group("g", count, schedulingConstraints={"topology": [{"key": "rack"}]})
    bodies = [node("xa", cpu="2", labels={"rack": "x"}), {**group, "metadata": {
        **group["metadata"], "namespace": "default"}}]  # fmt: skip
    names = ["xa", "xa", *(f"xb{place}" for place in range(count - 2))]
    several = dict.fromkeys((*names[2:], *targets))
    bodies += [node(name, cpu="1", labels={"rack": name[0]}) for name in several]
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    return [*bodies, *(pod(f"g{n}", on, cpu="1", spec=spec) for n, on in enumerate(names))]


def test_a_gang_moves_whole_within_its_domain_where_a_plan_takes_one_of_it() -> None:
    """Each member counts as a move, and none takes the room of another; the leader is the first."""
    answer = plan(*ganged("xc", "xd", "xe"), cpu="2")
    assert moves(answer) == [("g0", "xa", "xc"), ("g1", "xa", "xd"), ("g2", "xb0", "xe")]
    assert isinstance(answer, RoomPlan)
    assert {(move.gang, move.after) for move in answer.moves} == {("default/g", ())}
    # One place too few in the domain, whatever there is elsewhere.
    assert isinstance(plan(*ganged("xc", "xd", "ye"), cpu="2"), str)
    # Six members are more than five moves.
    places = [f"x{letter}" for letter in "cdefgh"]
    assert isinstance(plan(*ganged(*places[:5], count=5), cpu="2"), RoomPlan)
    assert isinstance(plan(*ganged(*places, count=6), cpu="2"), str)


def test_a_gang_on_a_node_to_be_emptied_takes_its_other_members_along() -> None:
    """None of them goes to the node, which has room as soon as the others have left."""
    bodies = ganged("xc", "xd", "xe")
    bodies[0] = node("xa", cpu="30", labels={"rack": "x"})
    # Others are there that stay, so that something is gained.
    bodies += [pod(f"{name}-0", name, cpu="0", owner="") for name in ("xc", "xd", "xe")]
    answer = plan(*bodies)
    assert isinstance(answer, RoomPlan)
    assert answer.node == "xa"
    assert sorted(moves(answer)) == [("g0", "xa", "xc"), ("g1", "xa", "xd"), ("g2", "xb0", "xe")]
