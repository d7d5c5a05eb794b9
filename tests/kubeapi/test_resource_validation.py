"""Slices, classes and claims: what an API server would refuse is named by its path."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import validation
from tests.kit import device_claims as kit

Body = dict[str, Any]


def policy(**fields: Any) -> Body:
    """A shared device of four with a policy."""
    capacity = {"m": {"value": "4", "requestPolicy": fields}}
    return kit.device("a", capacity=capacity, allowMultipleAllocations=True)


def claim(*requests: Body, **devices: Any) -> Body:
    """A claim's spec."""
    made: Body = kit.claim(*requests, **devices)["spec"]
    return made


MANY = [kit.device(f"d{n}") for n in range(128)]
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}


@pytest.mark.parametrize(
    "body",
    [
        kit.resource_slice(MANY, node="n1"),
        kit.resource_slice(
            [
                kit.device("a", {"x": 1, "gpu.example/y": {"version": "1.0.0-rc.1+b"}}),
                policy(default="1", validRange={"min": "500m", "max": "2", "step": "250m"})
                | {"name": "b"},
            ],
            nodeSelector={"nodeSelectorTerms": [TERM]},
        ),
        kit.resource_slice([kit.device("a", nodeName="n1")], perDeviceNodeSelection=True),
        kit.resource_slice(
            pool="a/b", allNodes=True, sharedCounters=[{"name": "s", "counters": {"c": {}}}]
        ),
        kit.device_class("gpu", "true", config=[{"opaque": {"driver": "D.x", "parameters": {}}}]),
        kit.claim(
            kit.request("r", "true", count=3, tolerations=[{"operator": "Exists"}]),
            kit.request("t", tolerations=[{"value": "a"}, {"key": "k", "effect": "None"}]),
            kit.first_available("s", kit.wish("x"), kit.wish("y", allocationMode="All")),
            constraints=[{"requests": ["r", "s/x"], "matchAttribute": "gpu.example/model"}],
            config=[{"requests": ["s"], "opaque": {"driver": "d", "parameters": {}}}],
        ),
        {"kind": "ResourceSlice", "metadata": {"uid": "u"}, "spec": {"devices": [None]}},
    ],
)
def test_what_an_api_server_takes_has_no_faults(body: Body) -> None:
    """Nothing is checked of what has passed one."""
    assert validation.faults(body) == []


