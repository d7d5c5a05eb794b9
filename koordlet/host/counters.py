"""Reads what groups use: many small files, very often, at almost no cost.

Covers: kept descriptors, turns, slots, damage and absence of single files.
Does not cover: which groups there are (``host.cgroups``), rates and windows (``history``).

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
import operator
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from koordlet.host import counter_files, root
from koordlet.model import cgroup, counters

#: Descriptors that are kept: 28 MB of kernel memory when all are in use, which is at 750 groups.
HANDLES = 7168
#: Ticks until a file that a group did not have is looked for again.
_AGAIN = 600
#: Turns in which a file of a new group is looked for before that, where other groups have it.
_TRIES = 5
#: Reads of a turn that are not compared after one in which most files said something else.
_RESTLESS = 8
#: Slots are added in steps, so that columns do not move with every new group.
_STEP = 64


class Reader:
    """Reads the counters of the groups of one layout."""

    def __init__(
        self,
        host: root.HostRoot,
        layout: cgroup.Layout,
        *,
        nodes: Sequence[int] = (),
        handles: int = HANDLES,
    ) -> None:
        self._room = _Room(host, handles)
        files = list(counter_files.table())
        files += [counter_files.numa(nodes, unified=u) for u in (False, True) if len(nodes) > 1]
        #: By slot.
        self._paths: list[str] = []
        self._lanes = [
            _Lane(self._room, file, where, self._paths)
            for file in files
            if (where := file.here(layout)) is not None
        ]
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
        """What happened so far: files read, opened, gone, damaged."""
        return self._room.counts

    @property
    def missing(self) -> frozenset[str]:
        """Names of files that none of the groups has."""
        return frozenset(lane.file.name for lane in self._lanes if self._slots and lane.empty)

    def follow(self, groups: Mapping[str, cgroup.Group]) -> None:
        """From now on these groups are read, by path. The root group is the node: not here."""
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
                batches += lane.read(self._tick + turn)
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


class _Room:
    """The descriptors of all lanes, and what happened to them."""

    def __init__(self, host: root.HostRoot, handles: int) -> None:
        self.host = host
        self.used = 0
        self.counts: Counter[str] = Counter(read=0, opened=0, gone=0, damaged=0)
        self._most = handles

    @property
    def full(self) -> bool:
        return self.used >= self._most

    def open(self, path: root.HostPath) -> int:
        handle = self.host.open(path)
        self.used += 1
        self.counts["opened"] += 1
        return handle

    def close(self, handle: int) -> None:
        self.used -= 1
        self.host.close(handle)


class _Said(NamedTuple):
    """One turn as it was read last: most files of most groups say the same again."""

    slots: list[int]
    width: int
    #: Short texts, hashes of long ones: 750 ``memory.stat`` are a megabyte.
    marks: Sequence[bytes | int]
    batches: Sequence[counters.Batch]


class _Lane:
    """One file of all groups."""

    def __init__(
        self,
        room: _Room,
        file: counter_files.File,
        where: cgroup.Hierarchy,
        paths: Sequence[str],
    ) -> None:
        self.file = file
        self._room = room
        self._where = where
        self._width = 0
        #: Of all groups, by slot: a path for each of a thousand files would be a megabyte.
        self._paths = paths
        self._handles: dict[int, int] = {}
        self._unread: set[int] = set()  # slots whose file was opened for this read
        #: Slots whose file was not found yet, and how often it is still looked for soon.
        self._young: dict[int, int] = {}
        #: By turn: slots without descriptor that are tried when it comes.
        self._pending: list[set[int]] = [set() for _ in range(file.every)]
        self._absent: list[set[int]] = [set() for _ in range(file.every)]
        #: By turn: descriptors and their slots, ``None`` after a change.
        self._ready: list[tuple[list[int], list[int]] | None] = [None] * file.every
        #: By turn: what the files said, or for how many reads it is not worth remembering.
        self._said: list[_Said | int] = [0] * file.every

    @property
    def empty(self) -> bool:
        """Whether no group has this file."""
        return not self._handles and not any(self._pending)

    def widen(self, by: int) -> None:
        """There are more slots."""
        self._width += by

    def assign(self, slot: int) -> None:
        """The slot belongs to a group."""
        self._pending[slot % self.file.every].add(slot)
        self._young[slot] = _TRIES

    def release(self, slot: int) -> None:
        """The slot belongs to nobody."""
        turn = slot % self.file.every
        self._young.pop(slot, None)
        self._pending[turn].discard(slot)
        self._absent[turn].discard(slot)
        self._drop(slot, turn)

    def _drop(self, slot: int, turn: int) -> None:
        handle = self._handles.pop(slot, None)
        if handle is not None:
            self._room.close(handle)
            self._ready[turn] = None

    def read(self, tick: int) -> Sequence[counters.Batch]:
        """The batches of this tick's turn."""
        turn = tick % self.file.every
        self._unread.clear()
        if tick % _AGAIN < self.file.every:
            self._pending[turn] |= self._absent[turn]
            self._absent[turn].clear()
        plain = self._open(turn) if self._pending[turn] else {}
        ready = self._ready[turn]
        if ready is None:
            slots = sorted(slot for slot in self._handles if slot % self.file.every == turn)
            ready = self._ready[turn] = [self._handles[slot] for slot in slots], slots
        handles, slots = ready
        if not handles and not plain:
            return ()
        texts = self._room.host.preads(handles, self.file.size)
        self._room.counts["read"] += len(texts) + len(plain)
        if plain or None in texts:
            mended, texts = self._mended(turn, slots, texts, plain)
            return self._batches(turn, mended, texts)  # type: ignore[arg-type] # none is left
        return self._news(turn, slots, texts)  # type: ignore[arg-type] # as above

    def _news(self, turn: int, slots: list[int], texts: list[bytes]) -> Sequence[counters.Batch]:
        """What differs from the last time is understood; the rest says what it said."""
        said = self._said[turn]
        if isinstance(said, int) and said:
            self._said[turn] = said - 1
            return self._batches(turn, slots, texts)
        if isinstance(said, int) or said.slots is not slots or said.width != self._width:
            return self._anew(turn, slots, texts)
        marks = self._marks(texts)
        if marks != said.marks:
            changed = [at for at, mark in enumerate(marks) if mark != said.marks[at]]
            if len(changed) > len(texts) // 2:
                # To put so many into their places takes longer than to understand the others.
                self._said[turn] = _RESTLESS
                return self._batches(turn, slots, texts)
            try:
                columns = self._columns([texts[at] for at in changed])
            except (ValueError, IndexError):
                return self._anew(turn, slots, texts)
            where = [slots[at] // self.file.every for at in changed]
            pairs = zip(said.batches, columns, strict=False)
            batches = [before.changed(where, column) for before, column in pairs]
            self._said[turn] = said = _Said(slots, self._width, marks, batches)
        return said.batches

    def _marks(self, texts: list[bytes]) -> Sequence[bytes | int]:
        return texts if self.file.short else list(map(hash, texts))

    def _anew(self, turn: int, slots: list[int], texts: list[bytes]) -> Sequence[counters.Batch]:
        """All of it is understood. What is damaged is counted each time, so not remembered."""
        damaged = self._room.counts["damaged"]
        batches = self._batches(turn, slots, texts)
        keep = batches and damaged == self._room.counts["damaged"]
        self._said[turn] = _Said(slots, self._width, self._marks(texts), batches) if keep else 0
        return batches

    def path(self, slot: int) -> root.HostPath:
        """The file of the group in a slot."""
        return self._room.host.at(f"{self._where.directory(self._paths[slot])}/{self.file.name}")

    def _open(self, turn: int) -> dict[int, bytes]:
        """Find descriptors for what has none; the texts of what gets none."""
        plain: dict[int, bytes] = {}
        for slot in sorted(self._pending[turn]):
            try:
                if self._room.full or not self.file.kept:
                    # It stays pending: there may be room the next time.
                    plain[slot] = self._room.host.read(self.path(slot))[: self.file.size]
                    continue
                self._handles[slot] = self._room.open(self.path(slot))
                self._unread.add(slot)
                self._ready[turn] = None
            except OSError:
                if slot in self._young and (self._handles or plain):
                    # Others have this file: runtimes make a group in one hierarchy after the other.
                    self._young[slot] -= 1
                    if self._young[slot]:
                        continue
                self._absent[turn].add(slot)
            self._young.pop(slot, None)
            self._pending[turn].discard(slot)
        return plain

    def _mended(
        self, turn: int, slots: list[int], texts: list[bytes | None], plain: Mapping[int, bytes]
    ) -> tuple[list[int], list[bytes | None]]:
        """Without the groups that are gone, with the files that have no descriptor."""
        found: dict[int, bytes | None] = dict(plain)
        for slot, text in zip(slots, texts, strict=True):
            if text is not None:
                found[slot] = text
                continue
            never = slot in self._unread  # it opens and says EOPNOTSUPP: pressure, switched off
            self._room.counts["gone"] += not never
            self._drop(slot, turn)
            (self._absent if never else self._pending)[turn].add(slot)
        order = sorted(found)
        return order, [found[slot] for slot in order]

    def _batches(self, turn: int, slots: list[int], texts: list[bytes]) -> list[counters.Batch]:
        every, meters = self.file.every, self.file.meters
        if not texts:
            return []
        try:
            columns = self._columns(texts)
        except (ValueError, IndexError):
            slots, columns = self._bearable(slots, texts)
        length = len(range(turn, self._width, every))
        made = []
        for one, column in zip(meters, columns, strict=False):
            if slots and slots[-1] // every == len(slots) - 1:
                # Slots are given from the lowest on, so mostly there are no holes.
                values = column
                values.extend([counters.NAN] * (length - len(slots)))
            else:
                values = array("d", [counters.NAN]) * length
                for slot, value in zip(slots, column, strict=True):
                    values[slot // every] = value
            made.append(counters.Batch(one, turn, every, values))
        return made

    def _columns(self, texts: Sequence[bytes]) -> list[array[float]]:
        """What a file's texts say. What no float holds is damage, too."""
        try:
            return [array("d", one) for one in self.file.columns(texts)]
        except OverflowError:
            raise ValueError("a number of hundreds of digits") from None

    def _bearable(
        self, slots: list[int], texts: list[bytes]
    ) -> tuple[list[int], list[array[float]]]:
        """One text after the other; those that say nothing are left out and counted."""
        kept: list[int] = []
        rows: list[tuple[float, ...]] = []
        for slot, text in zip(slots, texts, strict=True):
            try:
                columns = self._columns([text])
            except (ValueError, IndexError):
                self._room.counts["damaged"] += 1
                continue
            kept.append(slot)
            rows.append(tuple(map(operator.itemgetter(0), columns)))
        if not rows:
            return kept, [array("d") for _ in self.file.meters]
        return kept, [array("d", one) for one in zip(*rows, strict=True)]
