"""Pre-allocation end to end: running pods are adopted, and their room is waited for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit import reservations
from tests.kit.clusters import node, pod
from tests.kit.reservations import reservation, states

KEY = "scheduling.koordinator.sh/"


def web(name: str, **more: Any) -> Any:
    """A pod that the kit's reservations mean."""
    return pod(name, labels={"app": "web"}, **more)


def test_a_waiting_reservation_holds_what_was_released_and_nobody_draws_on_it() -> None:
    """The node's free room stays everybody's until it is enough."""
    old = web("old", on="n", cpu="2")
    promised = reservation("r", cpu="4", preAllocation=True)
    outcome = reservations.tried(node("n", cpu="4"), old, promised, web("new", cpu="1"))

    assert outcome["reservations"][0]["phase"] == "Waiting"
    assert [
        (placement["pod"], placement["reservation"]) for placement in outcome["placements"]
    ] == [("d/new", None)]


def test_pre_allocation_is_refused_where_it_cannot_be() -> None:
    """Aligned is not what pre-allocation means; required without a pod is required."""
    aligned = reservation("r", cpu="1", preAllocation=True, allocatePolicy="Aligned")
    required = {"labels": {f"{KEY}pre-allocation-required": "true"}}
    demanding = reservation("r", cpu="1", preAllocation=True, meta=required)

    assert "pre allocation is unsupported with current attributes" in json.dumps(
        states(node("n"), aligned)
    )
    assert "no pod match reservation with pre allocation required" in json.dumps(
        states(node("n"), demanding)
    )


def test_a_refusal_names_what_the_adoption_does_not_give() -> None:
    """The pod's memory would be enough; only the CPUs are not, with it or without."""
    big = {"memory": "6Gi"}
    old = web("old", on="n", cpu="2", memory="6Gi")
    other = pod("other", on="n", cpu="2")
    promised = reservation("r", cpu="4", requests=big, preAllocation=True)
    conditions = json.dumps(states(node("n", cpu="4"), old, other, promised)["r"]["conditions"])

    assert "Insufficient cpu by node" in conditions
    assert "memory" not in conditions


def test_several_are_adopted_cumulatively() -> None:
    """One CPU, then four against four: the second would exceed the reservation and is left out."""
    policy = {"mode": "Cluster", "enableMultiple": True}
    mark = {"pod.koordinator.sh/is-pre-allocatable": "true"}
    first = {"annotations": {"pod.koordinator.sh/pre-allocatable-priority": "9"}}
    pods = [pod("one", on="n", cpu="1", labels=mark, meta=first)]
    pods += [pod("four", on="n", cpu="4", labels=mark)]
    promised = reservation("r", cpu="4", preAllocation=True, preAllocationPolicy=policy)
    status = states(node("n", cpu="8"), *pods, promised)["r"]

    assert [owner["name"] for owner in status["currentOwners"]] == ["one"]
    assert status["phase"] == "Waiting"


@pytest.mark.parametrize(
    ("state", "adopted"), [("Succeeded", ["old"]), ("Available", []), ("", ["old"])]
)
def test_a_pod_is_adopted_unless_its_own_reservation_still_holds_room(
    state: str, adopted: list[str]
) -> None:
    """A moved pod names the reservation that it came by for good: over, or deleted by now."""
    old = web("old", on="n", cpu="2", meta={"annotations": reservations.drawn("past")})
    status = {"phase": state, "nodeName": "n"}
    past = reservation("past", cpu="2", status=status, allocateOnce=False)
    promised = reservation("r", cpu="4", preAllocation=True)
    shown = states(node("n", cpu="4"), old, *([past] if state else []), promised)["r"]

    assert [owner["name"] for owner in shown.get("currentOwners", ())] == adopted


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    ("required", "phase", "reason"),
    [
        (False, "Available", ""),
        (True, "Pending", "no pod(s) to meet the pre-allocation requirements"),
    ],
)
def test_a_pod_that_would_give_nothing_is_not_adopted(
    required: bool, phase: str, reason: str, several: bool
) -> None:
    """It asks for nothing that the reservation has: the node alone serves it, or nothing does."""
    old = web("old", on="n", requests={"kubernetes.io/batch-cpu": "1000"})
    meta = {"labels": {f"{KEY}pre-allocation-required": "true"}} if required else {}
    policy = {"enableMultiple": several}
    promised = reservation("r", cpu="2", preAllocation=True, preAllocationPolicy=policy, meta=meta)
    machine = node("n", cpu="4", allocatable={"kubernetes.io/batch-cpu": "4000"})
    shown = states(machine, old, promised)["r"]

    assert shown["phase"] == phase
    assert not shown.get("currentOwners")
    assert reason in json.dumps(shown["conditions"])


def test_where_adoption_is_not_required_reasons_are_of_the_node() -> None:
    """The pod is too large for the reservation; what is told is what the node lacks without it."""
    old = web("old", on="n", cpu="3", memory="2Gi")
    promised = reservation("r", cpu="2", preAllocation=True)
    conditions = json.dumps(states(node("n", cpu="4"), old, promised)["r"]["conditions"])

    assert "1 Insufficient cpu by node" in conditions
    assert "Reservation(s)" not in conditions
