"""What is written of a solution: devices, nodes that reach them, settings."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.claims import demand
from tests.kit import claim_search as search
from tests.kit import device_claims as kit

Body = dict[str, Any]
ZONE = {"key": "zone", "operator": "NotIn", "values": ["b"]}
RACK = {"key": "rack", "operator": "DoesNotExist"}


def by(*expressions: Body) -> Body:
    """A selector over labels."""
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}


@pytest.mark.parametrize(
    ("places", "selector"),
    [
        ([{"allNodes": True}], None),
        ([by(ZONE)], {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}),
        (
            [by(ZONE), by(RACK, ZONE), {"allNodes": True}],
            {"nodeSelectorTerms": [{"matchExpressions": [ZONE, RACK]}]},
        ),
        (
            [by(ZONE), {"nodeName": "n1"}],
            {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                ]
            },
        ),
    ],
)
def test_the_nodes_of_a_claim_are_those_that_reach_all_its_devices(
    places: list[Body], selector: Body | None
) -> None:
    """A device of one node ties the claim to it; selectors hold together, each once."""
    slices = [kit.resource_slice(["g"], pool=f"p{n}", **place) for n, place in enumerate(places)]
    made = search.solve(slices, kit.claim(kit.request(count=len(places))))
    assert not isinstance(made, str)
    assert made[0].node_selector == selector
    assert made[0].reaches("n1", {}) is True


def test_a_device_that_binds_to_its_node_ties_the_claim_to_it() -> None:
    """Although its slice is for all nodes."""
    slices = [kit.resource_slice([kit.device("g", bindsToNode=True)], allNodes=True)]
    made = search.solve(slices, kit.claim(kit.request()))
    assert not isinstance(made, str)
    assert [made[0].reaches(node, {}) for node in ("n1", "n2")] == [True, False]


def test_a_device_with_two_selector_terms_is_refused_by_name() -> None:
    """The API allows one; a conjunction of alternatives cannot be written."""
    terms = [{"matchExpressions": [ZONE]}, {"matchExpressions": [RACK]}]
    slices = [kit.resource_slice(["g"], nodeSelector={"nodeSelectorTerms": terms})]
    with pytest.raises(demand.AllocationError, match=r"claim d/c: device gpu.example/pool/g has 2"):
        search.solve(slices, kit.claim(kit.request()))


def test_a_device_takes_conditions_and_tolerations_into_the_result() -> None:
    """Who evicts and who binds later reads them there."""
    tolerations = [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}]
    slices = search.gpus(1, bindingConditions=["A"], bindingFailureConditions=["B"])
    claim = kit.claim(kit.request(tolerations=tolerations, adminAccess=True))
    made = search.solve(slices, claim)
    assert not isinstance(made, str)
    assert made[0].document()["devices"] == {
        "results": [
            {
                "request": "r",
                "driver": kit.DRIVER,
                "pool": "n1",
                "device": "g0",
                "adminAccess": True,
                "tolerations": tolerations,
                "bindingConditions": ["A"],
                "bindingFailureConditions": ["B"],
            }
        ]
    }


def test_settings_of_each_class_come_once_and_then_those_of_the_claim() -> None:
    """Of wishes only the one that was served counts, by its name or by its request's."""
    opaque = [{"opaque": {"driver": kit.DRIVER, "parameters": n}} for n in range(6)]
    classes = (
        kit.device_class("gpu", "gpu", config=[opaque[0]]),
        kit.device_class("nic", "nic", config=[opaque[1]]),
    )
    claim = kit.claim(
        kit.request("r"),
        kit.request("s"),
        kit.first_available("t", kit.wish("x", device_class="nic"), kit.wish("y")),
        config=[
            opaque[2],
            {"requests": ["t/x"], **opaque[3]},
            {"requests": ["t/y", "none"], **opaque[4]},
            {"requests": ["t"], **opaque[5]},
        ],
    )
    made = search.solve(search.gpus(3), claim, classes=classes)
    assert not isinstance(made, str)
    assert list(made[0].config) == [
        {"source": "FromClass", "requests": ["r", "s", "t/y"], **opaque[0]},
        {"source": "FromClaim", **opaque[2]},
        {"source": "FromClaim", "requests": ["t/y", "none"], **opaque[4]},
        {"source": "FromClaim", "requests": ["t"], **opaque[5]},
    ]
