"""Subjects of one kind, such as all cgroups, and what was measured of them.

Covers: rates from totals, derived meters, rows and windows, slots that come and go.
Does not cover: reading (``host``), what a policy makes of it. Pure; time is in the readings.

Rules:
1. No rate is negative: a total that falls (a group was made anew, a counter was reset) starts over,
   and that sample is missing.
2. The interval of a rate is the time between the two reads on the monotonic clock, which no one
   sets, and which stands still during suspend as the counters do.
3. Ages count suspend: what was sampled before is older by it.
4. Memory is bounded by the slots in use; a series goes with its subject.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan

from koordlet.history import rows, window
from koordlet.model import counters, meter
from koordlet.model.record import dataclass

#: Seconds of one coarse row, and how many there are: half an hour.
COARSE_SECONDS = 15
COARSE_ROWS = 120
#: A row is due so much before its period is over: ticks are not exact.
_EARLY = 0.25
#: A row stands for no more than so many periods: what lies before was not seen.
_STRETCH = 2.0
#: A value that was not read for so long is not known any more: the slowest turn takes 30 ticks.
_FORGOTTEN = 90.0
#: Clocks are read one after the other, so their difference wavers.
_SUSPEND = 0.1

#: So many lists of subjects are remembered with the slots that they mean, those of fewer never.
_PICKS, _FEW = 16, 8
#: Two reads that are closer than clocks can tell are no interval.
_SHORTEST = 1e-6

_NAN = counters.NAN
_Pick = Callable[["array[float]"], Iterable[float]]


@dataclass(frozen=True, slots=True)
class Samples:
    """Single samples of a meter, oldest first."""

    at: Sequence[float]
    #: For how many seconds before it each sample stands.
    span: Sequence[float]
    #: By subject; NaN where one is missing.
    columns: Mapping[str, array[float]]


class Space:
    """All subjects of one kind. ``depth`` remembers so many times the samples of a meter."""

    def __init__(self, *, depth: int = 1) -> None:
        self._depth = depth
        self._slots: Mapping[str, int] = {}
        self._width = 0
        self._suspended: float | None = None
        #: What is shown: gauges as they are, counters as rates.
        self._shown: dict[meter.Meter, array[float]] = {}
        self._totals: dict[meter.Meter, array[float]] = {}
        #: When a turn of a meter was read last.
        self._read: dict[tuple[meter.Meter, int], float] = {}
        self._at: dict[meter.Meter, float] = {}
        self._kept: dict[meter.Meter, _Kept] = {}
        #: By identity: lists of subjects that were asked for, the slots of then, what takes those.
        self._picks: dict[int, tuple[Sequence[str], Mapping[str, int], _Pick]] = {}
        #: Of a process before this one, until it is known who is in which slot.
        self._past: Mapping[meter.Meter, Samples] = {}

    # Taking --------------------------------------------------------------------------------------

    def take(self, reading: counters.Reading) -> None:
        """Take what was read."""
        self._slept(reading.suspended)
        if reading.width != self._width:
            self._resize(reading.width)
        if reading.renewed:
            self._renew(reading.renewed)
        self._slots = reading.slots
        if self._past:
            self._take_over()
        for batch in reading.batches:
            if batch.meter.counter:
                self._count(batch, reading.at)
            else:
                self._column(self._shown, batch.meter)[batch.start :: batch.step] = batch.values
            self._at[batch.meter] = reading.at
        if reading.batches:
            self._forget(reading.at)
            self._derive(reading.at)
            for kept in self._at:
                # A value that nobody read is shown for a while, but it is no new sample.
                if kept.samples and reading.at - self._at[kept] < kept.period - _EARLY:
                    self._keep(kept, reading.at)

    def samples(self, what: meter.Meter, subjects: Iterable[str] | None = None) -> Samples | None:
        """Samples of a meter, of all subjects or of those named; ``None`` where there are none."""
        kept = self._kept.get(what)
        slots = self._slots
        if subjects is not None:
            slots = {name: slots[name] for name in subjects if name in slots}
        return None if kept is None else kept.samples(slots)

    def recall(self, past: Mapping[meter.Meter, Samples]) -> None:
        """Begin with what a process before this one remembered of those who are still here."""
        self._past = past

    def _take_over(self) -> None:
        for what, samples in self._past.items():
            kept = self._kept[what] = _Kept(what, self._width, self._depth)
            kept.recall(samples, self._slots)
        self._past = {}

    def _forget(self, now: float) -> None:
        for what in [what for what, at in self._at.items() if now - at > _FORGOTTEN]:
            del self._at[what]
            self._shown.pop(what, None)
            self._totals.pop(what, None)

    def _slept(self, suspended: float) -> None:
        if self._suspended is not None and suspended - self._suspended > _SUSPEND:
            for kept in self._kept.values():
                kept.age(suspended - self._suspended)
            for what in self._at:
                self._at[what] -= suspended - self._suspended
        self._suspended = suspended

    def _resize(self, width: int) -> None:
        for columns in (self._shown, self._totals):
            for what, column in columns.items():
                more = width - len(column)
                columns[what] = column[:width] + array("d", [_NAN]) * max(0, more)
        for kept in self._kept.values():
            kept.resize(width)
        self._width = width

    def _renew(self, slots: Iterable[int]) -> None:
        for slot in slots:
            for columns in (self._shown, self._totals):
                for column in columns.values():
                    column[slot] = _NAN
            for kept in self._kept.values():
                kept.clear(slot)

    def _column(self, columns: dict[meter.Meter, array[float]], what: meter.Meter) -> array[float]:
        column = columns.get(what)
        if column is None:
            column = columns[what] = array("d", [_NAN]) * self._width
        return column

    def _count(self, batch: counters.Batch, at: float) -> None:
        """Rule 1: ``new >= old`` is false for a total that fell, and for what is missing."""
        totals = self._column(self._totals, batch.meter)
        key = (batch.meter, batch.start)
        elapsed = at - self._read.get(key, at)
        if elapsed >= _SHORTEST:
            old = totals[batch.start :: batch.step]
            per = 1.0 / elapsed
            rates = [
                (b - a) * per if b >= a else _NAN for a, b in zip(old, batch.values, strict=True)
            ]
            self._column(self._shown, batch.meter)[batch.start :: batch.step] = array("d", rates)
        totals[batch.start :: batch.step] = batch.values
        self._read[key] = at

    def _derive(self, at: float) -> None:
        shown = self._shown
        if self._at.get(meter.MEMORY) == at and meter.MEMORY_INACTIVE_FILE in shown:
            # What is missing stays so: NaN is not below zero. max() would take twice as long.
            less = map(operator.sub, shown[meter.MEMORY], shown[meter.MEMORY_INACTIVE_FILE])
            shown[meter.WORKING_SET] = array("d", [0.0 if slot < 0 else slot for slot in less])
            self._at[meter.WORKING_SET] = at
        if self._at.get(meter.PERIODS) == at and meter.PERIODS in shown:
            both = zip(shown[meter.PERIODS], shown[meter.THROTTLED_PERIODS], strict=True)
            ratios = [some / every if every else every for every, some in both]
            shown[meter.THROTTLED] = array("d", ratios)
            self._at[meter.THROTTLED] = at

    def _keep(self, what: meter.Meter, at: float) -> None:
        kept = self._kept.get(what)
        if kept is None:
            kept = self._kept[what] = _Kept(what, self._width, self._depth)
        column = self._shown.get(what)
        if column is not None:
            kept.take(at, column)

    # Asking --------------------------------------------------------------------------------------

    def table(self) -> counters.Table:
        """All newest values, as they are now."""
        return counters.Table(
            slots=self._slots,
            columns={what: column[:] for what, column in self._shown.items()},
            totals={what: column[:] for what, column in self._totals.items()},
        )

    def last(self, subject: str, what: meter.Meter) -> float | None:
        """The newest value; ``None`` where it is not known."""
        return self._value(subject, self._shown.get(what))

    def recent(self, subject: str, what: meter.Meter, now: float, seconds: float) -> float | None:
        """The newest value; ``None`` where it is not known, or was read before that."""
        age = self.age(what, now)
        return None if age is None or age > seconds else self.last(subject, what)

    def total(self, subject: str, what: meter.Meter) -> float | None:
        """The newest total of a counter, in the unit of its rate times seconds."""
        return self._value(subject, self._totals.get(what))

    def _value(self, subject: str, column: array[float] | None) -> float | None:
        slot = self._slots.get(subject)
        value = _NAN if slot is None or column is None else column[slot]
        return None if isnan(value) else value

    def lasts(self, subjects: Sequence[str], what: meter.Meter) -> list[float | None]:
        """The newest value of each of many, fastest where the list is the object of before.

        Nobody changes a list that was asked for.
        """
        return self._each(subjects, self._shown.get(what))

    def totals(self, subjects: Sequence[str], what: meter.Meter) -> list[float | None]:
        """The newest total of each of many."""
        return self._each(subjects, self._totals.get(what))

    def _each(self, subjects: Sequence[str], column: array[float] | None) -> list[float | None]:
        if column is None:
            return [None] * len(subjects)
        values = self._pick(subjects)(column)
        return [None if isnan(value) else value for value in values]

    def _pick(self, subjects: Sequence[str]) -> _Pick:
        """What takes the values of these subjects from a column, in their order."""
        key = id(subjects)
        known = self._picks.get(key)
        if known is not None and known[0] is subjects and known[1] is self._slots:
            return known[2]
        slots = [self._slots.get(subject) for subject in subjects]
        there = [slot for slot in slots if slot is not None]
        if len(there) < len(slots) or len(there) < _FEW:
            return lambda column: [_NAN if slot is None else column[slot] for slot in slots]
        pick = operator.itemgetter(*there)
        if len(self._picks) >= _PICKS:
            self._picks.clear()
        self._picks[key] = subjects, self._slots, pick
        return pick

    def age(self, what: meter.Meter, now: float) -> float | None:
        """Seconds since the meter was read; ``None`` before the first time."""
        at = self._at.get(what)
        return None if at is None else now - at

    def window(
        self, subject: str, what: meter.Meter, now: float, seconds: float
    ) -> window.Window | None:
        """The samples of the last ``seconds``; ``None`` while less than half of it is covered.

        Beyond what is remembered one by one, samples are averages of 15 seconds. Cost: 20 µs.
        """
        slot, kept = self._slots.get(subject), self._kept.get(what)
        return None if slot is None or kept is None else kept.window(slot, now, seconds)

    def column(self, what: meter.Meter) -> Sequence[float]:
        """The newest values by slot, to be looked at and not to be kept."""
        return self._column(self._shown, what)

    @property
    def subjects(self) -> Mapping[str, int]:
        """The subjects, each with its slot."""
        return self._slots


class _Kept:
    """Rows of one meter."""

    def __init__(self, what: meter.Meter, width: int, depth: int) -> None:
        self._period = what.period
        self._fine = rows.Rows(what.samples * depth, width)
        self._coarse = what.coarse and depth == 1
        self._averages = rows.Rows(COARSE_ROWS if self._coarse else 1, width)
        self._since: float | None = None

    def _all(self) -> tuple[rows.Rows, ...]:
        return self._fine, self._averages

    def resize(self, width: int) -> None:
        for kept in self._all():
            kept.resize(width)

    def clear(self, slot: int) -> None:
        for kept in self._all():
            kept.clear(slot)

    def samples(self, slots: Mapping[str, int]) -> Samples:
        at, span, columns = self._fine.saved(list(slots.values()))
        return Samples(at, span, dict(zip(slots, columns, strict=True)))

    def recall(self, samples: Samples, slots: Mapping[str, int]) -> None:
        several = samples.columns.items()
        columns = {slots[name]: column for name, column in several if name in slots}
        self._fine.recall(samples.at, samples.span, columns)

    def age(self, seconds: float) -> None:
        for kept in self._all():
            kept.age(seconds)
        if self._since is not None:
            self._since -= seconds

    def take(self, at: float, column: array[float]) -> None:
        elapsed = at - self._fine.newest
        if elapsed < self._period - _EARLY:
            return
        # The first row stands for one period: before it nobody looked.
        span = min(elapsed, self._period * (_STRETCH if elapsed < math.inf else 1.0))
        self._fine.append(at, span, column)
        if self._since is None:
            self._since = at - self._period
        if self._coarse and at - self._since >= COARSE_SECONDS - _EARLY:
            taken, covered = self._fine.tail(max(self._since, at - 2 * COARSE_SECONDS))
            self._averages.append(at, covered, rows.means(taken))
            self._since = at

    def window(self, slot: int, now: float, seconds: float) -> window.Window | None:
        after = now - seconds
        short = seconds <= self._fine.length * self._period
        kept = self._fine if short or not self._coarse else self._averages
        return window.make(*kept.samples(slot, after), seconds)
