"""Conversion of percentages to cache masks and bandwidths. Pure.

Covers: percent ranges as contiguous ways, percent as Intel's steps, as MiB/s and as AMD's units,
what a percentage of AMD's bandwidth refers to; partitions: parts of every cache that only certain
classes use. Does not cover: who asks for what (``resctrl``).

Rules:
1. Ways are cut as the peers cut them: both ends of the range are rounded up, so 10-50 % of 11 ways
   is ``03c``. A range that comes out empty is refused; one that is narrower than the hardware
   allows is widened, and said to be.
2. 100 % is no limit: the value that a fresh group has. What a smaller percentage refers to is told
   with every value: configured, else derived from the machine's memory, else the peer's 160 units.
3. ``peer`` gives Koordinator's own numbers: tens on Intel whatever the machine's steps are, and 160
   units on every AMD machine.
4. Partitions never overlap, as in goresctrl; the classes inside of one may. A class's percentages
   are then of its partition, so ``LS`` with 0-100 % has all of the partition's ways, and none of
   another's. A class in no partition has its percentages of the whole machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from koordlet.model import resctrl
from koordlet.model.record import dataclass

#: Eighths of GB/s of one L3 domain of one AMD model (25 GB/s x 8 x 0.8): the peer's constant.
PEER_UNITS = 160
_PEER_STEP = 10
_MIB_PER_GB = 1_000_000_000 / (1 << 20)


@dataclass(frozen=True, slots=True)
class Value:
    """A value to write and its derivation, or the reason that there is none."""

    number: int | None
    how: str


@dataclass(frozen=True, slots=True)
class Reference:
    """What 100 % of a domain's bandwidth amounts to, in GB/s, and where that comes from."""

    gigabytes: float
    origin: str


def reference(
    configured: float | None, memory: float | None, domains: int, *, peer: bool
) -> Reference:
    """The reference bandwidth of one domain."""
    if not peer and configured is not None:
        return Reference(configured, "configured")
    if not peer and memory is not None and domains:
        return Reference(memory / domains, f"{memory:g} GB/s of memory over {domains} domains")
    return Reference(PEER_UNITS / 8, "the peer's 160 units")


def mask(cache: resctrl.Cache, start: int, end: int) -> Value:
    """The mask of a percent range of the ways."""
    if not 0 <= start < end <= 100:
        return Value(None, f"the range {start}-{end} % is not within 0-100, first below last")
    first, last = _up(cache.ways * start, 100), _up(cache.ways * end, 100)
    how = f"{start}-{end} % of {cache.ways} ways"
    if first == last:
        return Value(None, f"{how} is not one whole way")
    least = max(1, cache.min_bits)
    if last - first < least:
        how += f", widened to {least} ways"
        last = min(cache.ways, first + least)
        first = max(0, last - least)
    return Value((1 << last) - (1 << first), how)


def top(cache: resctrl.Cache, count: int, taken: int) -> Value:
    """The mask of the highest free ways, with at least one way left below."""
    count = max(count, 1, cache.min_bits)
    last = cache.ways
    while last and taken >> (last - 1) & 1:
        last -= 1
    if count >= last:
        return Value(None, f"{count} ways of {cache.ways}: none would be left for others")
    return Value((1 << last) - (1 << (last - count)), f"{count} ways of {cache.ways} alone")


def without(value: int, taken: int) -> int:
    """The longest contiguous run of a mask without taken ways; the lowest of equal runs."""
    best, free = 0, value & ~taken
    while free:
        low = free & -free
        run = free & ~(free + low)
        best = run if run.bit_count() > best.bit_count() else best
        free &= ~run
    return best


def bandwidth(
    resource: resctrl.Bandwidth,
    domain: int,
    percent: int,
    against: Reference,
    *,
    peer: bool = False,
) -> Value:
    """The value of a percentage of a domain's bandwidth."""
    if not 0 < percent <= 100:
        return Value(None, f"{percent} % is not within 1-100")
    if percent == 100:
        return Value(resource.free(domain), "no limit")
    if resource.unit is resctrl.Unit.PERCENT:
        step = _PEER_STEP if peer else resource.gran
        # The kernel rounds up too, and takes nothing above 100.
        value = max(_up(percent, step) * step, resource.minimum)
        return Value(min(100, value), f"{percent} % in steps of {step}")
    if resource.unit is resctrl.Unit.MBPS:
        rate = int(against.gigabytes * _MIB_PER_GB * percent / 100)
        return Value(max(1, rate), f"{percent} % of {against.gigabytes:g} GB/s ({against.origin})")
    units = int(percent * against.gigabytes * 8 / 100)
    units = min(max(resource.minimum, 1, units), resource.free(domain))
    return Value(units, f"{percent} % of {against.gigabytes:g} GB/s ({against.origin})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A run of the ways of every cache, in percent, and a share of the bandwidth."""

    name: str
    start: int
    end: int
    #: The most that each class in it may have, in percent.
    bandwidth: int = 100
    classes: frozenset[str] = frozenset()

    def mask(self, cache: resctrl.Cache, start: int, end: int) -> Value:
        """A percent range of this partition's ways. Neighbours round alike, so they never meet."""
        first, last = (-(-cache.ways * percent // 100) for percent in (self.start, self.end))
        where = f"partition {self.name} ({last - first} of {cache.ways} ways)"
        if last - first < max(1, cache.min_bits):
            return Value(None, f"{where} has fewer ways than a mask needs")
        # The part as a cache of its own, from way 0.
        inner = replace(cache, mask=(1 << (last - first)) - 1)
        value = mask(inner, start, end)
        how = f"{value.how}, {where}"
        return Value(None if value.number is None else value.number << first, how)

    def percent(self, asked: int) -> int:
        """A percentage of the partition's bandwidth as one of the machine's, rounded up."""
        return -(-asked * self.bandwidth // 100)


def partition_of(partitions: Sequence[Partition], class_name: str) -> Partition | None:
    """The partition of a class."""
    return next((partition for partition in partitions if class_name in partition.classes), None)


def stacked(rows: Iterable[tuple[str, int, int, Sequence[str]]]) -> tuple[Partition, ...]:
    """Partitions from name, percent of the ways, bandwidth and classes, each above the last."""
    stack: list[Partition] = []
    end = 0
    for name, ways, bandwidth, classes in rows:
        start, end = end, end + ways
        stack.append(
            Partition(
                name=name, start=start, end=end, bandwidth=bandwidth, classes=frozenset(classes)
            )
        )
    return tuple(stack)


def _up(value: int, by: int) -> int:
    return -(-value // by)
