"""Claims that are looked for on one node: what each gets of it, or why not.

Covers: devices and classes of two kinds, one search.
Does not cover: what must be chosen (the tests).
"""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.claims import allocator, demand, devices_in_use, pools, results, search_time
from koordlet.scheduler.objects import (
    device_classes,
    resource_claims,
    resource_slices,
)
from tests.kit import device_claims as kit

Body = dict[str, Any]
GPU = kit.device_class("gpu", "gpu")
NIC = kit.device_class("nic", "nic")
ENDLESS = search_time.SearchTime(lambda: 0.0)


class Kind:
    """Devices of one kind; ``memory>N`` compares a capacity, ``bad`` fails."""

    def __init__(self, expression: str) -> None:
        if expression == "uncompiled":
            raise ValueError("undeclared reference to 'uncompiled'")
        self._expression = expression

    def matches(self, device: resource_slices.SliceDevice, _driver: str) -> bool:
        if self._expression == "bad":
            raise ValueError("no such key: bad")
        if self._expression.startswith("memory>"):
            return device.capacity["memory"].value > int(self._expression[7:])
        return device.attributes.get("kind", "gpu") == self._expression


def solve(
    slices: list[Body],
    *claims: Body,
    held: tuple[Body, ...] = (),
    classes: tuple[Body, ...] = (GPU, NIC),
    time: search_time.SearchTime | None = None,
) -> list[resource_claims.ClaimAllocation] | str:
    """By claim what it gets on node n1, or why not."""
    book = pools.PoolBook()
    for piece in slices:
        book.put(resource_slices.decode(piece))
    in_use = devices_in_use.DevicesInUse()
    status = {"allocation": {"devices": {"results": list(held)}}}
    others = resource_claims.decode(kit.claim(status=status)).allocation
    assert others is not None
    in_use.add(others)
    known = {(made := device_classes.decode(body)).name: made for body in classes}
    wanted = demand.prepare([resource_claims.decode(claim) for claim in claims], known, Kind)
    solution = allocator.search(wanted, book.view("n1", {}), in_use, time or ENDLESS)
    if solution.why_not:
        return solution.why_not
    return list(results.allocations(wanted, solution, "n1", lambda: "share"))


def chosen(*given: Any, **more: Any) -> list[list[str]] | str:
    """By claim requests and devices, ``r:g0``; or why not."""
    made = solve(*given, **more)
    if isinstance(made, str):
        return made
    return [
        [f"{allocated.request}:{allocated.device}" for allocated in claim.devices] for claim in made
    ]


def gpus(number: int, **fields: Any) -> list[Body]:
    """A node with so many equal devices."""
    return [kit.resource_slice([kit.device(f"g{n}", **fields) for n in range(number)], node="n1")]


def used(device: str, **fields: Any) -> Body:
    """What another claim has of the node."""
    return {"request": "q", "driver": kit.DRIVER, "pool": "n1", "device": device, **fields}
