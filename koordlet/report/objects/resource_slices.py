"""ResourceSlices: the devices that this node offers to resource claims. Pure.

Covers: the slices of one pool, named as the node, and whether those that stand there say the same.
Does not cover: what is offered (``policy.cpu.dra_driver``), writing (``report.slice_row``).

Rules:
1. A pool is one generation: a change of any device raises the generation of all slices.
2. A slice holds at most 128 devices, in their order: a first-fit search takes neighbours.
3. Claims share a device. An amount that a claim does not name is the smallest one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import objects
from koordlet.model import prepared_claim

MANAGED_BY = "app.kubernetes.io/managed-by"
_MOST_DEVICES = 128
_MOST_NAME = 253


def render(node: str, offer: prepared_claim.DeviceOffer) -> list[dict[str, Any]]:
    """The slices, without their generation."""
    devices = [_device(device) for device in offer.devices]
    parts = [devices[at : at + _MOST_DEVICES] for at in range(0, len(devices), _MOST_DEVICES)]
    return [
        {
            "metadata": {
                "name": _name(f"{node}-{offer.driver}-{number}"),
                "labels": {MANAGED_BY: "koordlet"},
            },
            "spec": {
                "driver": offer.driver,
                "nodeName": node,
                "pool": {"name": node, "resourceSliceCount": len(parts)},
                "devices": part,
            },
        }
        for number, part in enumerate(parts)
    ]


def ours(there: objects.Object) -> bool:
    """Whether an agent of this project made a slice."""
    return objects.part(objects.metadata(there), "labels").get(MANAGED_BY) == "koordlet"


def generation(there: Sequence[objects.Object]) -> int:
    """The highest generation of these slices; 0 without any."""
    return max(_generations(there), default=0)


def whole(there: Sequence[objects.Object]) -> bool:
    """Whether these slices are of one generation: a scheduler takes nothing from another pool."""
    return len(_generations(there)) <= 1


def _generations(there: Sequence[objects.Object]) -> set[int]:
    pools = [objects.part(objects.part(body, "spec"), "pool") for body in there]
    return {int(pool.get("generation") or 0) for pool in pools}


def _name(name: str) -> str:
    """A name that is not too long for an object."""
    if len(name) <= _MOST_NAME:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{name[: _MOST_NAME - 17].rstrip('.-')}-{digest}"


def _device(device: prepared_claim.OfferedDevice) -> dict[str, Any]:
    return {
        "name": device.name,
        "attributes": {name: _attribute(value) for name, value in device.attributes.items()},
        "capacity": {name: _capacity(part) for name, part in device.capacity.items()},
        "allowMultipleAllocations": True,
    }


def _attribute(value: prepared_claim.AttributeValue) -> Mapping[str, Any]:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def _capacity(part: prepared_claim.OfferedCapacity) -> Mapping[str, Any]:
    least = str(part.least)
    policy: dict[str, Any] = {"default": least}
    # The server refuses a range without room for one step.
    if part.ranges and part.least + part.step <= part.value:
        policy["validRange"] = {"min": least, "step": str(part.step)}
    else:
        policy["validValues"] = [least]
    return {"value": str(part.value), "requestPolicy": policy}
