"""Reads what groups use: many small files, very often, at almost no cost.

Covers: kept descriptors, turns, slots, damage and absence of single files.
Does not cover: which groups there are (``host.cgroup.tree``), rates and windows (``history``).

How it is cheap (one ``pread`` of a kept descriptor is a microsecond, opening the file is ten):
1. Every group has a slot. A file of all groups is one list of descriptors and becomes one column.
2. A file that is read in turns is read of the slots ``turn, turn + every, …`` at each tick.
3. What a file says again is not understood again: a batch is the last one with what changed. Where
   most change, that is not even looked for.
4. An open file that was read pins a page of kernel memory, so descriptors are bounded; what has
   none is opened, read and closed.

What goes wrong costs one value: a group that is gone answers ENODEV, a file that is not there is
looked for again after ten minutes (that of a new group a few times at once, where others have it),
a text that is no number is counted and missing.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from koordlet.host.counters import files as counter_files
from koordlet.host.counters import lane as counter_lane
from koordlet.host.fs import root
from koordlet.model import cgroup, counters

#: Descriptors that are kept: 28 MB of kernel memory when all are in use, which is at 750 groups.
HANDLES = 7168
#: Slots are added in steps, so that columns do not move with every new group.
_STEP = 64


class GroupReader:
    """Reads the counters of the groups of one layout."""

    def __init__(
        self,
        host: root.HostRoot,
        layout: cgroup.Layout,
        *,
        nodes: Sequence[int] = (),
        handles: int = HANDLES,
    ) -> None:
        self._room = counter_lane.DescriptorBudget(host, handles)
        files = list(counter_files.table())
        files += [counter_files.numa(nodes, unified=u) for u in (False, True) if len(nodes) > 1]
        #: By slot.
        self._paths: list[str] = []
        self._lanes: list[counter_lane.ReadLane] = []
        for file in files:
            where = file.here(layout)
            if where is not None:
                of = next((lane for lane in self._lanes if lane.file.meters == file.follows), None)
                self._lanes.append(counter_lane.ReadLane(self._room, file, where, self._paths, of))
        self._slots: dict[str, int] = {}
        self._inodes: list[int] = []
        self._free: list[int] = []
        self._renewed: list[int] = []
        self._followed: Mapping[str, cgroup.Group] = {}
        self._tick = -1
        self._seen: dict[str, int] = {}

    @property
    def handles(self) -> int:
        """Descriptors in use."""
        return self._room.used

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of files read, opened, gone and malformed."""
        return self._room.counts

    @property
    def missing(self) -> frozenset[str]:
        """Names of files that none of the groups has."""
        return frozenset(lane.file.name for lane in self._lanes if self._slots and lane.empty)

    def follow(self, groups: Mapping[str, cgroup.Group]) -> None:
        """Set the cgroups to read, by path. The root cgroup is the node and not read here."""
        if groups is self._followed:
            return
        self._followed = groups
        for path in [path for path in self._slots if path not in groups]:
            self._release(self._slots.pop(path))
        for path, group in groups.items():
            slot = self._slots.get(path)
            if slot is None and path:
                self._assign(path, group.inode)
            elif slot is not None and self._inodes[slot] != group.inode:
                self._release(slot)
                self._assign(path, group.inode)
        self._seen = dict(self._slots)

    def _assign(self, path: str, inode: int) -> None:
        if not self._free:
            start = len(self._inodes)
            self._inodes += [0] * _STEP
            self._paths += [""] * _STEP
            self._free += range(start, start + _STEP)
            for lane in self._lanes:
                lane.widen(_STEP)
        slot = heapq.heappop(self._free)
        self._slots[path] = slot
        self._inodes[slot] = inode
        self._paths[slot] = path
        self._renewed.append(slot)
        for lane in self._lanes:
            lane.assign(slot)

    def _release(self, slot: int) -> None:
        heapq.heappush(self._free, slot)
        self._renewed.append(slot)
        for lane in self._lanes:
            lane.release(slot)

    def read(
        self,
        at: float,
        suspended: float = 0.0,
        *,
        thorough: bool = False,
        comparing: bool = False,
    ) -> counters.Reading:
        """The files whose turn it is; all, or those to compare groups by, where that is asked.

        Memory is read of all groups where one is new.
        """
        batches: list[counters.Batch] = []
        self._tick += 1
        for lane in self._lanes:
            file = lane.file
            whole = thorough or (comparing and file.compared) or (self._renewed and file.urgent)
            for turn in range(file.every) if whole else (0,):
                batches += lane.read(self._tick + turn, fresh=bool(whole))
        renewed, self._renewed = self._renewed, []
        return counters.Reading(
            at=at,
            suspended=suspended,
            slots=self._seen,
            renewed=tuple(renewed),
            width=len(self._inodes),
            batches=tuple(batches),
        )

    def close(self) -> None:
        """Give all descriptors back."""
        for slot in self._slots.values():
            for lane in self._lanes:
                lane.release(slot)
        self._slots = {}
        self._followed = {}
