"""Moves of somebody else are made only where every filter and every budget lets them."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.disruption.answers import Clock, Deny, Mover
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects import eviction_marks
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.rescheduling import plan_check
from koordlet.scheduler.rescheduling.make_room import RoomPlanner
from koordlet.scheduler.rescheduling.move_plan import PlanMove
from koordlet.scheduler.rescheduling.plan_check import PlanCheck
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import gangs
from tests.kit.descheduling import NOW, node, pod
from tests.kit.room_scene import RATE, SHARED, Body, rooms, waiting


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
        assert plan_check.rehearse(limiter, [[pod] for pod in pods[1:]], now) == ("", "")


def test_a_plan_that_begins_by_itself_is_rehearsed_to_the_refusal_that_lasts() -> None:
    """The second pod of a workload waits minutes by one check, half an hour by another."""
    scene = LimitedDump(SHARED, NOW)
    pods = [[each.pod] for each in scene.state.residents(scene.state.columns.rows["a"])]
    limiter, now = scene.limiter, scene.state.now
    assert plan_check.rehearse(limiter, pods[:1], now, plan_check.STARTED) == ("", "")
    assert plan_check.rehearse(limiter, pods[:2], now, plan_check.STARTED)[0] == "CoolDown"
    assert plan_check.rehearse(limiter, pods[:2], now) == ("", "")
    by_hand = RoomPlanner(scene.state, limiter).make_room(waiting(cpu="4"))
    by_itself = RoomPlanner(scene.state, limiter, plan_check.STARTED).make_room(waiting(cpu="4"))
    assert not isinstance(by_hand, str)
    assert [move.pod.pod_class.owner for move in by_hand.moves] == [("ReplicaSet", "rs")] * 2
    assert isinstance(by_itself, str)


def test_two_pods_that_neither_fit_beside_each_other_do_not_change_places() -> None:
    """By whatever order: once one has left, its replacement would wait for the other's room."""
    bodies = [node("a", cpu="2"), node("b", cpu="2"), pod("a0", "a", cpu="2")]
    scene = LimitedDump((*bodies, pod("b0", "b", cpu="1500m")), NOW)
    swap = [
        PlanMove(PodRef("default", "a0"), "a", "b"),
        PlanMove(PodRef("default", "b0"), "b", "a", after=(0,)),
    ]
    reason, message = PlanCheck(scene.state, scene.limiter).objection(None, "a", swap)
    assert reason == "SwapNeedsRoom"
    assert message.startswith("default/a0 and default/b0 would change places, and neither fits")


def test_the_worth_of_moves_is_what_their_node_gets_and_what_leaves() -> None:
    """Moves from other nodes cost, and free nothing there."""
    bodies = [node("a", cpu="4"), node("b", cpu="4"), node("c", cpu="4")]
    pods = [pod("a0", "a", cpu="1"), pod("a1", "a", cpu="2"), pod("b0", "b", cpu="1")]
    scene = LimitedDump((*bodies, *pods), NOW)
    moves = [PlanMove(PodRef("default", name), name[0], "c") for name in ("a0", "a1", "b0", "gone")]
    worth = PlanCheck(scene.state, scene.limiter).worth("a", moves[:3])
    assert (worth.improvement, worth.pods, worth.cpu) == ("0.75", 3, "4")
    # Each 1, a third of its workload's replicas, and its share of four CPUs.
    assert float(worth.disruption) == pytest.approx(3 * (1 + 1 / 3) + 1, abs=1e-3)


def ganged(minimum: int, *more: Body) -> LimitedDump:
    """Gang ``g``: two members on node a, one on node b; room for them on c and d, beside others."""
    group = gangs.pod_group("g", minimum, namespace="default")
    bodies = [node("a", cpu="2"), *(node(name, cpu="2") for name in ("b", "c", "d")), group]
    labels = {pod_groups.POD_GROUP: "g"}
    bodies += [pod(f"g{n}", "aab"[n], cpu="1", labels=labels) for n in range(3)]
    stays = {eviction_marks.MOVABLE: "false"}
    bodies += [pod(f"{name}0", name, cpu="0", annotations=stays) for name in "cd"]
    return LimitedDump((*bodies, *more), NOW)


