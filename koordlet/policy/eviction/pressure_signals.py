"""Eviction signals of the node, as the kubelet counts them. Pure.

Covers: the kubelet's signals from what was read here and from what the kubelet itself says.
Does not cover: thresholds (``node_pressure``), reading (``host.counters.pressure``).

Rules:
1. An observation exists only where both what is available and the capacity are known.
2. Memory: the limit less the working set; of the root the limit is the machine's memory, of all
   pods it is that of their group. A group without a limit gives no observation.
3. A file system is the one that the kubelet names in its statistics; our own, fresher reading
   counts where it is of the same one. Without statistics our own reading counts.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import field

from koordlet.model import pressure, snapshot, thresholds
from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.model import kubelet


@dataclass(frozen=True, slots=True)
class Observation:
    """Available amount and capacity of one signal."""

    available: int
    capacity: int
    #: Monotonic time; ``None``: nobody says when.
    at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Observations of one moment."""

    by_signal: Mapping[str, Observation] = field(default_factory=dict)
    #: How file systems are shared out, as ``model.pressure`` names it.
    layout: str = pressure.SINGLE
    #: Signal to why it is not observed.
    missing: Mapping[str, str] = field(default_factory=dict)


def observe(now: snapshot.Snapshot) -> Observations:
    """Observe every signal."""
    summary = now.kubelet.summary if now.kubelet is not None else None
    systems, layout = _systems(now.pressure, summary)
    observed = dict(_memory(now.pressure, summary))
    for name, file_system in systems.items():
        for kind, free, whole in (
            ("available", file_system.available, file_system.capacity),
            ("inodesFree", file_system.inodes_free, file_system.inodes),
        ):
            if free is not None and whole is not None:
                observed[f"{name}.{kind}"] = Observation(free, whole, now.pressure.disks_at)
    most, there = now.pressure.max_pids, now.pressure.processes
    if most is None or there is None:
        most = summary.max_pids if summary is not None else None
        there = summary.processes if summary is not None else None
    if most is not None and there is not None:
        observed[thresholds.PIDS] = Observation(max(0, most - there), most, now.pressure.at)
    missing = {
        signal: _why(signal, now.pressure)
        for signal in thresholds.SIGNALS
        if signal not in observed
    }
    return Observations(by_signal=observed, layout=layout, missing=missing)


def _memory(
    read: pressure.Reading, summary: kubelet.Summary | None
) -> Iterator[tuple[str, Observation]]:
    if read.root is not None and read.root.available is not None:
        available = read.root.available
        capacity = available + read.root.working_set
        yield thresholds.MEMORY, Observation(available, capacity, read.at)
    elif (
        summary is not None
        and summary.memory_available_bytes is not None
        and summary.memory_working_set_bytes is not None
    ):
        available = summary.memory_available_bytes
        capacity = available + summary.memory_working_set_bytes
        yield thresholds.MEMORY, Observation(available, capacity)
    if read.pods is not None and read.pods.available is not None:
        available = read.pods.available
        capacity = available + read.pods.working_set
        yield thresholds.ALLOCATABLE_MEMORY, Observation(available, capacity, read.at)


def _systems(
    read: pressure.Reading, summary: kubelet.Summary | None
) -> tuple[Mapping[str, pressure.FileSystem], str]:
    """The three file systems and how they lie (rule 3)."""
    own = {"nodefs": read.nodefs, "imagefs": read.imagefs, "containerfs": read.containerfs}
    if summary is None or summary.node_fs.capacity_bytes is None:
        return {
            name: file_system for name, file_system in own.items() if file_system is not None
        }, read.layout
    reported = {
        "nodefs": _converted(summary.node_fs),
        "imagefs": _converted(summary.image_fs),
        "containerfs": _converted(summary.container_fs),
    }
    if reported["imagefs"].capacity is None:
        reported["imagefs"] = reported["nodefs"]
    if reported["containerfs"].capacity is None:
        reported["containerfs"] = reported["imagefs"]
    layout = _layout(reported)
    known = [file_system for file_system in own.values() if file_system is not None]
    fresh = {
        name: next((mine for mine in known if _same(mine, file_system)), file_system)
        for name, file_system in reported.items()
    }
    return fresh, layout


def _converted(file_system: kubelet.FileSystem) -> pressure.FileSystem:
    return pressure.FileSystem(
        available=file_system.available_bytes,
        capacity=file_system.capacity_bytes,
        inodes_free=file_system.inodes_free,
        inodes=file_system.inodes,
    )


def _layout(reported: Mapping[str, pressure.FileSystem]) -> str:
    """The statistics name no devices: two file systems are one where their sizes are."""
    if _same(reported["nodefs"], reported["imagefs"]):
        return pressure.SINGLE
    if _same(reported["imagefs"], reported["containerfs"]):
        return pressure.DEDICATED
    return pressure.SPLIT


def _same(file_system: pressure.FileSystem, other: pressure.FileSystem) -> bool:
    return (file_system.capacity, file_system.inodes) == (other.capacity, other.inodes)


_SUBJECTS = {
    thresholds.MEMORY: ("memory", "memory.total"),
    thresholds.ALLOCATABLE_MEMORY: ("memory.pods",),
    thresholds.PIDS: ("processes", "pid_max", "threads-max"),
}


def _why(signal: str, read: pressure.Reading) -> str:
    name, _, kind = signal.partition(".")
    subjects = _SUBJECTS.get(signal, (name,))
    why = next((read.problems[subject] for subject in subjects if subject in read.problems), "")
    if why:
        return why
    if signal == thresholds.ALLOCATABLE_MEMORY:
        return f"cgroup {read.pods_group} has no memory limit"
    # What is on another file system's place has that one's problem.
    behind = {"containerfs": read.containerfs, "imagefs": read.imagefs, "nodefs": read.nodefs}
    if name in behind and behind[name] is None:
        return read.problems.get("nodefs", "not read yet")
    if kind == "inodesFree":
        return "the file system does not count inodes"
    return "not read yet"
