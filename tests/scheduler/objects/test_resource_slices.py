"""ResourceSlices: every field that an allocation reads, and errors that name the field."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from koordlet.scheduler.objects import resource_slices, wire
from tests.kit import device_claims as kit


def test_a_device_has_each_field_with_its_type_and_amounts_by_value() -> None:
    """``1000m`` is 1; a version is not a string; a list is kept as what is not served."""
    body = kit.device(
        "g0",
        {"model": "a", "index": 3, "nvlink": True, "v": {"version": "1.2.3"}, "l": {"strings": []}},
        capacity={
            "memory": {
                "value": "40Gi",
                "requestPolicy": {
                    "default": "1Gi",
                    "validRange": {"min": "1Gi", "max": "8Gi", "step": "512Mi"},
                },
            },
            "cores": {"value": "1000m", "requestPolicy": {"validValues": ["2", "500m", "1"]}},
        },
        consumesCounters=kit.consumes("set", slots="2"),
        taints=[{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01"}],
        bindsToNode=True,
        bindingConditions=["Attached"],
        bindingFailureConditions=["Broken"],
        allowMultipleAllocations=True,
    )
    (device,) = resource_slices.decode(kit.resource_slice([body], node="n1")).devices
    giga = Fraction(2**30)
    assert device == resource_slices.SliceDevice(
        name="g0",
        attributes={
            "model": "a",
            "index": 3,
            "nvlink": True,
            "v": resource_slices.AttributeVersion("1.2.3"),
            "l": resource_slices.UnreadAttribute(("strings",)),
        },
        capacity={
            "memory": resource_slices.DeviceCapacity(
                40 * giga,
                resource_slices.CapacityPolicy(giga, (), giga, 8 * giga, giga / 2),
            ),
            "cores": resource_slices.DeviceCapacity(
                Fraction(1),
                resource_slices.CapacityPolicy(values=(Fraction(1, 2), Fraction(1), Fraction(2))),
            ),
        },
        consumes=(resource_slices.CounterSet("set", {"slots": Fraction(2)}),),
        taints=(resource_slices.DeviceTaint("k", "v", "NoExecute", "2026-01-01"),),
        binds_to_node=True,
        binding_conditions=("Attached",),
        binding_failure_conditions=("Broken",),
        allow_multiple_allocations=True,
    )


def test_a_slice_has_its_pool_and_its_counters() -> None:
    """Counters of a pool come in slices of their own."""
    shared = [{"name": "set", "counters": {"slots": {"value": "8"}}}]
    body = kit.resource_slice(pool="p", generation=3, count=2, allNodes=True, sharedCounters=shared)
    decoded = resource_slices.decode(body)
    assert (decoded.driver, decoded.pool) == (kit.DRIVER, "p")
    assert (decoded.generation, decoded.slice_count, decoded.per_device) == (3, 2, False)
    assert decoded.counter_sets == (resource_slices.CounterSet("set", {"slots": Fraction(8)}),)


@pytest.mark.parametrize(
    ("selection", "nodes"),
    [
        ({"nodeName": "n1"}, ["n1"]),
        ({"allNodes": True}, ["n1", "n2"]),
        ({"allNodes": False}, []),
        (
            {
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                    ]
                }
            },
            ["n2"],
        ),
        (
            {
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n1"]}
                            ]
                        }
                    ]
                }
            },
            ["n1"],
        ),
        ({"nodeSelector": {"nodeSelectorTerms": []}}, []),
        ({}, []),
    ],
)
def test_nodes_are_selected_by_name_by_selector_or_all(
    selection: dict[str, Any], nodes: list[str]
) -> None:
    """A name, then ``allNodes``, then a selector over labels and the name; nothing is no node."""
    decoded = resource_slices.decode(kit.resource_slice(["g0"], **selection)).selection
    labels = {"n1": {}, "n2": {"zone": "a"}}
    assert [name for name, own in labels.items() if decoded.matches(name, own)] == nodes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"driver": ""}, "spec.driver is missing"),
        ({"driver": 3}, "spec.driver is not a string: 3"),
        ({"pool": {}}, "spec.pool.name is missing"),
        ({"devices": {}}, "spec.devices is not a list: {}"),
        ({"devices": [3]}, "spec.devices has an element that is not an object: 3"),
        ({"devices": [{}]}, "spec.devices[0].name is missing"),
        (
            {"devices": [kit.device("a"), kit.device("b", capacity={"m": {"value": "much"}})]},
            "spec.devices[1].capacity[m].value: not a quantity: 'much'",
        ),
        (
            {"devices": [kit.device("a", capacity={"m": {}})]},
            "spec.devices[0].capacity[m].value is missing",
        ),
        (
            {"devices": [{"name": "a", "attributes": {"x": {"int": "1"}}}]},
            "spec.devices[0].attributes[x].int is not an integer: '1'",
        ),
        (
            {"devices": [{"name": "a", "attributes": {"x": 1}}]},
            "spec.devices[0].attributes[x] is not an object: 1",
        ),
        (
            {"devices": [kit.device("a", consumesCounters=[{"counters": {"c": {}}}])]},
            "spec.devices[0].consumesCounters[0].counters[c].value is missing",
        ),
        (
            {"devices": [kit.device("a", taints=[{"key": []}])]},
            "spec.devices[0].taints[0].key is not a string: []",
        ),
        ({"sharedCounters": [{"counters": []}]}, "spec.sharedCounters[0].counters is not an"),
        ({"nodeSelector": []}, "spec.nodeSelector is not an object: []"),
    ],
)
def test_a_field_of_another_shape_is_named_with_its_path(
    changes: dict[str, Any], message: str
) -> None:
    """Whoever wrote the slice finds the place."""
    body = kit.resource_slice(["g0"], node="n1")
    body["spec"] |= changes
    with pytest.raises(wire.BadObjectError, match=re.escape(message)):
        resource_slices.decode(body)
