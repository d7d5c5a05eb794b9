"""Cache partitions: parts of every cache that only certain classes use. Pure.

Covers: which ways a partition has, a class's range and bandwidth inside of it.
Does not cover: reading the configuration, the groups (``resctrl``).

The model of goresctrl, as an option: partitions never overlap, the classes inside of one may. A
class's percentages are then of its partition, so ``LS`` with 0-100 % has all of the partition's
ways, and none of another's. A class in no partition has its percentages of the whole machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from koordlet.model import resctrl
from koordlet.model.record import dataclass
from koordlet.policy.resctrl import values


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A run of the ways of every cache, in percent, and a share of the bandwidth."""

    name: str
    start: int
    end: int
    #: The most that each class in it may have, in percent.
    bandwidth: int = 100
    classes: frozenset[str] = frozenset()

    def mask(self, cache: resctrl.Cache, start: int, end: int) -> values.Value:
        """A percent range of this partition's ways. Neighbours round alike, so they never meet."""
        first, last = (-(-cache.ways * percent // 100) for percent in (self.start, self.end))
        where = f"partition {self.name} ({last - first} of {cache.ways} ways)"
        if last - first < max(1, cache.min_bits):
            return values.Value(None, f"{where} has fewer ways than a mask needs")
        # The part as a cache of its own, from way 0.
        inner = replace(cache, mask=(1 << (last - first)) - 1)
        value = values.mask(inner, start, end)
        how = f"{value.how}, {where}"
        return values.Value(None if value.number is None else value.number << first, how)

    def percent(self, asked: int) -> int:
        """A percentage of the partition's bandwidth as one of the machine's, rounded up."""
        return -(-asked * self.bandwidth // 100)


def of(partitions: Sequence[Partition], class_name: str) -> Partition | None:
    """The partition of a class."""
    return next((partition for partition in partitions if class_name in partition.classes), None)


def stacked(rows: Iterable[tuple[str, int, int, Sequence[str]]]) -> tuple[Partition, ...]:
    """Partitions from name, percent of the ways, bandwidth and classes, each above the last."""
    found: list[Partition] = []
    end = 0
    for name, ways, bandwidth, classes in rows:
        start, end = end, end + ways
        found.append(
            Partition(
                name=name, start=start, end=end, bandwidth=bandwidth, classes=frozenset(classes)
            )
        )
    return tuple(found)