def together(*targets: str, gang: str = "default/g") -> list[PlanMove]:
    """Moves of the members of gang ``g``."""
    return [
        PlanMove(PodRef("default", f"g{n}"), "aab"[n], target, gang=gang)
        for n, target in enumerate(targets)
    ]


NOBODY = (
    "d/k0 is not evicted: nobody would create it again; if that is no loss, annotate it with"
    ' koordlet.io/movable: "true"'
)
WHOLE = "gang default/g moves whole: moves with gang default/g are needed for all its members on"


@pytest.mark.parametrize(
    ("moves", "reason", "words"),
    [
        (together("c", "c", "d"), "", ""),
        (together("c", "c"), "GangStays", f"pod default/g0: {WHOLE} nodes, default/g0, default/g1"),
        (together("c", "c", "d", gang=""), "GangStays", f"pod default/g0: {WHOLE}"),
        (together("c", "c", "d", gang="x/y"), "GangStays", f"pod default/g0: {WHOLE}"),
        # Nobody waits for the room of another member.
        (together("c", "c", "a"), "NoRoom", "node a does not take default/g2"),
        (together("c", "c", "c"), "NoRoom", "node c does not take default/g2"),
    ],
)
def test_a_gang_that_needs_a_pod_moves_whole_with_room_for_all(
    moves: list[PlanMove], reason: str, words: str
) -> None:
    """What is missing is named; the state is as before."""
    scene = ganged(3)
    before = rooms(scene)
    objection = PlanCheck(scene.state, scene.limiter).objection(None, "a", moves)
    assert objection[0] == reason
    assert words in objection[1]
    assert rooms(scene) == before


def test_a_gang_that_can_do_without_a_pod_lets_it_go_alone() -> None:
    """The gang is not named then, as the others stay."""
    scene = ganged(2)
    check = PlanCheck(scene.state, scene.limiter)
    assert check.objection(None, "a", together("c", gang="")) == ("", "")
    reason, why = check.objection(None, "a", together("c"))
    alone = "pod default/g0: it moves alone, and not with gang default/g"
    assert (reason, why) == ("GangStays", alone)


def budget(allowed: int) -> Body:
    """A PodDisruptionBudget of all pods."""
    meta = {"name": "all", "namespace": "default", "generation": 1}
    selector = {"matchExpressions": [{"key": pod_groups.POD_GROUP, "operator": "Exists"}]}
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1}
    return {"kind": "PodDisruptionBudget", "metadata": meta, "spec": {"selector": selector},
            "status": status}  # fmt: skip


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        (budget(3), ""),
        (budget(2), "PDB"),
        ({**RATE, "spec": {**RATE["spec"], "limits": [{"count": 3, "window": "1h"}]}}, ""),
        ({**RATE, "spec": {**RATE["spec"], "limits": [{"count": 2, "window": "1h"}]}}, "RateSpent"),
        # The first may wait for a while, the others may not wait for the first.
        ({**RATE, "spec": {**RATE["spec"], "limits": [{"count": 2, "window": "1m"}]}}, "RateSpent"),
    ],
)
def test_budgets_must_let_the_whole_gang_go_at_once(bound: Body, reason: str) -> None:
    """One too few, and half of the gang would wait for the other half's budget."""
    scene = ganged(3, bound)
    check = PlanCheck(scene.state, scene.limiter)
    for _ in range(2):  # a rehearsal leaves no trace
        assert check.objection(None, "a", together("c", "c", "d"))[0] == reason
    made = RoomPlanner(scene.state, scene.limiter).empty_node()
    assert isinstance(made, str) is bool(reason)


