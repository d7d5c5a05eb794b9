"""A MovePlan as an object: what is read is what was written, and bad ones name the field."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import kinds
from koordlet.report.crds import move_plan as schema
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.rescheduling import move_plan
from koordlet.scheduler.rescheduling.move_plan import PlanMove
from koordlet.scheduler.rescheduling.plan_status import (
    MovePhase,
    MoveState,
    PlanPhase,
    PlanStatus,
    PlanWorth,
)

BIG = PodRef("d", "big", "u")
MOVES = (
    PlanMove(PodRef("d", "a", "u-a"), "n1", "n2"),
    PlanMove(PodRef("d", "b", "u-b"), "n3", "n1", after=(0,)),
)


def test_what_is_written_is_what_is_read_and_what_the_definition_takes() -> None:
    """Request, the moves that are found, the status."""
    body = move_plan.request("p", pod=PodRef("d", "big"), reason="train", ttl_seconds=60)
    spec = {**body["spec"], **move_plan.moves_patch("n1", MOVES, BIG)["spec"]}
    states = (
        MoveState(phase=MovePhase.DONE, job="p-0", node="n2", replacement="d/a-2"),
        MoveState(),
    )
    worth = PlanWorth(improvement="0.50", pods=2, cpu="3", memory="4Gi", disruption="2.500")
    status = PlanStatus(
        phase=PlanPhase.MOVING,
        message="move 2 of 2",
        began=1_800_000_000.0,
        moves=states,
        worth=worth,
    )
    whole = {**body, "spec": spec, "status": status.body()}
    plan = move_plan.decode(whole)
    assert (plan.moves, plan.pod, plan.node, plan.status) == (MOVES, BIG, "n1", status)
    assert (plan.acts, plan.reason, plan.ttl, plan.aborts) == (True, "train", 60.0, False)
    written = {key: value for key, value in whole["status"].items() if value is not None}
    schema.MovePlanSchema.model_validate({"spec": spec, "status": written})


def test_a_plan_for_room_ahead_has_the_size_that_is_wanted() -> None:
    """The moves that are found leave it as it is."""
    room = {"cpu": 8000, "memory": 32 << 30}
    spec = move_plan.request("p", room=room)["spec"]
    assert spec["for"] == {"room": {"cpu": "8", "memory": "32Gi"}}
    spec |= move_plan.moves_patch("n1", MOVES, None)["spec"]
    plan = move_plan.decode({"metadata": {"name": "p"}, "spec": spec})
    assert (plan.room, plan.pod, plan.node) == (room, None, "n1")
    assert plan.goal == "make room for cpu=8,memory=32Gi"
    schema.MovePlanSchema.model_validate({"spec": spec})


def test_a_plan_for_a_gang_has_a_place_for_each_member() -> None:
    """The pod that is asked for is the first; who leaves a node leaves it to the first place."""
    others = [move_plan.PlanPlace(PodRef("d", f"k{n}", f"u{n}"), f"n{n}") for n in (1, 3)]
    spec = move_plan.moves_patch("n1", MOVES, BIG, others)["spec"]
    plan = move_plan.decode({"metadata": {"name": "p"}, "spec": spec})
    assert plan.places == (move_plan.PlanPlace(BIG, "n1"), *others)
    assert plan.wanted == "d/big and 2 more of its gang"
    assert [plan.leaving(number) for number in range(3)] == [[MOVES[0]], [], [MOVES[1]]]
    schema.MovePlanSchema.model_validate({"spec": spec})


def test_a_plan_only_shows_unless_it_says_that_it_acts() -> None:
    """The object's default; and a time of its own."""
    plan = move_plan.decode({"metadata": {"name": "p"}, "spec": {}})
    assert (plan.acts, plan.ttl, plan.pod, plan.status.phase) == (False, 900.0, None, "Pending")


MOVE: dict[str, Any] = {"pod": {"namespace": "d", "name": "a"}, "from": "n1", "to": "n2"}
MEMBER = {"namespace": "d", "name": "k", "node": "n1"}