@pytest.mark.parametrize(
    ("device", "fault"),
    [
        ({"name": "A"}, "spec.devices[0].name: 'A' is not a DNS label"),
        (kit.device("a", {"x": {}}), "spec.devices[0].attributes[x]: needs exactly one of int"),
        (kit.device("a", {"x": "v" * 65}), "attributes[x].string: 65 characters, at most 64"),
        (kit.device("a", {"x": {"version": "1.0"}}), "'1.0' is not a semantic version"),
        (kit.device("a", {"x": {"version": "01.0.0"}}), "'01.0.0' is not a semantic version"),
        (kit.device("a", {"x" * 33: 1}), "is not a C identifier of at most 32 characters"),
        (kit.device("a", {"9": 1}), "spec.devices[0].attributes: '9' is not a C identifier"),
        (kit.device("a", {f"{'d' * 64}/x": 1}), "is not a DNS subdomain of at most 63"),
        (
            kit.device("a", {f"x{n}": n for n in range(33)}),
            "spec.devices[0]: 33 attributes and capacities, at most 32",
        ),
        (
            kit.device("a", capacity={"m": {"value": "4", "requestPolicy": {"default": "1"}}}),
            "capacity[m].requestPolicy: only with allowMultipleAllocations",
        ),
        (policy(validValues=["1"]), "requestPolicy.default: must be set with validValues"),
        (policy(default="2", validValues=["1"]), "default: 2 is none of validValues"),
        (policy(default="1", validValues=["1"] * 11), "validValues: 11 elements, at most 10"),
        (
            policy(default="1", validValues=["1"], validRange={"min": "1"}),
            "validValues and validRange exclude each other",
        ),
        (policy(default="1", validRange={"max": "1"}), "validRange.min: must be set"),
        (policy(default="1", validRange={"min": "1", "max": "0"}), "max: less than min"),
        (policy(default="1", validRange={"min": "1", "step": "0"}), "step: must be positive"),
        (policy(default="5", validRange={"min": "5"}), "min: larger than the capacity"),
        (policy(default="2", validRange={"min": "2", "step": "3"}), "step: one step from min"),
        (policy(default="1", validRange={"min": "2"}), "default: outside of validRange"),
        (
            policy(default="2", validRange={"min": "500m", "step": "1"}),
            "default: no whole number of steps from min",
        ),
        (
            kit.device("a", consumesCounters=kit.consumes(c="1") * 3),
            "spec.devices[0].consumesCounters: 3 elements, at most 2",
        ),
        (
            kit.device("a", consumesCounters=[{"counterSet": "s"}]),
            "consumesCounters[0].counters: 0 counters, from 1 to 32",
        ),
        (
            kit.device("a", consumesCounters=kit.consumes("s", C="1")),
            "consumesCounters[0].counters: 'C' is not a DNS label",
        ),
        (kit.device("a", taints=[{"key": "k", "effect": "Never"}]), "'Never' is none of"),
        (kit.device("a", taints=[{"key": "", "effect": "None"}]), "taints[0]: '' is not a key"),
        (
            kit.device("a", taints=[{"key": "k", "effect": "None"}] * 17),
            "spec.devices[0].taints: 17 elements, at most 16",
        ),
        (kit.device("a", bindingConditions=["A"]), "only together with bindingFailureConditions"),
        (
            kit.device("a", bindingConditions=["A"] * 5, bindingFailureConditions=["B"]),
            "bindingConditions: 5 elements, at most 4",
        ),
        (kit.device("a", nodeName="n1"), "nodeName: only where spec.perDeviceNodeSelection"),
    ],
)
def test_a_device_beyond_the_limits_is_named(device: Body, fault: str) -> None:
    """With its place in the slice."""
    (only,) = validation.faults(kit.resource_slice([device], node="n1"))[:1]
    assert fault in only


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"driver": "D_"}, "spec.driver: 'D_' is not a DNS subdomain of at most 63 characters"),
        ({"driver": "d" * 64}, "is not a DNS subdomain of at most 63 characters"),
        (
            {"pool": {"name": "a//b", "resourceSliceCount": 1}},
            "spec.pool.name: 'a//b' is not DNS subdomains",
        ),
        (
            {"pool": {"name": "a", "resourceSliceCount": 0}},
            "spec.pool.resourceSliceCount: 0 is not a whole number from 1 on",
        ),
        (
            {"pool": {"name": "a", "resourceSliceCount": 1, "generation": -1}},
            "spec.pool.generation: -1 is not a whole number from 0 on",
        ),
        ({"allNodes": True}, "spec: needs exactly one of nodeName, nodeSelector, allNodes"),
        ({"nodeName": ""}, "spec: needs exactly one of nodeName, nodeSelector, allNodes"),
        (
            {"nodeName": "", "nodeSelector": {"nodeSelectorTerms": [TERM, TERM]}},
            "spec.nodeSelector.nodeSelectorTerms: needs exactly one term",
        ),
        ({"devices": [*MANY, kit.device("x")]}, "spec.devices: 129 elements, at most 128"),
        (
            {"devices": [*MANY[:64], kit.device("x", taints=[{"key": "k", "effect": "None"}])]},
            "spec.devices: 65 elements, at most 64",
        ),
        ({"devices": [kit.device("a"), kit.device("a")]}, "spec.devices: 'a' is there twice"),
        (
            {"sharedCounters": [{"name": "s", "counters": {"c": {}}}]},
            "spec.devices: must be empty where sharedCounters is set",
        ),
        (
            {
                "devices": [],
                "sharedCounters": [{"name": f"s{n}", "counters": {"c": {}}} for n in range(9)],
            },
            "spec.sharedCounters: 9 elements, at most 8",
        ),
        (
            {
                "devices": [],
                "sharedCounters": [
                    {"name": "s", "counters": {f"c{n}": {} for n in range(33)}},
                ],
            },
            "spec.sharedCounters[0].counters: 33 counters, from 1 to 32",
        ),
        ({"perDeviceNodeSelection": True, "nodeName": ""}, "spec.devices[0]: needs exactly one"),
    ],
)
def test_a_slice_beyond_the_limits_is_named(changes: Body, fault: str) -> None:
    """Numbers of things, and what belongs together."""
    body = kit.resource_slice(["g0"], node="n1")
    body["spec"] |= changes
    assert fault in "; ".join(validation.faults(body))


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (claim(*[kit.request(f"r{n}") for n in range(33)]), "requests: 33 elements, at most 32"),
        (claim(kit.request(), kit.request()), "devices.requests: 'r' is there twice"),
        (claim({"name": "r"}), "requests[0]: needs exactly one of exactly, firstAvailable"),
        (
            claim(kit.first_available("r", *(kit.wish(f"w{n}") for n in range(9)))),
            "requests[0].firstAvailable: 9 elements, at most 8",
        ),
        (
            claim(kit.first_available("r", kit.wish("x", adminAccess=True))),
            "firstAvailable[0].adminAccess: not in firstAvailable",
        ),
        (claim(kit.request(device_class="")), "exactly.deviceClassName: '' is not the name of"),
        (claim(kit.request(allocationMode="Any")), "allocationMode: 'Any' is none of ExactCount"),
        (claim(kit.request(allocationMode="All", count=1)), "count: must not be set with"),
        (claim(kit.request(count=-1)), "exactly.count: -1 is not a whole number from 0 on"),
        (claim(kit.request("r", "")), "selectors[0].cel.expression: must be set"),
        (claim(kit.request("r", "x" * 10241)), "cel.expression: 10241 bytes, at most 10240"),
        (claim(kit.request("r", *"x" * 33)), "exactly.selectors: 33 elements, at most 32"),
        (
            claim(kit.request(tolerations=[{"key": "a"}] * 17)),
            "exactly.tolerations: 17 elements, at most 16",
        ),
        (
            claim(kit.request(tolerations=[{"key": "a", "operator": "Gt"}])),
            "tolerations[0].operator: 'Gt' is none of Exists, Equal",
        ),
        (
            claim(kit.request(tolerations=[{"key": "a", "effect": "Some"}])),
            "tolerations[0].effect: 'Some' is none of",
        ),
        (
            claim(kit.request(tolerations=[{"operator": "Exists", "value": "a"}])),
            "value: must be empty with operator Exists",
        ),
        (claim(kit.request(capacity={"requests": {"a-b": "1"}})), "'a-b' is not a C identifier"),
        (claim(constraints=[{}]), "constraints[0]: needs exactly one of matchAttribute"),
        (claim(constraints=[{"matchAttribute": "a"}]), "'a' needs a domain, as in"),
        (
            claim(kit.request(), constraints=[{"requests": ["s"], "matchAttribute": "d/a"}]),
            "constraints[0].requests: there is no request 's'",
        ),
        (claim(config=[{"requests": ["s"]}]), "config[0].requests: there is no request 's'"),
        (claim(config=[{"opaque": {"driver": ""}}]), "config[0].opaque.driver: '' is not a DNS"),
        (
            claim(config=[{"opaque": {"driver": "d", "parameters": "x" * 10240}}]),
            "opaque.parameters: 10242 bytes, at most 10240",
        ),
    ],
)
def test_a_claim_beyond_the_limits_is_named_and_so_is_one_in_a_template(
    spec: Body, fault: str
) -> None:
    """The template's path is one step longer."""
    text = "; ".join(validation.faults({"kind": "ResourceClaim", "spec": spec}))
    assert fault in text
    assert text.startswith("spec.devices")
    template = {"kind": "ResourceClaimTemplate", "spec": {"spec": spec}}
    assert "; ".join(validation.faults(template)).startswith("spec.spec.devices")


def test_a_status_beyond_the_limits_and_a_class_without_an_expression_are_named() -> None:
    """256 pods may share a claim, which has 32 devices at most."""
    results: Body = {"allocation": {"devices": {"results": [{}] * 33}}, "reservedFor": [{}] * 257}
    assert validation.faults(kit.claim(status=results)) == [
        "status.reservedFor: 257 elements, at most 256",
        "status.allocation.devices.results: 33 elements, at most 32",
    ]
    assert validation.faults(kit.device_class("gpu", "")) == [
        "spec.selectors[0].cel.expression: must be set"
    ]
