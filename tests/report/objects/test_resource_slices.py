"""Slices as a server takes them: whole devices, at most 128 each, amounts with their policies."""

from __future__ import annotations

from typing import Any

from koordlet.kubeapi import validation
from koordlet.model import prepared_claim
from koordlet.report.objects import resource_slices

Capacity = prepared_claim.OfferedCapacity


def device(name: str, **capacity: Capacity) -> prepared_claim.OfferedDevice:
    """One device of a NUMA node."""
    attributes: dict[str, prepared_claim.AttributeValue] = {
        "kind": "cpu",
        "numCPUs": 8,
        "smtEnabled": True,
        "resource.kubernetes.io/numaNode": 0,
    }
    return prepared_claim.OfferedDevice(name=name, attributes=attributes, capacity=capacity)


def rendered(*devices: prepared_claim.OfferedDevice, node: str = "n1") -> list[dict[str, Any]]:
    """The slices, of a valid generation."""
    offer = prepared_claim.DeviceOffer(driver="koordlet.cpu", devices=devices)
    bodies = resource_slices.render(node, offer)
    for body in bodies:
        spec = {**body["spec"], "pool": {**body["spec"]["pool"], "generation": 1}}
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        assert validation.faults({**kind, **body, "spec": spec}) == []
    return bodies


def test_a_device_with_its_attributes_and_amounts() -> None:
    """Whole cores from the smallest on; one group each; a range without room is one value."""
    [body] = rendered(
        device(
            "numa-0",
            cpu=Capacity(value=6, least=2, step=2),
            groups=Capacity(value=3, ranges=False),
            ways=Capacity(value=1, least=0, step=2),
        )
    )

    assert body["spec"] == {
        "driver": "koordlet.cpu",
        "nodeName": "n1",
        "pool": {"name": "n1", "resourceSliceCount": 1},
        "devices": [
            {
                "name": "numa-0",
                "attributes": {
                    "kind": {"string": "cpu"},
                    "numCPUs": {"int": 8},
                    "smtEnabled": {"bool": True},
                    "resource.kubernetes.io/numaNode": {"int": 0},
                },
                "capacity": {
                    "cpu": {
                        "value": "6",
                        "requestPolicy": {
                            "default": "2",
                            "validRange": {"min": "2", "step": "2"},
                        },
                    },
                    "groups": {
                        "value": "3",
                        "requestPolicy": {"default": "1", "validValues": ["1"]},
                    },
                    "ways": {
                        "value": "1",
                        "requestPolicy": {"default": "0", "validValues": ["0"]},
                    },
                },
                "allowMultipleAllocations": True,
            }
        ],
    }


def test_many_devices_are_several_slices_of_one_pool() -> None:
    """300 cores: 128, 128, 44, in order."""
    bodies = rendered(*(device(f"core-{n}", cpu=Capacity(value=1)) for n in range(300)))

    sizes = [len(body["spec"]["devices"]) for body in bodies]
    counts = {body["spec"]["pool"]["resourceSliceCount"] for body in bodies}
    names = {body["metadata"]["name"] for body in bodies}
    assert (sizes, counts, len(names)) == ([128, 128, 44], {3}, 3)


def test_a_long_name_of_a_node_is_cut() -> None:
    """Names of two such nodes differ."""
    names = []
    for last in "ab":
        node = ".".join(["a" * 63] * 3 + ["b" * 58 + last])
        [body] = rendered(device("numa-0", cpu=Capacity(value=1)), node=node)
        names.append(body["metadata"]["name"])

    assert max(map(len, names)) <= 253
    assert len(set(names)) == 2


def test_generations_and_whose_slices_they_are() -> None:
    """The highest of the slices that stand there; others' slices are others'."""
    there = [{"spec": {"pool": {"generation": n}}} for n in (3, 7)]
    [body] = rendered(device("numa-0", cpu=Capacity(value=1)))

    assert (resource_slices.generation(there), resource_slices.generation([])) == (7, 0)
    assert resource_slices.ours(body)
    assert not resource_slices.ours({"metadata": {"name": "other"}})
