"""One counter file of all cgroups.

Covers: descriptors, turns, what is not read or understood again, damage and absence.
Does not cover: slots and groups (``groups``), what a file says (``files``).

Rules:
1. What a file says again is not understood again: a batch is the last one with what changed.
2. A file that ``follows`` another is read of the groups of which that one moved since. A read of
   ``memory.stat`` costs five others, and says little new of a group that holds as many bytes as
   before. What may move inside, pages that age or are wanted again, is read after ``STILL`` rounds.
3. A file without descriptor costs ten reads of one that has one. If it ``rests`` and said a thing
   twice, its last text stands for it until the ``STILL``-th round, or a read that has to be fresh.
   When a total moves again, what it did meanwhile counts for the turn in which that is read.
4. CPU time is not read of groups below one that used none (``quiet_groups``).
"""

from __future__ import annotations

import operator
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from koordlet.host.counters import files, quiet_groups
from koordlet.host.fs import root
from koordlet.model import cgroup, counters

#: Turns after which a file is read, too, that follows one which stands still: half a minute.
STILL = 5
#: Bytes of a text that is kept for a file without descriptor.
_SHORT = 512
#: Ticks until a file that a group did not have is looked for again.
_AGAIN = 600
#: Turns in which a file of a new group is looked for before that, where other groups have it.
_TRIES = 5
#: Reads of a turn that are not compared after one in which most files said something else.
_RESTLESS = 8


