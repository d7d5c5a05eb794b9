"""How much of a device a request takes: defaults, rounding, names."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from koordlet.model import quantity
from koordlet.scheduler.claims import consumable_capacity
from koordlet.scheduler.objects import resource_slices
from tests.kit import device_claims as kit


def device(capacity: dict[str, Any], *, shared: bool = True) -> resource_slices.SliceDevice:
    """One device."""
    body = kit.device("d", capacity=capacity, allowMultipleAllocations=shared)
    return resource_slices.decode(kit.resource_slice([body], node="n1")).devices[0]


def taken(asked: str | None, value: str, policy: dict[str, Any] | None) -> Fraction | None:
    """What a request of one capacity takes."""
    capacity = {"m": {"value": value, **({"requestPolicy": policy} if policy else {})}}
    wanted = {} if asked is None else {"m": quantity.exact(asked)}
    share = consumable_capacity.share(device(capacity), wanted)
    return None if share is None else share["m"]


RANGE = {"default": "1", "validRange": {"min": "1", "max": "8", "step": "2"}}
VALUES = {"default": "2", "validValues": ["1", "2", "4"]}
MILLI = {"default": "100m", "validRange": {"min": "100m", "step": "250m"}}


@pytest.mark.parametrize(
    ("asked", "value", "policy", "amount"),
    [
        (None, "10", None, "10"),
        ("3", "10", None, "3"),
        ("11", "10", None, None),
        (None, "10", RANGE, "1"),
        ("500m", "10", RANGE, "1"),
        ("2", "10", RANGE, "3"),
        ("3", "10", RANGE, "3"),
        ("7", "10", RANGE, "7"),
        ("7500m", "10", RANGE, None),
        ("9", "10", RANGE, None),
        (None, "10", VALUES, "2"),
        ("1000m", "10", VALUES, "1"),
        ("3", "10", VALUES, "4"),
        ("5", "10", VALUES, None),
        ("4", "3", VALUES, None),
        (None, "1", MILLI, "100m"),
        ("101m", "1", MILLI, "350m"),
        ("601m", "1", MILLI, "850m"),
        ("851m", "1", MILLI, None),
        # All of it, where the policy has no default and lets a request have all of it.
        (None, "4", {"validRange": {"min": "1"}}, "4"),
        (None, "4", {"validRange": {"min": "1", "max": "2"}}, None),
        (None, "4", {"validValues": ["1", "4"]}, "4"),
        ("0", "4", None, "0"),
        ("-1", "4", None, None),
    ],
)
def test_a_share_is_what_is_asked_rounded_up_as_the_policy_says(
    asked: str | None, value: str, policy: dict[str, Any] | None, amount: str | None
) -> None:
    """In exact fractions; what cannot be had is no share."""
    assert taken(asked, value, policy) == (None if amount is None else quantity.exact(amount))


@pytest.mark.parametrize(
    ("asked", "is_enough"), [({"m": "4"}, True), ({"m": "4001m"}, False), ({"other": "0"}, False)]
)
def test_a_device_that_is_not_shared_is_whole_and_what_is_asked_a_condition(
    asked: dict[str, str], is_enough: bool
) -> None:
    """Nothing of it is counted."""
    wanted = {name: quantity.exact(amount) for name, amount in asked.items()}
    whole = device(kit.capacity(m="4"), shared=False)
    share = consumable_capacity.share(whole, wanted)
    assert share == ({} if is_enough else None)


def test_a_capacity_has_the_name_that_the_driver_has_written() -> None:
    """kube-scheduler compares names as they are: with the driver's domain it is another one."""
    own = f"{kit.DRIVER}/m"
    for listed, other in (("m", own), (own, "m")):
        content = device(kit.capacity(**{listed: "4", "x/m": "8"}))
        much = Fraction(1)
        assert consumable_capacity.share(content, {listed: much}) == {listed: much, "x/m": 8}
        assert consumable_capacity.share(content, {other: much}) is None
        whole = device(kit.capacity(**{listed: "4"}), shared=False)
        assert consumable_capacity.share(whole, {other: much}) is None


def test_shares_fit_while_their_sum_is_at_most_the_device() -> None:
    """What is not named is not taken."""
    content = device(kit.capacity(m="4", n="1"))
    taken = {"m": Fraction(4)}
    assert consumable_capacity.fits(content, taken) is True
    taken["m"] += Fraction(1, 1000)
    assert consumable_capacity.fits(content, taken) is False
