"""Readings of meters, and what is known now: values in columns, one slot for each subject.

Covers: what ``host`` hands to ``history`` (``Reading``), what ``history`` hands on (``Table``).
Does not cover: reading, rates, windows.

750 groups with 40 meters are 40 arrays, not 30 000 objects: a tick moves whole columns. A missing
value is NaN inside a column and ``None`` outside.

Rules:
1. Columns that were handed over are not changed any more, by neither side.
2. A slot belongs to one subject until a reading names it in ``renewed``.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from koordlet.model import meter
from koordlet.model.record import dataclass

NAN = math.nan
_NONE = array("d")


@dataclass(frozen=True, slots=True)
class Batch:
    """One meter, read for every ``step``-th slot from ``start`` on."""

    meter: meter.Meter
    start: int
    step: int
    values: array[float]

    def changed(self, where: Iterable[int], values: Iterable[float]) -> Batch:
        """A copy with other values in some places."""
        column = self.values[:]
        for at, value in zip(where, values, strict=True):
            column[at] = value
        return Batch(self.meter, self.start, self.step, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Readings of subjects of one kind at one moment."""

    #: Monotonic seconds, which stand still while the machine is suspended.
    at: float
    #: Seconds that the machine was suspended since boot.
    suspended: float
    #: Subject to slot. The same object while subjects neither came nor went.
    slots: Mapping[str, int]
    #: Slots that have another subject than at the last reading.
    renewed: tuple[int, ...] = ()
    width: int
    batches: tuple[Batch, ...] = ()

    @classmethod
    def of(
        cls,
        at: float,
        suspended: float,
        slots: Mapping[str, int],
        columns: Mapping[meter.Meter, array[float]],
        *,
        width: int,
        renewed: Iterable[int] = (),
        start: int = 0,
        step: int = 1,
    ) -> Reading:
        """A reading of these columns, each of every ``step``-th slot from ``start`` on."""
        return cls(
            at=at,
            suspended=suspended,
            slots=slots,
            renewed=tuple(renewed),
            width=width,
            batches=tuple(Batch(what, start, step, column) for what, column in columns.items()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The newest values of subjects of one kind."""

    slots: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[meter.Meter, array[float]] = field(default_factory=dict)
    #: Growing totals of the meters that are counters, in the unit of the rate times seconds.
    totals: Mapping[meter.Meter, array[float]] = field(default_factory=dict)

    def growing(self) -> Table:
        """The table of the totals."""
        return Table(slots=self.slots, columns=self.totals)

    def value(self, subject: str, what: meter.Meter) -> float | None:
        """One value; ``None`` where it is not known."""
        slot, column = self.slots.get(subject), self.columns.get(what)
        if slot is None or column is None or slot >= len(column):
            return None
        amount = column[slot]
        return None if math.isnan(amount) else amount

    def column(self, subjects: Sequence[str], what: meter.Meter) -> list[float]:
        """Value of each subject; ``NAN`` where it is not known."""
        column, get = self.columns.get(what, _NONE), self.slots.get
        end = len(column)
        return [column[slot] if (slot := get(subject, end)) < end else NAN for subject in subjects]

    def values(self, what: meter.Meter) -> Iterator[tuple[str, float]]:
        """Every known value of a meter."""
        column = self.columns.get(what, _NONE)
        for subject, slot in self.slots.items():
            amount = column[slot] if slot < len(column) else NAN
            if not math.isnan(amount):
                yield subject, amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Current use of the machine and of all that runs on it."""

    #: By cgroup path.
    groups: Table = field(default_factory=Table)
    #: One subject, the empty name.
    node: Table = field(default_factory=Table)
    #: By CPU number, as text.
    cpus: Table = field(default_factory=Table)
    #: By NUMA node number, as text.
    numa: Table = field(default_factory=Table)
    #: By network interface.
    links: Table = field(default_factory=Table)
    #: By mount point or directory.
    disks: Table = field(default_factory=Table)
    #: By class of workloads, and the system.
    shares: Table = field(default_factory=Table)
    #: By cgroup path: cycles and instructions, where they are counted.
    work: Table = field(default_factory=Table)
    #: By cgroup path of workloads that have a network of their own.
    traffic: Table = field(default_factory=Table)
