"""Reads what a whole node may run out of: memory, processes, file systems, and stalls.

Covers: the files of each number on both versions of cgroups, which directory stands for which file
system. Does not cover: asking file systems (``host.fs.space``), what is too little (``policy``).

Facts: the kubelet counts memory by cgroups and not by ``MemAvailable``. The root group of v2 has no
``memory.current``, so its use is anonymous memory and page cache together, as v1's is
(cgroup-v2.rst, memory.stat). Tasks count, threads included: the number after the slash in
``/proc/loadavg`` (proc(5)), and the limit is the smaller of ``pid_max`` and ``threads-max``.

Each number is read by itself: what is wrong with a file costs that number only.

Before a ``memory.stat`` says anything, the kernel adds up what every group inside has changed: of
the root, most of a millisecond where 500 containers run. Except for v2's root, only page cache is
taken from it, and that of the whole machine is in ``/proc/meminfo`` as well. While that is what it
was, and the group uses what it used (groups may take each other's page cache, and a group may be
small), the file is read every few seconds only; near a threshold each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from koordlet.host.counters import procstat
from koordlet.host.fs import descriptors, root
from koordlet.model import cgroup, meter, pressure
from koordlet.model.record import dataclass

_T = TypeVar("_T")

#: Where the kubelet's files are, where a runtime keeps images: the first that is there.
NODEFS = ("/var/lib/kubelet", "/var/lib", "/")
IMAGEFS = ("/var/lib/containerd", "/var/lib/containers/storage", "/var/lib/docker")
#: The group of all pods, by its driver.
PODS = ("kubepods.slice", "kubepods")

_DEGREES = ("some", "full")
_KIB = 1024
#: In ``/proc/meminfo``, in the order of ``_Cache``.
_CACHE = (b"\nInactive(file):", b"\nActive(file):")

#: Seconds for which the page cache of a group is believed to be what it was.
_BELIEVED = 5.0
#: Part of all memory by which that of the machine may differ meanwhile.
_SAME = 1e-3
#: Part of what a group may have by which its use may differ: a tenth of what counts as near.
_USED = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class PressurePaths:
    """Directories and cgroups to measure."""

    nodefs: tuple[str, ...] = NODEFS
    imagefs: tuple[str, ...] = IMAGEFS
    #: Empty: that of the images.
    containerfs: tuple[str, ...] = ()
    pods: tuple[str, ...] = PODS
    #: A group whose memory counts as the node's; empty: the root.
    memory: str = ""

    @property
    def directories(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.nodefs, *self.imagefs, *self.containerfs)))


class _Cache(NamedTuple):
    """Page cache, inactive and active."""

    inactive: int
    active: int


class _Known(NamedTuple):
    """Page cache of a group as it was read, what the machine's was then, and the group's use."""

    at: float
    cache: _Cache
    machine: _Cache
    usage: int

    def holds(self, at: float, machine: _Cache, total: int, usage: int, most: int) -> bool:
        """True if the cached value can hardly have changed."""
        moved = (abs(value - before) for value, before in zip(machine, self.machine, strict=True))
        return (
            0 <= at - self.at < _BELIEVED
            and all(change <= total * _SAME for change in moved)
            and abs(usage - self.usage) <= most * _USED
        )


class PressureReader:
    """Reads one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._files = descriptors.KeptFiles(host)
        self._layout = cgroup.Layout()
        self.places = PressurePaths()
        self._problems: dict[str, str] = {}
        self._pods = ""
        #: Of the machine at this moment: page cache, all memory.
        self._machine: _Cache | None = None
        self._total: int | None = None
        #: By file, as it was read last.
        self._known: dict[str, _Known] = {}
        #: Memory is near a threshold: nothing is believed to be what it was.
        self.closely = False

    def watch_closely(self, *, near: bool) -> None:
        """Whether memory is near a threshold from now on."""
        self.closely = near

    def configure(self, layout: cgroup.Layout, places: PressurePaths) -> None:
        """Take mounts and places."""
        if layout is not self._layout:
            self.close()
            self._known.clear()
        self._layout, self.places = layout, places

    def read(
        self, at: float, disks: Mapping[str, pressure.FileSystem], disks_at: float | None
    ) -> pressure.Reading:
        """Everything now; ``disks`` are what file systems said last, by directory."""
        self._problems = {}
        memory = self._meminfo()
        nodefs, imagefs, containerfs = self._systems(disks)
        return pressure.Reading(
            at=at,
            total=self._total,
            root=self._try("memory", lambda: self._root(at)),
            pods=self._pods_memory(at),
            pods_group=self._pods,
            nodefs=nodefs,
            imagefs=imagefs,
            containerfs=containerfs,
            layout=_layout(nodefs, imagefs, containerfs),
            disks_at=disks_at,
            max_pids=self._max_pids(),
            # All tasks: the number after the slash.
            processes=self._try(
                "processes", lambda: int(self._proc("loadavg").split()[3].partition(b"/")[2])
            ),
            swap_total=_whole(memory.get(meter.SWAP_TOTAL)),
            swap_free=_whole(memory.get(meter.SWAP_FREE)),
            stalls=self._stalls(),
            problems=self._problems,
        )

    def memory(self) -> tuple[pressure.Memory | None, pressure.Memory | None]:
        """Memory of the node and of all pods, between two readings and without the cache."""
        self._known.clear()
        self._meminfo()
        return self._try("memory", self._root), self._pods_memory()

    @property
    def directories(self) -> tuple[str, str]:
        """Directories of the cgroups of :meth:`memory` on v1; empty elsewhere."""
        where = self._layout.holder("memory")
        if where is None or where.unified:
            return "", ""
        node = where.directory(self.places.memory) if self.places.memory else where.mount
        return node, where.directory(self._pods) if self._pods else ""

    def _try(self, what: str, ask: Callable[[], _T]) -> _T | None:
        try:
            return ask()
        except OSError as error:
            self._host.silence.met(error, gap=True)
            self._problems[what] = f"{error.filename or what}: {error.strerror or error}"
        except (ValueError, IndexError, KeyError) as error:
            self._problems[what] = f"{what}: {error!s:.120}"
        return None

    def _proc(self, *names: str) -> bytes:
        return self._files.read(self._host.proc(*names))

    def close(self) -> None:
        """Give all descriptors back."""
        self._files.close()

    # Memory --------------------------------------------------------------------------------------

    def _meminfo(self) -> procstat.Values:
        """``/proc/meminfo`` of the machine, reduced to the needed fields."""
        text = self._try("memory.total", lambda: self._proc("meminfo")) or b""
        self._machine = self._try("memory.total", lambda: _cache(text))
        values = self._try("memory.total", lambda: procstat.meminfo(text)) or {} if text else {}
        self._total = _whole(values.get(meter.MEMORY_TOTAL))
        return values

    def _root(self, at: float | None = None) -> pressure.Memory:
        where, total = self._memory(), self._total
        if self.places.memory:
            group = self._group(where, where.directory(self.places.memory), at)
            limits = [limit for limit in (group.limit, total) if limit is not None]
            return replace(group, limit=min(limits, default=None))
        file = f"{where.mount}/memory.stat"
        if where.unified:
            stat = _keyed(self._read(file))
            usage, cache = stat[b"anon"] + stat[b"file"], _cache_of(stat)
        else:
            usage = int(self._read(f"{where.mount}/memory.usage_in_bytes"))
            cache = self._page_cache(file, at, usage, total)
        return _of(usage, cache, total)

    def _page_cache(self, file: str, at: float | None, usage: int, limit: int | None) -> _Cache:
        """Page cache of a cgroup of this usage, from the cache if it can hardly have changed."""
        known, machine, total = self._known.get(file), self._machine, self._total
        if machine is None or total is None or at is None:
            return _cache_of(_keyed(self._read(file)))
        believes = self._host.live and not self.closely
        most = total if limit is None else min(limit, total)
        if believes and known is not None and known.holds(at, machine, total, usage, most):
            return known.cache
        cache_of = _cache_of(_keyed(self._read(file)))
        self._known[file] = _Known(at, cache_of, machine, usage)
        return cache_of

    def _pods_memory(self, at: float | None = None) -> pressure.Memory | None:
        """Memory of the first existing cgroup of all pods."""
        where = self._layout.holder("memory")
        there = (
            name
            for name in self.places.pods
            if where is not None and self._host.exists(self._host.at(where.directory(name)))
        )
        self._pods = next(there, "")
        if where is None or not self._pods:
            self._problems["memory.pods"] = f"no group {' or '.join(self.places.pods)}"
            return None
        group = where.directory(self._pods)
        return self._try("memory.pods", lambda: self._group(where, group, at))

    def _group(self, where: cgroup.Hierarchy, directory: str, at: float | None) -> pressure.Memory:
        if where.unified:
            usage = int(self._read(f"{directory}/memory.current"))
            text = self._read(f"{directory}/memory.max")
        else:
            usage = int(self._read(f"{directory}/memory.usage_in_bytes"))
            text = self._read(f"{directory}/memory.limit_in_bytes")
        limit = None if text.strip() == b"max" else int(text)
        return _of(usage, self._page_cache(f"{directory}/memory.stat", at, usage, limit), limit)

    def _memory(self) -> cgroup.Hierarchy:
        where = self._layout.holder("memory") or self._layout.tree
        if where is None:
            raise ValueError("no mounted cgroup hierarchy has the memory controller")
        return where

    def _read(self, path: str) -> bytes:
        return self._files.read(self._host.at(path))

    # The rest ------------------------------------------------------------------------------------

    def _max_pids(self) -> int | None:
        """The smaller of both limits, whichever can be read."""
        names = ("pid_max", "threads-max")
        limits = [self._try(name, partial(self._setting, name)) for name in names]
        return min((limit for limit in limits if limit is not None), default=None)

    def _setting(self, name: str) -> int:
        return int(self._proc("sys", "kernel", name))

    def _pressure(self, resource: str) -> Sequence[float]:
        return procstat.pressure(self._proc("pressure", resource))

    def _stalls(self) -> Mapping[str, float]:
        averages: dict[str, float] = {}
        for stall in meter.PRESSURES:
            what = stall.resource
            values = self._try(f"pressure.{what}", partial(self._pressure, what))
            for index, degree in enumerate(_DEGREES):
                for offset, seconds in enumerate(meter.AVERAGES):
                    value = None if values is None else values[4 * index + offset]
                    if value is not None and not math.isnan(value):
                        averages[f"{what}.{degree}.avg{seconds}"] = value
        return averages

    def _systems(
        self, disks: Mapping[str, pressure.FileSystem]
    ) -> tuple[pressure.FileSystem | None, ...]:
        """Node, images, containers. Where no directory of images is there, they are the node's."""
        nodefs = self._first("nodefs", self.places.nodefs, disks)
        imagefs = self._first("imagefs", self.places.imagefs, disks) or nodefs
        containerfs = self._first("containerfs", self.places.containerfs, disks) or imagefs
        if nodefs is not None:
            self._problems.pop("imagefs", None)
        self._problems.pop("containerfs", None)
        return nodefs, imagefs, containerfs

    def _first(
        self, what: str, paths: Sequence[str], disks: Mapping[str, pressure.FileSystem]
    ) -> pressure.FileSystem | None:
        disk = next((disks[path] for path in paths if path in disks), None)
        if disk is None and paths:
            self._problems[what] = f"no statistics for {' or '.join(paths)}"
        return disk


