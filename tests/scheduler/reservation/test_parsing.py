"""What cannot be meant is refused by name, and nothing is ignored in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.model import resources
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.reservation import keys, parsing
from koordlet.scheduler.reservation.spec import AllocatePolicy
from tests.kit import reservations
from tests.kit.clusters import node, pod
from tests.kit.reservations import NOW, reservation, states


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"ttl": "-1h"}, "spec.ttl is negative: '-1h'"),
        ({"ttl": "soon"}, "spec.ttl: not a duration"),
        ({"expires": "tomorrow"}, "expires: not a time"),
        ({"allocatePolicy": "Greedy"}, "spec.allocatePolicy 'Greedy' is neither"),
        ({"allocateOnce": "yes"}, "allocateOnce is neither true nor false"),
        ({"cpu": "-1"}, "requests.cpu is negative"),
        ({"pod": {"containers": []}}, "containers is empty"),
        ({"preAllocationPolicy": {"mode": "Some"}}, "mode 'Some' is neither"),
        ({"taints": [{"key": "k", "effect": "Never"}]}, "effect 'Never'"),
        ({"meta": {"name": "n" * 254}}, "metadata.name has 254 characters"),
        (
            {"meta": {"labels": {"k": "v" * 64}}},
            "the value of 'k' is not a string or has 64 characters",
        ),
        (
            {"meta": {"annotations": {"node.koordinator.sh/reservation": "{"}}},
            "annotation node.koordinator.sh/reservation is not JSON",
        ),
    ],
)
def test_what_cannot_be_meant(changes: dict[str, Any], refusal: str) -> None:
    """The error names the field and shows what was there."""
    with pytest.raises(BadObjectError) as caught:
        parsing.read(reservation("r", **changes))

    assert refusal in str(caught.value)


def test_without_a_template() -> None:
    """The peer's words."""
    body = reservation("r")
    del body["spec"]["template"]

    with pytest.raises(BadObjectError, match="misses the template spec"):
        parsing.read(body)


def test_a_rejected_one_is_told_and_harms_nobody() -> None:
    """Its condition and a warning say why; pods and other reservations go on."""
    outcome = reservations.tried(
        node("n"), reservation("bad", ttl="-1h"), reservation("good", cpu="1"), pod("x", cpu="1")
    )
    by_name = {state["name"]: state for state in outcome["reservations"]}

    assert by_name["bad"]["phase"] == "Pending"
    assert by_name["bad"]["conditions"][0]["message"] == "spec.ttl is negative: '-1h'"
    assert by_name["good"]["phase"] == "Available"
    assert len(outcome["placements"]) == 1
    assert any("bad is not scheduled" in warning for warning in outcome["warnings"])


def test_two_of_one_name() -> None:
    """The first one counts, as with pods and nodes."""
    twice = [reservation("r", cpu="1"), reservation("r", cpu="2", meta={"uid": "other"})]
    outcome = reservations.tried(node("n"), *twice)

    assert [state["allocatable"] for state in outcome["reservations"]] == [{"cpu": "1"}]
    assert any("its name occurs twice" in warning for warning in outcome["warnings"])


@pytest.mark.parametrize(
    ("owners", "refusal"),
    [
        ([], "the reservation misses the owner spec"),
        ([{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}], "Near"),
        ([{"labelSelector": {}, "objekt": {}}], "the unknown field 'objekt'"),
    ],
)
def test_owners_that_mean_nobody(owners: Any, refusal: str) -> None:
    """Not scheduled, and the condition says why; one that holds already goes on holding."""
    pending = states(node("n"), reservation("r", cpu="1", owners=owners))["r"]
    assert pending["phase"] == "Pending"
    assert refusal in pending["conditions"][0]["message"]

    info = reservation("r", cpu="4", owners=owners, on="n")
    assert reservations.drew(node("n"), info, pod("x", cpu="1")) == {}


def test_owners_that_mean_everybody_are_warned_about() -> None:
    """An empty entry is an owner of every name; that is allowed, and said."""
    outcome = reservations.tried(
        node("n"), reservation("r", cpu="1", owners=[{}]), pod("x", cpu="1")
    )

    assert outcome["placements"][0]["reservation"] == "r"
    assert any("spec.owners[0] matches every pod" in warning for warning in outcome["warnings"])


def test_an_owner_with_an_unknown_key_matches_nobody_and_is_told_so() -> None:
    """It is not said to match every pod."""
    warnings = parsing.warnings(reservation("r", owners=[{"labelSelektor": {"matchLabels": {}}}]))

    assert warnings == ["spec.owners[0] has the unknown field 'labelSelektor' and matches no pod"]


def test_unknown_fields_are_warned_about() -> None:
    """With the nearest name."""
    assert parsing.warnings(reservation("r", allocateOne=True)) == [
        "spec.allocateOne is unknown; did you mean allocateOnce?"
    ]


@pytest.mark.parametrize(
    ("spec", "expires"),
    [
        ({}, NOW + 24 * 3600),
        ({"ttl": "1h30m"}, NOW + 5400),
        ({"ttl": "0"}, None),
        ({"ttl": 0}, None),
        ({"ttl": "0s", "expires": "2023-11-14T22:13:25Z"}, NOW + 5),
        ({"ttl": "1h", "expires": "2023-11-14T22:13:25Z"}, NOW + 5),
    ],
)
def test_when_it_ends(spec: dict[str, Any], expires: float | None) -> None:
    """``expires`` has the say, ``ttl: 0`` alone never ends, a day without either."""
    meta = {"creationTimestamp": "2023-11-14T22:13:20Z"}

    assert parsing.read(reservation("r", meta=meta, **spec)).expires_at == expires


def test_defaults() -> None:
    """Once, Default; pre-allocation without a policy is Restricted."""
    plain, early = (
        parsing.read(reservation("r")),
        parsing.read(reservation("r", preAllocation=True)),
    )

    assert (plain.once, plain.policy, plain.pre_allocation) == (True, AllocatePolicy.DEFAULT, None)
    assert early.policy is AllocatePolicy.RESTRICTED


def test_resized_amounts_keep_the_spelling_of_the_resize_and_others_their_own() -> None:
    """Powers of two or of ten: as the resize has it, and for other names as the template has it."""
    resize = {"resources": {"memory": "16Gi", "example.com/disk": "20G"}}
    spec = parsing.read(
        reservation(
            "r",
            cpu="4",
            memory="8G",
            requests={"example.com/disk": "10Gi", "ephemeral-storage": "30G"},
            meta={"annotations": {keys.RESIZE: json.dumps(resize)}},
        )
    )

    assert resources.canonical(spec.allocatable, spec.decimal) == {
        "cpu": "4",
        "memory": "16Gi",
        "example.com/disk": "20G",
        "ephemeral-storage": "30G",
    }