def ganged(*members: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A specification for a pod and others of its gang."""
    pod = {"namespace": "d", "name": "big"}
    usual = {"node": "n1", "moves": [MOVE], "for": {"pod": pod, "members": list(members)}}
    return {**usual, **spec}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"mode": "act"}, "spec.mode 'act' is none of Act, Shadow"),
        ({"for": {}}, "spec.for.pod needs a namespace and a name"),
        ({"for": {"pod": {"name": "a"}}}, "spec.for.pod needs a namespace and a name"),
        ({"for": {"pod": MOVE["pod"], "room": {"cpu": 1}}}, "spec.for has a pod and room; one of"),
        ({"for": {"room": {"cpu": "much"}}}, "spec.for.room: size.cpu: "),
        ({"for": {"room": {}}}, "spec.for.room: a size needs an amount above 0"),
        ({"for": {"room": {"cpu": 1}}, "moves": [MOVE]}, "needs spec.node, where it is to fit"),
        ({"node": "n1"}, "spec.node needs spec.moves"),
        ({"for": {"pod": MOVE["pod"]}, "moves": [MOVE]}, "needs spec.node, where it is to fit"),
        ({"moves": [{**MOVE, "to": "n1"}]}, "spec.moves[0] needs from and to, which are two nodes"),
        ({"moves": [{**MOVE, "after": [0]}]}, "spec.moves[0].after names places of moves before"),
        ({"moves": [MOVE, MOVE]}, "spec.moves[1]: pod d/a is moved by another move"),
        ({"moves": [{**MOVE, "pod": {}}]}, "spec.moves[0].pod needs a namespace and a name"),
        ({"for": {"room": {"cpu": 1}, "members": []}}, "spec.for has members and room; one of"),
        (ganged(MEMBER, node="", moves=[]), "spec.for.members needs spec.moves; without moves"),
        (ganged({"name": "k", "node": "n"}), "spec.for.members[0] needs a namespace and a name"),
        (ganged({**MEMBER, "node": ""}), "spec.for.members[0] needs a node, where it is to fit"),
        (ganged(MEMBER, MEMBER), "spec.for.members[1]: pod d/k is there twice"),
        (ganged({**MEMBER, "name": "big"}), "spec.for.members[0]: pod d/big is there twice"),
        ({"ttl": "0s"}, "spec.ttl: a time above 0 is needed"),
        ({"ttl": "soon"}, "spec.ttl: "),
        ({"moves": "all"}, "moves is not a list"),
    ],
)
def test_what_cannot_be_carried_out_names_the_field(spec: dict[str, Any], words: str) -> None:
    """It is read all the same, with its fault, so that its status can say so."""
    body = {"metadata": {"name": "p", "uid": "u"}, "spec": spec}
    with pytest.raises(BadObjectError) as raised:
        move_plan.decode(body)
    assert words in str(raised.value)
    plan = move_plan.read(body)
    assert (plan.name, plan.uid, words in plan.fault) == ("p", "u", True)


def test_more_moves_than_one_plan_may_have_are_refused() -> None:
    """As the definition has it."""
    several = [
        {**MOVE, "pod": {"namespace": "d", "name": f"a{n}"}} for n in range(kinds.MOST_MOVES + 1)
    ]
    plan = move_plan.read({"metadata": {"name": "p"}, "spec": {"moves": several}})
    assert plan.fault == "spec.moves has more than 32 moves"


def test_more_members_than_one_plan_may_have_are_refused() -> None:
    """The pod is one of them."""
    several = [{**MEMBER, "name": f"k{n}"} for n in range(kinds.MOST_MOVES)]
    plan = move_plan.read({"metadata": {"name": "p"}, "spec": ganged(*several)})
    assert plan.fault == "spec.for is for more than 32 pods"


def test_its_jobs_have_names_of_their_own_for_each_plan_that_ever_had_the_name() -> None:
    """A plan that is made again takes up no job of the one before it."""
    first, second = (move_plan.MovePlan(name="p" * 253, uid=f"{n}2345678-x") for n in range(2))
    assert first.job(0) != second.job(0) != second.job(1)
    assert len(first.job(31)) < 253
