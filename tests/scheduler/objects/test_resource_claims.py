"""ResourceClaims: what is asked and what was allocated, and errors that name the field."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from koordlet.scheduler.objects import generated_claims, resource_claims, wire
from tests.kit import device_claims as kit

RESULT: dict[str, Any] = {
    "request": "r/small",
    "driver": kit.DRIVER,
    "pool": "n1",
    "device": "g0",
    "adminAccess": True,
    "tolerations": [
        {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    ],
    "bindingConditions": ["Attached"],
    "bindingFailureConditions": ["Broken"],
    "shareID": "0a",
    "consumedCapacity": {"memory": "2Gi", "cores": "500m"},
}
ALLOCATION: dict[str, Any] = {
    "devices": {
        "results": [RESULT],
        "config": [{"source": "FromClass", "requests": ["r"], "opaque": {"driver": kit.DRIVER}}],
    },
    "nodeSelector": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        ]
    },
    "allocationTimestamp": "2026-01-01T00:00:00Z",
}


def test_requests_have_the_defaults_of_the_api() -> None:
    """One device, counted exactly; a count of 0 was never written by anybody."""
    claim = resource_claims.decode(kit.claim(kit.request("r"), kit.request("s", count=0)))
    assert claim.requests == (
        resource_claims.ClaimRequest("r", "gpu", mode="ExactCount", count=1),
        resource_claims.ClaimRequest("s", "gpu", mode="ExactCount", count=1),
    )


def test_a_claim_has_everything_that_an_allocation_reads() -> None:
    """Requests, wishes in their order, constraints and settings."""
    toleration = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}
    opaque = {"driver": kit.DRIVER, "parameters": {"a": 1}}
    claim = resource_claims.decode(
        kit.claim(
            kit.request("r", "a", "b", allocationMode="All", adminAccess=True),
            kit.first_available(
                "s",
                kit.wish("x", count=2, tolerations=[{**toleration, "tolerationSeconds": 5}]),
                kit.wish("y", capacity={"requests": {"memory": "1Gi"}}),
            ),
            constraints=[
                {"requests": ["r"], "matchAttribute": "d/a"},
                {"distinctAttribute": "d/b"},
            ],
            config=[{"requests": ["s/x"], "opaque": opaque}],
        )
    )
    assert claim.key == "d/c"
    assert claim.requests == (
        resource_claims.ClaimRequest("r", "gpu", ("a", "b"), "All", admin_access=True),
        resource_claims.ClaimRequest(
            "s",
            subrequests=(
                resource_claims.ClaimRequest(
                    "x",
                    "gpu",
                    count=2,
                    tolerations=(
                        resource_claims.DeviceToleration("k", "Equal", "v", "NoExecute", 5),
                    ),
                ),
                resource_claims.ClaimRequest("y", "gpu", capacity={"memory": Fraction(2**30)}),
            ),
        ),
    )
    assert claim.constraints == (
        resource_claims.ClaimConstraint(("r",), match_attribute="d/a"),
        resource_claims.ClaimConstraint(distinct_attribute="d/b"),
    )
    assert claim.config == (resource_claims.ClaimConfiguration(("s/x",), opaque),)


def test_an_allocation_is_written_as_it_was_read() -> None:
    """What one scheduler has decided, another decodes to the same."""
    reserved = {"resource": "pods", "name": "p", "uid": "u"}
    body = kit.claim(kit.request(), status={"allocation": ALLOCATION, "reservedFor": [reserved]})
    claim = resource_claims.decode(body)
    assert claim.reserved_for == (resource_claims.Consumer("pods", "p", "u"),)
    assert claim.allocation is not None
    assert claim.allocation.document() == ALLOCATION


def test_an_allocation_reaches_the_nodes_of_its_selector_and_all_without_one() -> None:
    """A claim of local devices keeps its pods on their node."""
    decoded = resource_claims.decode(kit.claim(status={"allocation": ALLOCATION})).allocation
    assert decoded is not None
    assert [decoded.reaches(name, {}) for name in ("n1", "n2")] == [True, False]
    assert resource_claims.ClaimAllocation().reaches("n2", {}) is True


def test_the_owner_is_the_pod_that_controls_the_claim() -> None:
    """Other references do not make it that pod's."""
    body = kit.claim()
    body["metadata"] |= {
        "uid": "cu",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "7",
        "ownerReferences": [
            {"kind": "Pod", "uid": "other"},
            {"kind": "Pod", "uid": "pu", "controller": True},
        ],
    }
    claim = resource_claims.decode(body)
    assert (claim.uid, claim.owner_uid, claim.deleting) == ("cu", "pu", True)
    assert claim.resource_version == "7"


