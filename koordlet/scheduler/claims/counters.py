"""Counters of pools while devices are chosen.

Covers: what is left, taking and giving back. Does not cover: what claims have
(``devices_in_use``). Each pool is read when a device of it first asks.
"""

from __future__ import annotations

from fractions import Fraction

from koordlet.scheduler.claims import devices_in_use, pools


class CounterRoom:
    """What is left of the counters of a node's pools."""

    def __init__(self, in_use: devices_in_use.DevicesInUse) -> None:
        self._in_use = in_use
        self._left: dict[pools.PoolKey, dict[tuple[str, str], Fraction]] = {}

    def fits(self, pool: pools.PoolView, device: pools.PoolDevice) -> bool:
        """Whether everything that a device consumes is there."""
        left = self._of(pool)
        return all(amount <= left[counter] for counter, amount in device.consumes.items())

    def take(self, pool: pools.PoolView, device: pools.PoolDevice) -> None:
        """A device is chosen."""
        left = self._of(pool)
        for counter, amount in device.consumes.items():
            left[counter] -= amount

    def give_back(self, pool: pools.PoolView, device: pools.PoolDevice) -> None:
        """A device is chosen no more."""
        left = self._of(pool)
        for counter, amount in device.consumes.items():
            left[counter] += amount

    def _of(self, pool: pools.PoolView) -> dict[tuple[str, str], Fraction]:
        left = self._left.get(pool.key)
        if left is None:
            left = self._left[pool.key] = self._in_use.free_counters(pool)
        return left
