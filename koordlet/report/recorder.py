"""What the agent remembers for people: an hour in seconds, a day in minutes, and marks.

Covers: which series there are, when a row is taken, the workloads that are recorded.
Does not cover: the memory (``history.timeline``), the document (``history_json``).

Rules:
1. The series of a second are the quantities of ``quantities`` of the node, its classes, NUMA nodes,
   network interfaces and disks, by their JSON keys: ``LS/cpuCores``; and what ``derived`` adds.
2. A row of a minute has their means, and four quantities of the workloads that use most CPU then.
3. Nothing is read for it: a row is what the newest view and the history of use know already.
4. Memory is fixed (``history.recorder`` in ``tests/bench``); it ends with the agent.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from koordlet.history import series, space, timeline
from koordlet.host import machine
from koordlet.model import meter, resctrl, resources
from koordlet.report import marks, quantities, view

#: Seconds between rows, and how many there are: an hour and a day.
SECOND, MINUTE = 1.0, 60.0
SECONDS, MINUTES = 3600, 1440
#: Series of the node and its parts, and of workloads.
CAPACITY = 160
WORKLOADS = 48
#: Those that were recorded earlier in the day and are not now keep their past for so many columns.
_COLUMNS = 64
#: Tables of ``counters.Usage``, and what stands before the subject's name.
TABLES = {"node": "", "shares": "", "numa": "NUMA ", "links": "link ", "disks": "disk "}
#: Subjects of one table that are recorded.
_MOST = 8
#: Of a workload, by JSON key.
OF_WORKLOADS = {
    "cpuCores": meter.CPU,
    "memoryBytes": meter.WORKING_SET,
    "throttledRatio": meter.THROTTLED,
    "pressure.cpu.some": meter.PRESSURE_CPU.some[3],
}
#: Seconds between the samples of ``recent``, and the most workloads in it.
RECENT, _MOST_RECENT = 5, 1000
#: Passes that come sooner after a row get none.
_EARLY = 0.25


class Demo(Protocol):
    """A demo that plays beside the agent."""

    def latency(self) -> float | None:
        """The newest request latency of its service, in seconds; ``None`` while not known."""

    def comparison(self, now: view.ReportView) -> Mapping[str, object] | None:
        """Phases with and without koordlet, and what came of them; ``None`` before the first."""


class Recorder:
    """Takes each view of one agent."""

    def __init__(
        self,
        past: series.History,
        *,
        demo: Demo | None = None,
        clock: Callable[[], float] = machine.boottime,
    ) -> None:
        self._past = past
        self.demo = demo
        #: Seconds that suspend counts in and nobody sets.
        self.clock = clock
        self.seconds = timeline.Timeline(SECOND, SECONDS, CAPACITY)
        self.minutes = timeline.Timeline(MINUTE, MINUTES, CAPACITY)
        self.workloads = timeline.Timeline(MINUTE, MINUTES, _COLUMNS * len(OF_WORKLOADS))
        self.marks = marks.Marks()
        #: The newest row.
        self.row: dict[str, float] = {}
        self._minute = -math.inf

    def publish(self, now: view.ReportView) -> None:
        """Take a view."""
        at = self.clock()
        self.marks.take(now, at)
        if at - self.seconds.newest < SECOND - _EARLY:
            return
        self.row = dict(samples(now, None if self.demo is None else self.demo.latency()))
        self.seconds.take(at, self.row)
        if self._minute == -math.inf:
            self._minute = at
        if at - self._minute >= MINUTE - _EARLY:
            self.minutes.take(at, self.seconds.means(max(self._minute, at - 2 * MINUTE)))
            self.workloads.take(at, dict(self._busiest(now)))
            self._minute = at

    def _busiest(self, now: view.ReportView) -> Iterator[tuple[str, float]]:
        """The last minute of those that use most CPU."""
        pods = [pod for pod in now.snapshot.pods if pod.group is not None]
        used = self._past.groups.lasts([pod.group or "" for pod in pods], meter.CPU)
        ranked = (
            (cores or 0.0, pod.key, pod.group or "") for cores, pod in zip(used, pods, strict=True)
        )
        for _, key, group in heapq.nlargest(WORKLOADS, ranked):
            for name, what in OF_WORKLOADS.items():
                value = _minute(self._past.groups, group, what, now.snapshot.at)
                if value is not None:
                    yield f"{key}/{name}", value

    def recent(self, now: view.ReportView) -> space.Samples:
        """CPU use of each workload in the last five minutes, a sample every five seconds."""
        groups = {f"{pod.key}/cpuCores": pod.group for pod in now.snapshot.pods if pod.group}
        some = dict(itertools.islice(groups.items(), _MOST_RECENT))
        known = self._past.groups.samples(meter.CPU, some.values())
        if known is None:
            return space.Samples((), (), {})
        shift = self.clock() - now.snapshot.at
        kept = slice((len(known.at) - 1) % RECENT, None, RECENT)
        return space.Samples(
            [at + shift for at in known.at[kept]],
            known.span[kept],
            {
                name: known.columns[group][kept]
                for name, group in some.items()
                if group in known.columns
            },
        )


def _minute(groups: space.Space, group: str, what: meter.Meter, at: float) -> float | None:
    """The mean of a minute where it was kept, else the newest value."""
    window = groups.window(group, what, at, MINUTE)
    return groups.last(group, what) if window is None else window.average


def samples(now: view.ReportView, latency: float | None) -> Iterator[tuple[str, float]]:
    """One row: each series that is known now."""
    for name, prefix in TABLES.items():
        table = getattr(now.used, name)
        subjects = [
            (f"{prefix}{subject}/" if subject or prefix else "node/", slot)
            for subject, slot in itertools.islice(table.slots.items(), _MOST)
        ]
        for key, what in quantities.recorded(name):
            column = table.columns.get(what)
            if column is None:
                continue
            for stem, slot in subjects:
                value = column[slot] if slot < len(column) else math.nan
                if value == value:  # noqa: PLR0124 -- NaN differs from itself
                    yield stem + key, value
    yield from derived(now, latency)


def derived(now: view.ReportView, latency: float | None) -> Iterator[tuple[str, float]]:
    """What no counter says: limit and offer, owners of CPUs, waiting, caches by class."""
    seen, made = now.snapshot, now.plan
    yield "node/cpus", float(len(seen.topology.online))
    limit = view.acting(now)
    if limit is not None and limit.milli is not None:
        yield "BE/limitCores", limit.milli / 1000
    elif limit is not None and limit.cpus is not None:
        yield "BE/limitCores", float(len(limit.cpus))
    offered = None if made.offer is None else made.offer.amounts.get(resources.BATCH_CPU)
    if offered is not None:
        yield "BE/offeredCores", offered / 1000
    if seen.strain is not None and seen.strain.waiting is not None:
        yield "LS/waitingRatio", seen.strain.waiting
    if latency is not None:
        yield "LS/latencySeconds", latency
    owned: dict[str, int] = {}
    for claim in made.ledger.claims:
        owned[claim.owner.value] = owned.get(claim.owner.value, 0) + len(claim.cpus)
    for pool in made.ledger.pools:
        owned[f"{pool.kind} pool"] = owned.get(f"{pool.kind} pool", 0) + len(pool.cpus)
    for owner, cpus in itertools.islice(owned.items(), _MOST):
        yield f"{owner}/ownedCPUs", float(cpus)
    if seen.resctrl is not None:
        yield from _caches(seen.resctrl.usage)


def _caches(usage: tuple[resctrl.Usage, ...]) -> Iterator[tuple[str, float]]:
    """Of the classes; the groups that count their workloads are inside of them."""
    sums: dict[str, float] = {}
    for use in usage:
        if "mon_groups" in use.group:
            continue
        both = (("cacheBytes", use.llc_bytes), ("memoryBandwidthBytesPerSecond", use.total_rate))
        for key, value in both:
            if value is not None:
                name = f"{use.group or 'root'}/{key}"
                sums[name] = sums.get(name, 0.0) + value
    yield from itertools.islice(sums.items(), 2 * _MOST)
