"""The Node's status: offers and conditions, and when they are worth a write."""

from __future__ import annotations

import dataclasses
from typing import Any

from koordlet.model import best_effort, decision, resources
from koordlet.report import view
from koordlet.report.objects import node_status
from tests.kit import views

WALL = 1767225600.0


def view_of(
    offer: dict[str, int] | None, *conditions: decision.Condition, **more: Any
) -> view.ReportView:
    """A view with this offer and these conditions."""
    base = views.view()
    offered = None if offer is None else best_effort.Offer(amounts=offer, **more)
    changed = dataclasses.replace(base.plan, offer=offered, conditions=conditions)
    return dataclasses.replace(base, plan=changed, ready=True)


def patch_of(there: dict[str, Any], now: view.ReportView) -> dict[str, Any] | None:
    """The patch of the status that stands there."""
    return node_status.patch(there, node_status.wanted(now), wall=WALL, tolerance=0.1)


def applied(patch: dict[str, Any] | None) -> dict[str, Any]:
    """The node after the patch, as a server merges it."""
    assert patch is not None
    status = patch["status"]
    return {"status": {**status, "conditions": status.get("conditions", [])}}


PRESSED = decision.Condition(type="CpuTight", status=True, reason="Busy", message="m")
OFFER = {resources.BATCH_CPU: 4000, resources.BATCH_MEMORY: 1 << 30}


def test_an_offer_is_written_with_tolerance() -> None:
    """It comes, stays while it hardly moves, moves, goes."""
    first = patch_of({}, view_of(OFFER))
    there = applied(first)

    assert {"kubernetes.io/batch-cpu": "4000", "kubernetes.io/batch-memory": str(1 << 30)} == there[
        "status"
    ]["allocatable"]
    assert there["status"]["capacity"] == there["status"]["allocatable"]
    assert patch_of(there, view_of({**OFFER, resources.BATCH_CPU: 4400})) is None
    moved = patch_of(there, view_of({**OFFER, resources.BATCH_CPU: 4401}))
    assert moved is not None
    assert moved["status"]["allocatable"][resources.BATCH_CPU] == "4401"
    gone = patch_of(there, view_of({}))
    assert gone is not None
    assert gone["status"]["capacity"] == {resources.BATCH_CPU: None, resources.BATCH_MEMORY: None}


def test_without_a_policy_resources_are_left_alone() -> None:
    """Another program may write them."""
    there = applied(patch_of({}, view_of(OFFER)))

    assert patch_of(there, view_of(None)) is None


def test_what_another_program_writes_is_not_taken_away() -> None:
    """A resource that we do not offer goes, unless somebody who still writes owns it."""
    there = applied(patch_of({}, view_of(OFFER)))
    owner = {
        "manager": "koord-manager",
        "operation": "Update",
        "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:status": {"f:allocatable": {f"f:{resources.BATCH_CPU}": {}}}},
    }
    there["metadata"] = {"managedFields": [owner]}
    left = patch_of(there, view_of({}))
    assert left is not None
    assert left["status"]["allocatable"] == {resources.BATCH_MEMORY: None}
    there["metadata"]["managedFields"].append(
        {"manager": "kubelet", "operation": "Update", "time": "2026-01-01T01:00:00Z"}
    )
    left = patch_of(there, view_of({}))
    assert left is not None
    assert {resources.BATCH_CPU, resources.BATCH_MEMORY} == left["status"]["allocatable"].keys()


def test_third_parties_are_told() -> None:
    """What was there before they took their part is in the peer's annotation."""
    patch = patch_of({}, view_of(OFFER, original={resources.BATCH_CPU: 9000}))

    assert patch is not None
    assert (
        patch["metadata"]["annotations"][node_status.ORIGIN]
        == '{"resources":{"kubernetes.io/batch-cpu":"9000"}}'
    )


def test_conditions_have_our_prefix_and_move_once() -> None:
    """Written when they change; a condition that is gone is false; others' are not touched."""
    kubelets = {"type": "MemoryPressure", "status": "True"}
    there = applied(patch_of({"status": {"conditions": [kubelets]}}, view_of(None, PRESSED)))
    kinds = {condition["type"]: condition["status"] for condition in there["status"]["conditions"]}

    assert kinds == {"koordlet.io/CpuTight": "True", "koordlet.io/Ready": "True"}
    assert patch_of(there, view_of(None, PRESSED)) is None
    past = patch_of(there, view_of(None))
    assert past is not None
    kinds = {condition["type"]: condition["status"] for condition in past["status"]["conditions"]}
    assert kinds == {"koordlet.io/CpuTight": "False", "koordlet.io/Ready": "True"}
    assert patch_of(applied(past), view_of(None)) is None


def test_an_empty_text_that_is_left_out_is_no_change() -> None:
    """An API server keeps no empty message: a condition without one is written once."""
    now = view_of(None, decision.Condition(type="Pool", status=False, reason="Enough", message=""))
    there = applied(patch_of({}, now))
    for condition in there["status"]["conditions"]:
        if not condition["message"]:
            del condition["message"]

    assert patch_of(there, now) is None


def test_conditions_of_pods_are_not_the_nodes() -> None:
    """Only what is about the node stands there."""
    of_pod = dataclasses.replace(PRESSED, subject="default/web")
    there = applied(patch_of({}, view_of(None, of_pod)))

    (condition,) = there["status"]["conditions"]
    assert condition["type"] == "koordlet.io/Ready"