class DescriptorBudget:
    """Descriptor budget of all lanes, with counts of events."""

    def __init__(self, host: root.HostRoot, handles: int) -> None:
        self.host = host
        self.used = 0
        self.counts: Counter[str] = Counter(read=0, opened=0, gone=0, damaged=0)
        self._most = handles

    @property
    def keeps(self) -> bool:
        """True if anything may be kept: of a recording, which moves on, nothing is."""
        return self._most > 0

    def most(self, file: files.File) -> int:
        """From how many on this file gets none: an eighth is for groups to come, read often."""
        return 0 if not file.kept else self._most - (0 if file.often else self._most // 8)

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
    #: By which the next read sees what moved. In ``_said`` of this lane's own files: short texts,
    #: hashes of long ones (750 ``memory.stat`` are a megabyte). In ``_settled`` of the file that
    #: this one follows.
    marks: Sequence[bytes | int | None]
    batches: Sequence[counters.Batch]


class ReadLane:
    """One counter file of all cgroups."""

    def __init__(
        self,
        room: DescriptorBudget,
        file: files.File,
        where: cgroup.Hierarchy,
        paths: Sequence[str],
        follows: ReadLane | None = None,
    ) -> None:
        self.file, self._follows = file, follows
        self._room, self._where = room, where
        self._width = 0
        #: Of all groups, by slot: a path for each of a thousand files would be a megabyte.
        self._paths = paths
        self._quiet = quiet_groups.QuietGroups(paths) if file.summed else None
        self._handles: dict[int, int] = {}
        self._unread: set[int] = set()  # slots whose file was opened for this read
        self._plain: dict[int, bytes] = {}  # of files without descriptor (rule 3)
        self._resting: set[int] = set()  # those of them that rest
        self._young: dict[int, int] = {}  # not found yet: how often it is still looked for soon
        #: By turn: slots without descriptor that are tried when it comes.
        self._pending: list[set[int]] = [set() for _ in range(file.every)]
        self._absent: list[set[int]] = [set() for _ in range(file.every)]
        #: By turn: descriptors and their slots, ``None`` after a change.
        self._ready: list[tuple[list[int], list[int]] | None] = [None] * file.every
        #: By turn, of a lane that follows: what it said, and what the other said then (rule 2).
        self._settled: list[_Said | None] = [None] * file.every
        self._tick = -1  # when it was read last
        #: By turn: what the files said (rule 1), or how many reads are not worth remembering.
        self._said: list[_Said | int] = [0] * file.every

    @property
    def empty(self) -> bool:
        """True if no cgroup has this file."""
        return not self._handles and not any(self._pending)

    def widen(self, by: int) -> None:
        """There are more slots."""
        self._width += by

    def assign(self, slot: int) -> None:
        """The slot belongs to a group."""
        turn = slot % self.file.every
        self._settled[turn] = None
        self._pending[turn].add(slot)
        self._young[slot] = _TRIES

    def release(self, slot: int) -> None:
        """Free a slot."""
        turn = slot % self.file.every
        self._young.pop(slot, None)
        self._pending[turn].discard(slot)
        self._absent[turn].discard(slot)
        self._drop(slot, turn)

    def is_resting(self, slot: int) -> bool:
        """True if the file is read once in ``STILL`` rounds (rule 3)."""
        return slot in self._resting

    def _drop(self, slot: int, turn: int) -> None:
        self._settled[turn] = None
        self._plain.pop(slot, None)
        self._resting.discard(slot)
        handle = self._handles.pop(slot, None)
        if handle is not None:
            self._room.close(handle)
            self._ready[turn] = None

    def read(self, tick: int, *, fresh: bool = False) -> Sequence[counters.Batch]:
        """The batches of this tick's turn; ``fresh``: whatever another file says."""
        turn, self._tick = tick % self.file.every, tick
        self._unread.clear()
        if tick % _AGAIN < self.file.every and self._absent[turn]:
            self._pending[turn] |= self._absent[turn]
            self._absent[turn].clear()
            self._settled[turn] = None
        moved = None if fresh else self._moved(turn)
        if moved is not None:
            return moved
        damaged, self._settled[turn] = self._room.counts["damaged"], None
        plain = self._open(turn, fresh=fresh) if self._pending[turn] else {}
        ready = self._ready[turn]
        if ready is None:
            slots = sorted(slot for slot in self._handles if slot % self.file.every == turn)
            ready = self._ready[turn] = [self._handles[slot] for slot in slots], slots
        handles, slots = ready
        if not handles and not plain:
            return ()
        quiet, preads = self._quiet, self._preads
        texts = quiet.read(tick, ready, preads, fresh=fresh) if quiet else preads(handles)
        if plain or None in texts:
            slots, known = self._mended(turn, slots, texts, plain)
        else:
            known = cast("list[bytes]", texts)
        batches = self._news(turn, slots, known)
        if damaged == self._room.counts["damaged"]:
            self._settle(turn, slots, batches)
        return batches

    def marks(self, tick: int, slots: Sequence[int]) -> Sequence[bytes | int | None] | None:
        """Texts of these slots' files at this tick; ``None`` if not remembered."""
        remembered = self._said[tick % self.file.every]
        if isinstance(remembered, int) or self._tick != tick:
            return None
        known = dict(zip(remembered.slots, remembered.marks, strict=True))
        return [known.get(slot) for slot in slots]

    def _settle(self, turn: int, slots: list[int], batches: Sequence[counters.Batch]) -> None:
        """Remember what a turn's files said, if all did, and the other file's then (rule 2)."""
        whole, other = self._pending[turn].issubset(slots), self._follows
        if whole and other and batches and (marks := other.marks(self._tick, slots)):
            self._settled[turn] = _Said(slots, self._width, marks, batches)

    def _moved(self, turn: int) -> Sequence[counters.Batch] | None:
        """Only the files of groups of which another file moved; ``None``: all are to be read."""
        before = self._settled[turn]
        marks = None if before is None else self._marks_now(turn, before)
        if before is None or marks is None:
            return None
        slots, batches = before.slots, before.batches
        moved = [at for at, mark in enumerate(marks) if mark is None or mark != before.marks[at]]
        if len(moved) > len(slots) // 2:
            return None
        if moved:
            try:
                columns = self._columns(self._texts([slots[at] for at in moved]))
            except (ValueError, LookupError, OSError):
                return None
            batches = self._changed(batches, slots, moved, columns)
        self._settled[turn] = _Said(slots, self._width, marks, batches)
        return batches

    def _marks_now(self, turn: int, before: _Said) -> Sequence[bytes | int | None] | None:
        """What the other file says of them now; ``None``: this is no turn to go by that."""
        due = (self._tick // self.file.every + turn) % STILL == 0
        if self._follows is None or before.width != self._width or due:
            return None
        return self._follows.marks(self._tick, before.slots)

    def _texts(self, slots: list[int]) -> list[bytes]:
        """Of these slots' files; ``LookupError`` or ``OSError`` where one says nothing."""
        kept = [slot for slot in slots if slot in self._handles]
        read = self._preads(list(map(self._handles.__getitem__, kept)))
        texts = {slot: text for slot, text in zip(kept, read, strict=True) if text is not None}
        return [texts[slot] if slot in self._handles else self._once(slot) for slot in slots]

    def _preads(self, handles: Sequence[int]) -> list[bytes | None]:
        self._room.counts["read"] += len(handles)
        return self._room.host.preads(handles, self.file.size)

    def _changed(
        self,
        batches: Sequence[counters.Batch],
        slots: list[int],
        places: list[int],
        columns: list[array[float]],
    ) -> list[counters.Batch]:
        where = [slots[at] // self.file.every for at in places]
        return [old.changed(where, column) for old, column in zip(batches, columns, strict=False)]

    def _news(self, turn: int, slots: list[int], texts: list[bytes]) -> Sequence[counters.Batch]:
        """Parse the texts that changed since the last time; the others keep their values."""
        remembered = self._said[turn]
        if isinstance(remembered, int) and remembered:
            self._said[turn] = remembered - 1
            return self._batches(turn, slots, texts)
        if (
            isinstance(remembered, int)
            or remembered.slots is not slots
            or remembered.width != self._width
        ):
            return self._anew(turn, slots, texts)
        marks = self._marks(texts)
        if marks != remembered.marks:
            changed = [at for at, mark in enumerate(marks) if mark != remembered.marks[at]]
            if len(changed) > len(texts) // 2:
                # To put so many into their places takes longer than to understand the others.
                self._said[turn] = _RESTLESS
                return self._batches(turn, slots, texts)
            try:
                columns = self._columns([texts[at] for at in changed])
            except (ValueError, IndexError):
                return self._anew(turn, slots, texts)
            batches = self._changed(remembered.batches, slots, changed, columns)
            self._said[turn] = remembered = _Said(slots, self._width, marks, batches)
        return remembered.batches

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

    def _once(self, slot: int) -> bytes:
        """A file's text without a descriptor, which is remembered where it is short (rule 3)."""
        text = self._room.host.read(self.path(slot))[: self.file.size]
        self._room.counts["read"] += 1
        before = self._plain.get(slot)
        if text == before:
            self._resting.add(slot)
        else:
            self._resting.discard(slot)
            if self.file.rests and self._room.keeps and len(text) <= _SHORT:
                self._plain[slot] = text
        return text

    def _open(self, turn: int, *, fresh: bool) -> dict[int, bytes]:
        """Find descriptors for what has none; the texts of what gets none."""
        plain: dict[int, bytes] = {}
        rests = set() if fresh else self._resting
        most = self._room.most(self.file)
        for slot in sorted(self._pending[turn]):
            try:
                if self._room.used >= most:
                    # It stays pending: there may be room the next time.
                    known = slot in rests and (self._tick - slot) % (self.file.every * STILL)
                    plain[slot] = self._plain[slot] if known else self._once(slot)
                    continue
                self._handles[slot] = self._room.open(self.path(slot))
                self._unread.add(slot)
                self._ready[turn] = None
            except OSError as error:
                if self._room.host.silence.met(error, gap=True):
                    continue  # it is there for all anybody knows: asked again at its next turn
                if slot in self._young and (self._handles or plain):
                    # Others have this file: runtimes make a group in one hierarchy after the other.
                    self._young[slot] -= 1
                    if self._young[slot]:
                        continue
                self._drop(slot, turn)
                self._absent[turn].add(slot)
            self._young.pop(slot, None)
            self._pending[turn].discard(slot)
        return plain

    def _mended(
        self, turn: int, slots: list[int], texts: list[bytes | None], plain: Mapping[int, bytes]
    ) -> tuple[list[int], list[bytes]]:
        """Drop vanished cgroups, and open files that have no descriptor."""
        by_slot = dict(plain)
        for slot, text in zip(slots, texts, strict=True):
            if text is not None:
                by_slot[slot] = text
                continue
            # It opens and says EOPNOTSUPP: pressure, switched off.
            never = slot in self._unread and self._is_refused(slot)
            self._room.counts["gone"] += not never
            self._drop(slot, turn)
            (self._absent if never else self._pending)[turn].add(slot)
        order, remembered = sorted(by_slot), self._said[turn]
        if isinstance(remembered, _Said) and remembered.slots == order:
            order = remembered.slots  # they are known by identity
        return order, [by_slot[slot] for slot in order]

    def _is_refused(self, slot: int) -> bool:
        """True if a newly opened file will never have values."""
        try:
            self._room.host.pread(self._handles[slot], 1)
        except OSError as error:
            return not self._room.host.silence.met(error, gap=True)
        return False

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
        for what, column in zip(meters, columns, strict=False):
            if slots and slots[-1] // every == len(slots) - 1:
                # Slots are given from the lowest on, so mostly there are no holes.
                values = column
                values.extend([counters.NAN] * (length - len(slots)))
            else:
                values = array("d", [counters.NAN]) * length
                for slot, value in zip(slots, column, strict=True):
                    values[slot // every] = value
            made.append(counters.Batch(what, turn, every, values))
        return made

    def _columns(self, texts: Sequence[bytes]) -> list[array[float]]:
        """Parse a file's texts. Numbers beyond a float count as malformed."""
        try:
            return [array("d", column) for column in self.file.columns(texts)]
        except OverflowError:
            raise ValueError("a number with hundreds of digits") from None

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
        return kept, [array("d", column) for column in zip(*rows, strict=True)]