def test_room_for_a_pod_of_a_gang_is_made_in_the_domain_where_its_members_are() -> None:
    """One move would do in the other rack, where the pod may not go."""
    scene = LimitedDump(racks(1), NOW)
    member = Decoder({}).decode(gangs.own("k0", "k", cpu="3"), 0)
    made = RoomPlanner(scene.state, scene.limiter).make_room(member)
    assert not isinstance(made, str)
    assert (made.node, len(made.moves)) == ("x1", 3)
    wrong = [PlanMove(PodRef("default", "y0-0"), "y0", "y1")]
    check = PlanCheck(scene.state, scene.limiter)
    assert check.objection(waiting(cpu="3"), "y0", wrong) == ("", "")
    reason, why = check.objection(member, "y0", wrong)
    assert reason == "GangStays"
    assert why == "no move helps d/k0: node y0 is outside of the topology domain of its gang"


def racks(*minimum: int) -> list[Body]:
    """Two racks of two nodes; a member of gang ``k`` is in the first, which has the fuller one."""
    bodies = [
        node(name, cpu="4", labels={"rack": name[0]}, pods=100) for name in ("x0", "x1", "y0", "y1")
    ]
    bodies += [pod(f"x1-{n}", "x1", cpu="1") for n in range(4)]
    topology = {"topology": [{"key": "rack"}]}
    group = gangs.own_group("k", 1 + sum(minimum), schedulingConstraints=topology)
    there = gangs.own("k9", "k", on="x0", cpu="3")
    return [*bodies, pod("y0-0", "y0", cpu="1500m"), group, there]


def test_a_gang_stays_in_its_domain_and_one_that_is_gathered_where_it_is() -> None:
    """A replacement could go nowhere else while one of the others is there."""
    topology = {"topology": [{"key": "rack"}]}
    group = gangs.own_group("k", 2, schedulingConstraints=topology)
    bodies = [node(name, cpu="2", labels={"rack": name[0]}) for name in ("x0", "x1", "y0")]
    bodies += [gangs.own(f"k{n}", "k", on="x0", cpu="1") for n in range(2)]
    scene = LimitedDump((*bodies, group), NOW)
    check = PlanCheck(scene.state, scene.limiter)

    def objection(target: str) -> tuple[str, str]:
        gang = "d/k"
        several = [PlanMove(PodRef("d", f"k{n}"), "x0", target, gang=gang) for n in range(2)]
        return check.objection(None, "x0", several)

    away = "pod d/k0: node y0 is outside of the topology domain of its gang"
    assert objection("y0") == ("GangStays", away)
    assert objection("x1") == ("Protected", NOBODY)
    layers = [{"layer": "rack", "strategy": "MustGather"}]
    group = gangs.pod_group("g", 1, gather={"gatherStrategy": layers}, namespace="default")
    labels = {pod_groups.POD_GROUP: "g"}
    bodies = [node("a"), node("b"), group]
    scene = LimitedDump((*bodies, pod("g0", "a", cpu="1", labels=labels)), NOW)
    several = [PlanMove(PodRef("default", "g0"), "a", "b", gang="default/g")]
    reason, why = PlanCheck(scene.state, scene.limiter).objection(None, "a", several)
    gathered = "gang default/g is gathered in the network, where its members are"
    assert (reason, why) == ("GangStays", f"pod default/g0: {gathered}")


def test_no_room_is_made_for_a_gang_that_lacks_several_or_is_gathered() -> None:
    """A place for one would be of no use, or where its members are not."""
    lacks = LimitedDump(racks(2), NOW)
    member = Decoder({}).decode(gangs.own("k0", "k", cpu="3"), 0)
    made = RoomPlanner(lacks.state, lacks.limiter).make_room(member)
    assert made == "no move helps d/k0: its gang d/k lacks 2 members"
    layers = [{"layer": "rack", "strategy": "MustGather"}]
    group = gangs.pod_group("g", 1, gather={"gatherStrategy": layers})
    scene = LimitedDump([node("a"), pod("a0", "a", cpu="2"), group], NOW)
    member = Decoder({}).decode(gangs.labelled("g0", "g", cpu="1"), 0)
    made = RoomPlanner(scene.state, scene.limiter).make_room(member)
    assert made == (
        "no move helps d/g0: its gang d/g is gathered in the network, where its members are"
    )
