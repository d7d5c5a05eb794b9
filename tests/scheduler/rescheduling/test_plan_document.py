"""A document has each move with its state."""

from __future__ import annotations

import dataclasses

from koordlet.scheduler.rescheduling import move_plan, plan_document
from tests.scheduler.rescheduling.test_move_plan import BIG, MOVES


def test_a_document_has_each_move_with_its_state() -> None:
    """Also while nobody has looked at it."""
    plan = move_plan.MovePlan(name="p", uid="u", moves=MOVES, node="n1", pod=BIG)
    document = plan_document.document(plan)
    assert (document["for"], document["node"], document["phase"]) == ("d/big", "n1", "Pending")
    assert [(m["pod"], m["from"], m["to"], m["after"], m["phase"]) for m in document["moves"]] == [
        ("d/a", "n1", "n2", [], "Waiting"),
        ("d/b", "n3", "n1", [0], "Waiting"),
    ]


def test_a_plan_for_room_ahead_says_the_size_in_words_and_by_resource() -> None:
    """A plan for a pod has no size."""
    plan = move_plan.MovePlan(name="p", uid="u", room={"cpu": 8000, "memory": 32 << 30})
    document = plan_document.document(plan)
    assert document["for"] == "cpu=8,memory=32Gi"
    assert document["room"] == {"cpu": "8", "memory": "32Gi"}
    assert plan_document.document(move_plan.MovePlan(name="p", uid="u", pod=BIG))["room"] is None


def test_a_plan_for_a_gang_names_each_member_and_its_node() -> None:
    """Of others there is none."""
    other = move_plan.PlanPlace(BIG, "n2")
    plan = move_plan.MovePlan(name="p", uid="u", node="n1", pod=BIG, members=(other,))
    document = plan_document.document(plan)
    assert document["members"] == [{"pod": "d/big", "node": "n2"}]
    assert document["for"] == "d/big"
    assert plan_document.document(dataclasses.replace(plan, members=()))["members"] == []
