"""Constraints over attributes: values with their types, names with and without the domain."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.claims import allocator
from tests.kit import device_claims as kit
from tests.kit.claim_search import chosen

NAME = f"{kit.DRIVER}/a"


def pair(*values: Any) -> list[dict[str, Any]]:
    """A node with a device for each value of attribute ``a``."""
    devices = [kit.device(f"g{n}", {"a": value}) for n, value in enumerate(values)]
    return [kit.resource_slice(devices, node="n1")]


VERSION, LIST = {"version": "1.0.0"}, {"strings": ["x"]}


@pytest.mark.parametrize(
    ("values", "are_equal"),
    [
        ((1, 1), True),
        ((1, 2), False),
        ((1, True), False),
        ((0, False), False),
        ((1, "1"), False),
        (("x", "x"), True),
        ((False, False), True),
        ((VERSION, VERSION), True),
        ((VERSION, "1.0.0"), False),
        ((VERSION, {"version": "1.0.0+b"}), False),
    ],
)
def test_values_are_compared_with_their_types(values: Any, are_equal: bool) -> None:
    """What matches is not distinct, and the other way round."""
    for constraint, fits in (("matchAttribute", are_equal), ("distinctAttribute", not are_equal)):
        claim = kit.claim(kit.request(count=2), constraints=[{constraint: NAME}])
        assert (chosen(pair(*values), claim) != allocator.NO_SOLUTION) is fits, constraint


@pytest.mark.parametrize("constraint", ["matchAttribute", "distinctAttribute"])
def test_a_device_without_the_attribute_satisfies_no_constraint(constraint: str) -> None:
    """Also where it would be the only device."""
    claim = kit.claim(kit.request(), constraints=[{constraint: NAME}])
    slices = [kit.resource_slice(["g0"], node="n1")]
    assert chosen(slices, claim) == allocator.NO_SOLUTION


@pytest.mark.parametrize(
    ("constraint", "values", "devices"),
    [
        ("matchAttribute", (LIST, LIST), ["r:g0"]),
        ("distinctAttribute", (LIST, LIST), ["r:g0"]),
        ("matchAttribute", (LIST, LIST), None),
        ("matchAttribute", (LIST, 1), None),
        ("matchAttribute", (1, LIST, 1), ["r:g0", "r:g2"]),
        ("distinctAttribute", (LIST, LIST), None),
        ("distinctAttribute", (1, LIST), None),
        ("distinctAttribute", (LIST, 1), ["r:g0", "r:g1"]),
    ],
)
def test_a_value_that_is_not_served_may_be_the_first_and_equals_nothing(
    constraint: str, values: Any, devices: list[str] | None
) -> None:
    """As kube-scheduler has it where no selector is asked about the device."""
    count = 2 if devices is None else len(devices)
    claim = kit.claim(kit.request(count=count), constraints=[{constraint: NAME}])
    assert chosen(pair(*values), claim) == ([devices] if devices else allocator.NO_SOLUTION)


@pytest.mark.parametrize(
    ("written", "asked", "is_found"),
    [("a", NAME, True), (NAME, NAME, True), ("other/a", NAME, False), ("a", "other/a", False)],
)
def test_an_attribute_without_a_domain_is_in_that_of_its_driver(
    written: str, asked: str, is_found: bool
) -> None:
    """The name with its domain comes first."""
    slices = [kit.resource_slice([kit.device("g0", {written: 1})], node="n1")]
    claim = kit.claim(kit.request(), constraints=[{"matchAttribute": asked}])
    assert (chosen(slices, claim) != allocator.NO_SOLUTION) is is_found


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        ([], allocator.NO_SOLUTION),
        (["r", "s"], allocator.NO_SOLUTION),
        (["r/x", "s"], [["r/y:g0", "s:g1"]]),
        (["r"], [["r/x:g0", "s:g1"]]),
    ],
)
def test_a_constraint_covers_its_requests_and_all_that_are_under_them(
    requests: list[str], devices: object
) -> None:
    """None named: all of the claim. A wish that is named alone leaves the others free."""
    claim = kit.claim(
        kit.first_available("r", kit.wish("x"), kit.wish("y")),
        kit.request("s"),
        constraints=[{"requests": requests, "matchAttribute": NAME}],
    )
    assert chosen(pair(1, 2), claim) == devices


def test_distinct_values_are_kept_of_each_device_and_not_of_each_request() -> None:
    """Two devices of one request must differ; a share counts as its device."""
    claim = kit.claim(kit.request(count=3), constraints=[{"distinctAttribute": NAME}])
    assert chosen(pair(1, 1, 2, 3), claim) == [["r:g0", "r:g2", "r:g3"]]
    assert chosen(pair(1, 2, 1, 3), claim) == [["r:g0", "r:g1", "r:g3"]]
    shared = [
        kit.device(name, {"a": name}, allowMultipleAllocations=True, capacity=kit.capacity(m="2"))
        for name in ("g0", "g1")
    ]
    two = [kit.request(name, capacity={"requests": {"m": "1"}}) for name in "rs"]
    slices = [kit.resource_slice(shared, node="n1")]
    for constraint, devices in (
        ({"distinctAttribute": NAME}, ["r:g0", "s:g1"]),
        ({"matchAttribute": NAME}, ["r:g0", "s:g0"]),
    ):
        assert chosen(slices, kit.claim(*two, constraints=[constraint])) == [devices]