def test_a_template_has_the_metadata_and_the_spec_of_its_claims() -> None:
    """The spec stays as it is written: the claim is made of it."""
    spec = kit.claim(kit.request())["spec"]
    body = {
        "metadata": {"name": "t", "namespace": "d"},
        "spec": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": spec},
    }
    assert generated_claims.decode_template(body) == generated_claims.ClaimTemplate(
        "d", "t", {"a": "b"}, {"c": "d"}, spec
    )
    body["spec"] = {"spec": {"devices": {"requests": [{"exactly": 1}]}}}
    message = "spec.spec.devices.requests[0].exactly is not an object: 1"
    with pytest.raises(wire.BadObjectError, match=re.escape(message)):
        generated_claims.decode_template(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (kit.claim(3), "spec.devices.requests has an element that is not an object: 3"),  # type: ignore[arg-type]
        (
            kit.claim(kit.request(count="two")),
            "spec.devices.requests[0].exactly.count is not an integer: 'two'",
        ),
        (
            kit.claim(kit.request(), kit.first_available("s", kit.wish("x", adminAccess=1))),
            "spec.devices.requests[1].firstAvailable[0].adminAccess is neither true nor false: 1",
        ),
        (
            kit.claim(kit.request(capacity={"requests": {"m": "x"}})),
            "spec.devices.requests[0].exactly.capacity.requests.m: not a quantity: 'x'",
        ),
        (
            kit.claim(kit.request(tolerations=[{"tolerationSeconds": "1"}])),
            "spec.devices.requests[0].exactly.tolerations[0].tolerationSeconds is not an integer",
        ),
        (
            kit.claim(constraints=[{"matchAttribute": 1}]),
            "spec.devices.constraints[0].matchAttribute is not a string: 1",
        ),
        (kit.claim(config=[{"opaque": 1}]), "spec.devices.config[0].opaque is not an object: 1"),
        (
            kit.claim(status={"allocation": {"devices": {"results": [{"pool": 1}]}}}),
            "status.allocation.devices.results[0].pool is not a string: 1",
        ),
        (kit.claim(status={"reservedFor": [{"uid": 1}]}), "status.reservedFor[0].uid is not a"),
    ],
)
def test_a_field_of_another_shape_is_named_with_its_path(
    body: dict[str, Any], message: str
) -> None:
    """Whoever wrote the claim finds the place."""
    with pytest.raises(wire.BadObjectError, match=re.escape(message)):
        resource_claims.decode(body)


def test_claims_that_ask_for_the_same_share_what_they_ask_for() -> None:
    """Whatever the order of keys; settings of drivers are of each, and decide about no device."""
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
    turned = {"exactly": {"count": 2, "deviceClassName": "gpu"}, "name": "r"}
    setting = {"opaque": {"driver": "d", "parameters": {"a": 1}}}
    first, again, other, larger = (
        resource_claims.decode({"metadata": {"name": name}, "spec": {"devices": devices}})
        for name, devices in (
            ("a", {"requests": [request]}),
            ("b", {"requests": [turned]}),
            ("c", {"requests": [request], "config": [setting]}),
            ("d", {"requests": [{**request, "exactly": {"deviceClassName": "gpu", "count": 3}}]}),
        )
    )

    assert first.requests is again.requests
    assert (other.requests, other.asked) == (first.requests, first.asked)
    assert [entry.opaque for entry in other.config] == [setting["opaque"]]
    assert not first.config
    assert [larger.requests[0].count, first.requests[0].count] == [3, 2]
    assert larger.asked != first.asked