def _layout(
    nodefs: pressure.FileSystem | None,
    imagefs: pressure.FileSystem | None,
    containerfs: pressure.FileSystem | None,
) -> str:
    """Device layout of the three file systems."""
    if nodefs is None or imagefs is None or imagefs.device == nodefs.device:
        return pressure.SINGLE
    if containerfs is not None and containerfs.device != imagefs.device:
        return pressure.SPLIT
    return pressure.DEDICATED


def recorded(host: root.HostRoot, places: PressurePaths) -> dict[str, pressure.FileSystem]:
    """The file systems of a recorded machine: those that are mounted inside of it.

    What lies on the disk that the recording itself lies on says nothing about that machine.
    """
    disks: dict[str, pressure.FileSystem] = {}
    try:
        own = host.statvfs(host.at("/"))
    except OSError:
        return disks
    for path in places.directories:
        try:
            disk = host.statvfs(host.at(path))
        except OSError:
            continue
        if (disk.f_fsid, disk.f_files, disk.f_blocks) != (own.f_fsid, own.f_files, own.f_blocks):
            disks[path] = pressure.FileSystem(
                device=f"{disk.f_fsid}/{disk.f_blocks}/{disk.f_files}",
                available=disk.f_bavail * disk.f_frsize,
                capacity=disk.f_blocks * disk.f_frsize,
                inodes_free=disk.f_ffree if disk.f_files else None,
                inodes=disk.f_files or None,
            )
    return disks


def _of(usage: int, cache: _Cache, limit: int | None) -> pressure.Memory:
    return pressure.Memory(
        usage=usage, inactive_file=cache.inactive, limit=limit, active_file=cache.active
    )


def _cache_of(stat: Mapping[bytes, int]) -> _Cache:
    """Page cache of the whole tree; v1 uses a prefix."""
    inactive = stat.get(b"total_inactive_file", stat.get(b"inactive_file", 0))
    return _Cache(inactive, stat.get(b"total_active_file", stat.get(b"active_file", 0)))


def _cache(meminfo: bytes) -> _Cache | None:
    """Page cache of the whole machine; ``None`` if unknown."""
    parts = [meminfo.partition(name)[2].split(None, 1)[:1] for name in _CACHE]
    return (
        _Cache(*(int(number) * _KIB for part in parts for number in part)) if all(parts) else None
    )


def _keyed(text: bytes) -> dict[bytes, int]:
    words = text.split()
    return {key: int(value) for key, value in zip(words[::2], words[1::2], strict=True)}


def _whole(value: float | None) -> int | None:
    return None if value is None or math.isnan(value) else int(value)
