"""Constraints of a claim over the attributes of its devices.

Covers: ``matchAttribute`` and ``distinctAttribute`` over the devices that are chosen so far.
Does not cover: undoing a choice by itself (``allocator`` removes what it has added, last first).

Values are compared with their types: 1, true and "1" differ, and so do two spellings of a version.
A value of a type that is not served is equal to none, and distinct from none: alone it passes.
"""

from __future__ import annotations

from koordlet.scheduler.claims import pools
from koordlet.scheduler.objects import resource_claims, resource_slices

Value = tuple[type, resource_slices.Attribute]


def attribute(device: pools.PoolDevice, name: str) -> Value | None:
    """An attribute by its qualified name; ``None``: it has none."""
    attributes = device.device.attributes
    value = attributes.get(name)
    if value is None:
        domain, _, bare = name.partition("/")
        # Names without a domain are in the driver's own.
        value = attributes.get(bare) if domain == device.id[0] and bare else None
    return None if value is None else (type(value), value)


class ChosenValues:
    """A constraint, and the values of the devices that it has let pass."""

    def __init__(self, constraint: resource_claims.ClaimConstraint) -> None:
        self._distinct = not constraint.match_attribute
        self.name = constraint.match_attribute or constraint.distinct_attribute
        self._values: list[Value] = []

    def admits(self, device: pools.PoolDevice) -> bool:
        """Whether a device may be added."""
        value = attribute(device, self.name)
        if value is None or not self._values:
            return value is not None
        if value[0] is resource_slices.UnreadAttribute:
            return False
        return value not in self._values if self._distinct else value == self._values[0]

    def add(self, device: pools.PoolDevice) -> None:
        """A device that it admits is chosen."""
        value = attribute(device, self.name)
        if value is None:
            raise ValueError(f"{device.id} has no attribute {self.name}")
        self._values.append(value)

    def remove(self) -> None:
        """The device that was added last is chosen no more."""
        self._values.pop()
