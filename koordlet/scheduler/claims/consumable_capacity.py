"""How much of a device's capacities a request takes.

Covers: what a request names, defaults, rounding by a policy. Does not cover: what others have of
the device (``devices_in_use``). Everything is exact: 1000m is 1, and steps may be fractions.

A capacity is named as the driver has written it, with a domain or without: unlike an attribute, it
is not found by its other name, as kube-scheduler does not find it either.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from koordlet.scheduler.objects.resource_slices import (
    CapacityPolicy,
    DeviceCapacity,
    SliceDevice,
)

Asked = Mapping[str, Fraction] | None


def share(device: SliceDevice, asked: Asked) -> dict[str, Fraction] | None:
    """By name what a request takes; ``None``: the device cannot serve it.

    A device that is not shared is taken whole: what is asked is a condition.
    """
    capacities, wanted = device.capacity, asked or {}
    if any(name not in capacities or amount < 0 for name, amount in wanted.items()):
        return None
    if not device.allow_multiple_allocations:
        fits = all(capacities[name].value >= amount for name, amount in wanted.items())
        return {} if fits else None
    taken = {}
    for name, capacity in capacities.items():
        amount = _taken(wanted.get(name), capacity)
        if amount is None or amount > capacity.value:
            return None
        taken[name] = amount
    return taken


def fits(device: SliceDevice, taken: Mapping[str, Fraction]) -> bool:
    """Whether so much in all is there."""
    return all(taken.get(name, 0) <= capacity.value for name, capacity in device.capacity.items())


def _taken(asked: Fraction | None, capacity: DeviceCapacity) -> Fraction | None:
    policy = capacity.policy
    if policy is None:
        return capacity.value if asked is None else asked
    if asked is None and policy.default is not None:
        return policy.default
    if asked is not None:
        return _rounded(asked, policy)
    # All of it, where the policy lets a request have all of it.
    return capacity.value if _rounded(capacity.value, policy) == capacity.value else None


def _rounded(asked: Fraction, policy: CapacityPolicy) -> Fraction | None:
    """The least amount that a policy allows and that is enough."""
    if policy.values:
        return next((value for value in policy.values if value >= asked), None)
    least = Fraction(0) if policy.least is None else policy.least
    amount = max(asked, least)
    if policy.step is not None and policy.step > 0:
        amount = least - (least - amount) // policy.step * policy.step
    return None if policy.most is not None and amount > policy.most else amount
