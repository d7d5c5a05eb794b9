"""Which devices claims have, in the whole cluster.

Covers: whole devices, shares of shared ones, what is left of a pool's counters; which
pools changed. Does not cover: choosing (``allocator``).

Admin access marks nothing: such results are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar

from koordlet.scheduler.claims import pools
from koordlet.scheduler.cluster import vectors
from koordlet.scheduler.objects import resource_claims

_Key = TypeVar("_Key")
_NOTHING: Mapping[str, Fraction] = {}


class DevicesInUse:
    """Devices by their ids; a device that two claims have is free when both are gone."""

    def __init__(self) -> None:
        self.whole: Counter[pools.DeviceId] = Counter()
        #: How many shares there are of a device, and how much of it they consume.
        self.shares: Counter[pools.DeviceId] = Counter()
        self._consumed: dict[pools.DeviceId, dict[str, Fraction]] = {}
        self._names: dict[pools.PoolKey, Counter[str]] = {}
        #: Pools of which something was taken or given back.
        self.changes: vectors.ChangeLog[pools.PoolKey] = vectors.ChangeLog()

    def add(self, allocation: resource_claims.ClaimAllocation) -> None:
        """A claim has these."""
        self._change(allocation, 1)

    def remove(self, allocation: resource_claims.ClaimAllocation) -> None:
        """A claim that was added has these no more."""
        self._change(allocation, -1)

    def excludes(self, device: pools.PoolDevice) -> bool:
        """Whether nobody else may have a device: one has it whole, or it is shared no more."""
        if device.id in self.whole:
            return True
        return device.id in self.shares and not device.device.allow_multiple_allocations

    def consumed(self, device: pools.DeviceId) -> Mapping[str, Fraction]:
        """What shares take of a device's capacities, by name."""
        return self._consumed.get(device, _NOTHING)

    def free_counters(self, pool: pools.PoolView) -> dict[tuple[str, str], Fraction]:
        """What is left of a pool's counters; devices that are gone consume nothing."""
        left = dict(pool.counters)
        for name in self._names.get(pool.key, ()) if left else ():
            for counter, amount in pool.consumers.get(name, {}).items():
                left[counter] -= amount
        return left

    def _change(self, allocation: resource_claims.ClaimAllocation, sign: int) -> None:
        for result in allocation.devices:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            shared = bool(result.share_id) or result.consumed is not None
            _count(self.shares if shared else self.whole, device, sign)
            self._count_name(device, sign)
            self.changes.append(device[:2])
            if result.consumed:
                self._consume(device, result.consumed, sign)

    def _count_name(self, device: pools.DeviceId, sign: int) -> None:
        names = self._names.get(device[:2])
        if names is None:
            names = self._names[device[:2]] = Counter()
        _count(names, device[2], sign)
        if not names:
            del self._names[device[:2]]

    def _consume(self, device: pools.DeviceId, consumed: Mapping[str, Fraction], sign: int) -> None:
        if device not in self.shares:
            self._consumed.pop(device, None)
            return
        amounts = self._consumed.setdefault(device, {})
        for name, amount in consumed.items():
            amounts[name] = amounts.get(name, Fraction(0)) + sign * amount


def _count(counter: Counter[_Key], key: _Key, sign: int) -> None:
    number = counter.get(key, 0) + sign
    if number:
        counter[key] = number
    else:
        del counter[key]
