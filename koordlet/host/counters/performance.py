"""Cycles and instructions of containers: how much work a cycle does, which neighbours can spoil.

Covers: who is counted in which window, sums over CPUs, why there is nothing to count.
Does not cover: the system call (``host.process.perf_events``), what follows from the ratio.

A counter of a group needs a descriptor on every CPU, and each switch between counted groups costs
its CPU a microsecond. So not everybody is counted all the time: in a window of ten seconds as many
groups as ``host.fs.descriptors`` allows, those first whose last window is longest ago; and
where all fit, one window a minute, as the peer has it.

Rules:
1. A pair that the processor had no room for is scaled by the time in which it counted, as perf(1)
   does it; one that never counted says nothing about its CPU.
2. A group that went away, or that cannot be opened, costs only itself.
3. A machine without counters is found out once, with the first window, and said; what may change
   (descriptors, permission) is tried again after ten minutes.
"""

from __future__ import annotations

import errno
from array import array
from collections.abc import Iterable, Sequence

from koordlet.host.fs import root
from koordlet.host.process import perf_events
from koordlet.model import absence, cgroup, counters, meter, pod
from koordlet.model.record import dataclass

#: Seconds until a machine that refused is asked again.
_AGAIN = 600.0
#: A value that is older says nothing about now.
_OLD = 1800.0
#: Above 2, which Debian's kernels add and begin with, CAP_PERFMON alone is not enough.
_NOT_PERMITTED = (
    "not permitted: needs CAP_PERFMON and kernel.perf_event_paranoid of 2 or less, or CAP_SYS_ADMIN"
)
#: What the kernel answers to why nothing is counted.
WHY = {
    errno.ENOENT: "the processor has no cycle counters, as in most virtual machines",
    errno.EOPNOTSUPP: "the processor has no cycle counters, as in most virtual machines",
    errno.ENOSYS: "this kernel has no perf_event_open",
    errno.EINVAL: "this kernel cannot count by cgroup (CONFIG_CGROUP_PERF)",
    errno.EACCES: _NOT_PERMITTED,
    errno.EPERM: _NOT_PERMITTED,
    errno.EBUSY: "another program uses the processor's counters",
    errno.EMFILE: "too many open files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceSettings:
    """Limits of counting."""

    window: float = 10.0
    interval: float = 60.0
    descriptors: int = 1024


@dataclass(frozen=True, slots=True)
class _Work:
    """Cycles and instructions of a cgroup in a window."""

    at: float
    cycles: float
    instructions: float


@dataclass(slots=True)
class _Window:
    """A counting window in progress."""

    since: float
    #: Whether nobody had to be left out.
    whole: bool
    handles: dict[str, list[tuple[int, ...]]]


class PerformanceReader:
    """Counts on one machine."""

    def __init__(self, host: root.HostRoot, settings: PerformanceSettings) -> None:
        self.settings = settings
        self._host = host
        self._counters: perf_events.PerfEvents | None = None
        self._window: _Window | None = None
        self._next = float("-inf")
        self._done: dict[str, _Work] = {}
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._why = ""

    @property
    def unsupported(self) -> tuple[absence.Unsupported, ...]:
        """Reason for not counting; empty if counting works."""
        return (absence.Unsupported("cpi", self._why),) if self._why else ()

    def read(
        self,
        at: float,
        suspended: float,
        layout: cgroup.Layout,
        cpus: Iterable[int],
        pods: Sequence[pod.Pod],
    ) -> counters.Reading | None:
        """Begin or end a window where it is time; a reading where one ended."""
        window = self._window
        if window is None:
            if at >= self._next and (wanted := groups(pods)):
                self._begin(at, layout, list(cpus), wanted)
            return None
        if at - window.since < self.settings.window:
            return None
        self._end(window, at)
        there = set(groups(pods))
        self._done = {
            group: work
            for group, work in self._done.items()
            if work.at > at - _OLD and group in there
        }
        return self._reading(at, suspended)

    def _begin(
        self, at: float, layout: cgroup.Layout, cpus: list[int], wanted: Sequence[str]
    ) -> None:
        self._next = at + _AGAIN
        holder = layout.holder("perf_event") or layout.tree
        if holder is None:
            self._why = "no cgroup hierarchy has the perf_event controller"
            return
        try:
            if self._counters is None:
                self._counters = self._host.performance()
            # The group of everybody is there, so it says whether this machine counts at all.
            whole = self._host.at(holder.directory(""))
            self._counters.close(self._counters.open(whole, cpus[0]))
        except OSError as error:
            self._why = WHY.get(error.errno or 0, f"perf_event_open: {error.strerror}")
            return
        self._why = ""
        most = max(1, self.settings.descriptors // (2 * len(cpus)))
        never = _Work(float("-inf"), 0.0, 0.0)
        longest = sorted(wanted, key=lambda group: self._done.get(group, never).at)[:most]
        handles = {}
        for group in longest:
            opened = self._open(self._host.at(holder.directory(group)), cpus)
            if opened:
                handles[group] = opened
        self._window = _Window(at, len(wanted) <= most, handles)

    def _open(self, group: root.HostPath, cpus: Iterable[int]) -> list[tuple[int, ...]]:
        """A pair for each CPU; none where one of them is refused."""
        opened: list[tuple[int, ...]] = []
        assert self._counters is not None  # noqa: S101 -- made before the first window
        try:
            for cpu in cpus:
                opened.append(self._counters.open(group, cpu))  # noqa: PERF401 -- kept for closing
        except OSError:
            for pair in opened:
                self._counters.close(pair)
            return []
        return opened

    def _end(self, window: _Window, at: float) -> None:
        for group, pairs in window.handles.items():
            work = self._sum(pairs, at)
            if work is not None:
                self._done[group] = work
        self._close()
        self._next = max(at, window.since + self.settings.interval) if window.whole else at

    def _sum(self, pairs: Iterable[tuple[int, ...]], at: float) -> _Work | None:
        cycles = instructions = 0.0
        assert self._counters is not None  # noqa: S101 -- as above
        for pair in pairs:
            try:
                sample = self._counters.read(pair[0])
            except OSError:
                return None
            if sample.counted:
                scale = sample.wanted / sample.counted
                cycles += sample.first * scale
                instructions += sample.second * scale
        return _Work(at, cycles, instructions)

    def _reading(self, at: float, suspended: float) -> counters.Reading:
        """Newest window of every cgroup."""
        gone = self._slots.keys() - self._done.keys()
        self._free += sorted(self._slots.pop(group) for group in gone)
        new = [group for group in self._done if group not in self._slots]
        for group in new:
            self._slots[group] = self._free.pop() if self._free else len(self._slots)
        width = len(self._slots) + len(self._free)
        columns = {what: array("d", [counters.NAN]) * width for what in meter.WORK}
        for group, slot in self._slots.items():
            work = self._done[group]
            columns[meter.CYCLES][slot] = work.cycles
            columns[meter.INSTRUCTIONS][slot] = work.instructions
            if work.instructions:
                columns[meter.CPI][slot] = work.cycles / work.instructions
        slots = dict(self._slots)
        renewed = (slots[group] for group in new)
        return counters.Reading.of(at, suspended, slots, columns, width=width, renewed=renewed)

    def _close(self) -> None:
        if self._window is not None and self._counters is not None:
            for pairs in self._window.handles.values():
                for pair in pairs:
                    self._counters.close(pair)
        self._window = None

    def close(self) -> None:
        """Give all descriptors back."""
        self._close()


def groups(pods: Iterable[pod.Pod]) -> list[str]:
    """Counted cgroups: of containers, and of workloads without containers."""
    paths: dict[str, None] = {}
    for workload in pods:
        inside = [box.group for box in workload.containers if box.group is not None]
        if inside:
            paths.update(dict.fromkeys(inside))
        elif workload.group is not None and not workload.containers:
            paths[workload.group] = None
    return list(paths)
