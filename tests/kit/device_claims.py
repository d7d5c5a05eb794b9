"""Builds objects of ``resource.k8s.io/v1`` as JSON, with as few words as a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.scheduler.objects import resource_claims

DRIVER = "gpu.example"
#: Fields of the JSON that a driver's values have, by their Python type.
_KINDS: tuple[tuple[type, str], ...] = ((bool, "bool"), (int, "int"), (str, "string"))


def attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by their values; what is an object already stays."""
    made = {}
    for name, value in values.items():
        kind = next((kind for of, kind in _KINDS if isinstance(value, of)), None)
        made[name] = value if kind is None else {kind: value}
    return made


def device(name: str, values: Mapping[str, Any] | None = None, /, **fields: Any) -> dict[str, Any]:
    """One device."""
    return {"name": name, "attributes": attributes(values or {}), **fields}


def capacity(**amounts: str) -> dict[str, Any]:
    """Capacities without a policy."""
    return {name: {"value": amount} for name, amount in amounts.items()}


def consumes(counter_set: str = "set", /, **counters: str) -> list[dict[str, Any]]:
    """What a device takes of one counter set."""
    return [{"counterSet": counter_set, "counters": capacity(**counters)}]


def resource_slice(
    devices: Sequence[Mapping[str, Any] | str] = (),
    *,
    name: str = "",
    driver: str = DRIVER,
    pool: str = "",
    node: str = "",
    generation: int = 1,
    count: int = 1,
    **fields: Any,
) -> dict[str, Any]:
    """A slice of a node's own pool, unless the fields say what else it is."""
    pool = pool or node or "pool"
    listed = [device(each) if isinstance(each, str) else dict(each) for each in devices]
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        **({"nodeName": node} if node else {}),
        **({"devices": listed} if devices else {}),
        **fields,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"{driver}-{pool}-{generation}"},
        "spec": spec,
    }


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> dict[str, Any]:
    """A class of these selectors."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {**_selectors(expressions), **spec},
    }


def wish(
    name: str = "r", *expressions: str, device_class: str = "gpu", **fields: Any
) -> dict[str, Any]:
    """A subrequest."""
    return {"name": name, "deviceClassName": device_class, **_selectors(expressions), **fields}


def request(
    name: str = "r", *expressions: str, device_class: str = "gpu", **fields: Any
) -> dict[str, Any]:
    """A request of exactly one kind."""
    exactly = wish(name, *expressions, device_class=device_class, **fields)
    return {"name": exactly.pop("name"), "exactly": exactly}


def first_available(name: str, *wishes: Mapping[str, Any]) -> dict[str, Any]:
    """A request with several wishes."""
    return {"name": name, "firstAvailable": list(wishes)}


def claim(
    *requests: Mapping[str, Any],
    name: str = "c",
    namespace: str = "d",
    status: Mapping[str, Any] | None = None,
    **devices: Any,
) -> dict[str, Any]:
    """A claim; ``devices``: constraints and config."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": list(requests), **devices}},
        **({"status": status} if status else {}),
    }


def _selectors(expressions: Sequence[str]) -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"selectors": selectors} if selectors else {}


def held(device: str, **fields: Any) -> resource_claims.ClaimAllocation:
    """A claim that has one device of pool p."""
    result = {"request": "r", "driver": DRIVER, "pool": "p", "device": device, **fields}
    status = {"allocation": {"devices": {"results": [result]}}}
    allocation = resource_claims.decode(claim(status=status)).allocation
    assert allocation is not None
    return allocation
