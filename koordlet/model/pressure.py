"""Node pressure readings: memory, file systems, PIDs, swap, stalls.

Covers: memory of the root and of all pods, file systems, processes, swap, as numbers of one moment.
Does not cover: reading them (``host.counters.pressure``), what is too little
(``policy.eviction.pressure_signals``).

``None`` is always "not known", and no reason to do anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass

#: How file systems are shared out: one for everything; images and containers on one of their own;
#: images on one of their own, and containers beside the node's files.
SINGLE, DEDICATED, SPLIT = "single", "dedicated", "split"

#: A limit above this is none: v1 spells "no limit" as the largest page-aligned number.
UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of one cgroup, in bytes."""

    usage: int
    #: Page cache that the kernel takes back first.
    inactive_file: int
    limit: int | None = None
    #: Page cache that counts as used, and could be had back.
    active_file: int = 0

    @property
    def working_set(self) -> int:
        """Memory that cannot be reclaimed cheaply: use without inactive page cache."""
        return max(0, self.usage - self.inactive_file)

    @property
    def available(self) -> int | None:
        """Memory left below the limit; ``None`` where there is no limit."""
        if self.limit is None or self.limit > UNLIMITED:
            return None
        return max(0, self.limit - self.working_set)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """Space and inodes of one file system."""

    #: What identifies it: two directories with one device are on one file system.
    device: str = ""
    available: int | None = None
    capacity: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One moment. ``at`` are monotonic seconds, by subject where they differ."""

    at: float = 0.0
    #: Of the machine, in bytes.
    total: int | None = None
    root: Memory | None = None
    #: All pods together, with their group.
    pods: Memory | None = None
    pods_group: str = ""
    nodefs: FileSystem | None = None
    imagefs: FileSystem | None = None
    containerfs: FileSystem | None = None
    #: One of the three above.
    layout: str = SINGLE
    #: When the file systems were asked.
    disks_at: float | None = None
    max_pids: int | None = None
    processes: int | None = None
    swap_total: int | None = None
    swap_free: int | None = None
    #: ``memory.full.avg10`` to percent of time.
    stalls: Mapping[str, float] = field(default_factory=dict)
    #: Subject to why it is not known.
    problems: Mapping[str, str] = field(default_factory=dict)
