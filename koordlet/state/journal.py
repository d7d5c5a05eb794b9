"""Journal: original values, on disk before koordlet changes them.

Covers: originals and our own last values, one entry per target, crash-safe.
Does not cover: its file (``state.journal_file``), one record and what records amount to
(``state.records``), what to do with entries (``apply.planner``), every action's story
(``state.audit``).

Format: one record per line, JSON, a tab, CRC-32 of the JSON in hex. Records are facts about a
target (``intent``, ``done``, ``forget``); the newest of a target wins. A header names machine, boot
and cgroup root: cgroups do not survive a boot, so a journal of another one is dropped, and the
names of groups mean something below that root only. It is there twice, and every record has a
newline on both sides, so that no single damaged byte costs more than one record.

Rules:
1. An intent is on disk (fsync) before the first write that it speaks of. What follows (``done``,
   ``forget``) is written with the next intent or ``flush``: a crash that loses it costs one more
   look at each target, because the intent names every value that may be ours. Whoever intends
   waits for a bounded time (``state.disk``) and hears of what is not known to be on disk by then:
   that becomes an entry when it is. What was read back is written when it has stood for a while.
2. A damaged line is skipped and reported; nothing after it is lost.
3. The file is bounded: when it holds four times more records than entries it is written anew,
   atomically.
4. A file that somebody removed is missed by the next intent or ``flush``, and written anew.
5. Older formats are read and written anew as this one. A newer one is refused: it may hold what
   this koordlet cannot put back. Format 1 had no cgroup root.
"""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from koordlet.model import errors
from koordlet.state import disk, journal_file, ownfiles, records

#: Version of the format that is written; every version up to it is read.
FORMAT = 2

_READABLE = (1, FORMAT)
_MIN_RECORDS = 256
#: What the disk is asked under: one at a time, so what is written is in the order of its happening.
_ERRAND = "the journal of originals"

#: What a journal holds.
Entry = records.Entry


class Journal:
    """An append-only file and the entries that it amounts to."""

    def __init__(
        self,
        path: Path,
        *,
        machine_id: str,
        boot_id: str,
        root: str = "",
        on: disk.Disk | None = None,
        refusal: records.Refusal = records.never,
    ) -> None:
        self.path = path
        #: Why an entry of the file cannot be ours, whatever it says; empty where it may be.
        self._refusal = refusal
        self.disk = disk.Disk(path.parent) if on is None else on
        #: The cgroup root that the groups of the entries are below. That of the file, while it has
        #: entries; see ``move``.
        self.root = root
        self.entries: dict[str, Entry] = {}
        self._groups: tuple[str, ...] | None = None
        #: What was wrong with the file when it was opened, for the log.
        self.damage: list[str] = []
        #: A file that could not be read at all is kept here.
        self.aside: Path | None = None
        self._stamp = {"machine_id": machine_id, "boot_id": boot_id}
        #: Facts that a crash may lose, until the next write: of each target the newest.
        self._notes: dict[str, bytes] = {}
        #: Targets whose values were read back since; what is intended next says more than that.
        self._readings: set[str] = set()
        #: Entries of the errand that is out, each with the one that it takes the place of.
        self._coming: list[tuple[Entry, Entry | None]] = []
        #: Why the last errand failed.
        self._failure: OSError | None = None
        #: Records from which on the file is written anew; more after a disk that had no room.
        self._limit = _MIN_RECORDS
        ownfiles.directory(path.parent)
        outdated, count, headed = self._load(root)
        self._file = journal_file.JournalFile(path, count, headed)
        try:
            if count == 0:
                self.compact()
            elif self.damage or outdated:
                self._tidy()
        except OSError:
            self.close()
            raise

    def close(self) -> bool:
        """Give the descriptor back; ``False`` where the disk holds it: then it stays with that."""
        self.disk.wait(_ERRAND, disk.LONG)
        self.flush()
        if not self.entries and not self.damage and self.disk.wait(_ERRAND, disk.LONG):
            # That there is one says that there is something to look after.
            with contextlib.suppress(OSError):
                self._errand(self.path.unlink, patience=disk.LONG)
        closed = self.disk.close()
        if closed:
            self._file.close()
        return closed

    @property
    def removed(self) -> int:
        """How often the file was gone from under its name, and was written anew."""
        return self._file.removed

    @property
    def lost(self) -> int:
        """Records that a full disk cost us; the entries in memory are right all the same."""
        return self._file.lost

    # Facts ---------------------------------------------------------------------------------------

    def collect(self) -> None:
        """Take the results of finished disk errands."""
        self.disk.collect()

    def intend(self, entries: Iterable[Entry], patience: float = disk.OPENING) -> Collection[str]:
        """Write intents to disk, with one fsync for all of them.

        The targets of which that is not known in time: nothing may be written there yet.
        """
        fresh = self._fresh(entries)
        if not fresh:
            return ()
        if self.disk.out(_ERRAND):
            if not self.disk.wait(_ERRAND, patience):
                return {entry.target for entry in fresh}
            fresh = self._fresh(fresh)
        if self._file.root != self.root:
            self.compact(patience)
            if self.disk.out(_ERRAND):
                return {entry.target for entry in fresh}
        notes, self._notes = list(self._notes.values()), {}
        self._coming = [(entry, self.entries.get(entry.target)) for entry in fresh]
        lines = [records.intent(entry) for entry in fresh]
        try:
            written = self._errand(
                functools.partial(self._file.append, notes, lines), self._landed, patience=patience
            )
        except FileNotFoundError:
            return self.intend(fresh, patience)  # rule 4
        if not written:
            return {entry.target for entry in fresh}
        # Only now: what is written anew is what ``entries`` holds.
        self._bound()
        return ()

    def _fresh(self, entries: Iterable[Entry]) -> list[Entry]:
        known = self.entries
        return [entry for entry in entries if known.get(entry.target) != entry]

    def _landed(self, error: OSError | None) -> None:
        """What was intended is on disk; where something newer is known already, that stays."""
        known, readings = self.entries, self._readings
        for entry, before in self._coming if error is None else ():
            if known.get(entry.target) is before:
                known[entry.target] = entry
                readings.discard(entry.target)
        self._groups = None
        self._coming.clear()

    @property
    def groups(self) -> tuple[str, ...]:
        """Of the entries, each once; the same object while none came or went."""
        if self._groups is None:
            self._groups = tuple(dict.fromkeys(entry.group for entry in self.entries.values()))
        return self._groups

    def remember(self, entries: Iterable[Entry]) -> None:
        """Know of entries without putting them on disk."""
        self.entries.update((entry.target, entry) for entry in entries)
        self._groups = None

    def note(self, entry: Entry) -> None:
        """Know of an entry now; on disk it is when the disk answers."""
        self.entries[entry.target] = entry
        self._groups = None
        self._notes[entry.target] = records.intent(entry)

    def done(self, target: str, value: str, inode: int) -> None:
        """Our value is there, as read back."""
        before = self.entries[target]
        if before.sure and before.values == (value,) and before.inode == inode:
            return
        self.entries[target] = before.landed(value, inode)
        if before.values == (value,) and before.inode == inode:
            return  # the intent names it alone, in the same group: the file knows enough
        self._readings.add(target)

    def forget(self, target: str) -> None:
        """The original is back, or the group is gone."""
        if self.entries.pop(target, None) is not None:
            self._groups = None
            self._notes[target] = records.line({"forget": {"target": target}})

    def flush(self, *, readings: bool = True) -> None:
        """Write the facts that may be lost; a disk without room loses them. Waits for nothing.

        ``readings``: with what was read back, and was not written over since.
        """
        if not self.disk.wait(_ERRAND, 0.0):
            return
        if self._file.root == self.root:
            notes, self._notes = list(self._notes.values()), {}
            notes += self._read_back() if readings else ()
            todo = notes or (readings and self.entries)
            if todo and not self._errand(functools.partial(self._file.note, notes), patience=0.0):
                return
        if self._file.root is None:
            self._tidy(0.0)
        self._bound()

    def _read_back(self) -> Iterator[bytes]:
        targets, self._readings = self._readings, set()
        for target in sorted(targets):
            entry = self.entries.get(target)
            if entry is not None and entry.sure and len(entry.values) == 1:
                yield records.done(target, entry.values[0], entry.inode)

    def move(self, root: str) -> None:
        """Entries to come are of groups below another cgroup root; there must be none now."""
        if self.entries:
            raise errors.BugError("the journal still has entries below its root", culprit=self.root)
        if root != self.root:
            self.root = root
            self.compact()

    # The file ------------------------------------------------------------------------------------

    def compact(self, patience: float = disk.LONG) -> None:
        """Write the header and the live entries anew, atomically."""
        if not self.disk.wait(_ERRAND, patience):
            return  # it is written anew when there is a reason the next time
        root = self.root
        header = {"format": FORMAT, **self._stamp, "root": root}
        lines = [
            *(records.line(header) for _ in range(records.HEADERS)),
            *(records.intent(entry) for entry in self.entries.values()),
        ]
        # They are in the entries.
        notes, self._notes = self._notes, {}
        readings, self._readings = self._readings, set()

        def heard(error: OSError | None) -> None:
            if error is None:
                self._limit = _MIN_RECORDS
                return
            # A full disk leaves the long file as it is, whenever it says so.
            self._notes = {**notes, **self._notes}
            self._readings |= readings
            self._limit = max(_MIN_RECORDS, 2 * self._file.records)

        self._errand(functools.partial(self._file.replace, lines, root), heard, patience=patience)

    def _errand(
        self, work: Callable[[], None], then: disk.Then = lambda _: None, *, patience: float
    ) -> bool:
        """Have the disk do something to the file; ``OSError`` where it refuses in time."""

        def heard(error: OSError | None) -> None:
            self._failure = error
            then(error)

        # Nobody else asks this disk, and there is nothing out: so it takes it.
        self.disk.ask(_ERRAND, work, heard)
        if not self.disk.wait(_ERRAND, patience):
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def _bound(self) -> None:
        if self._file.records > max(self._limit, 4 * len(self.entries)):
            self._tidy(0.0)

    def _tidy(self, patience: float = disk.LONG) -> None:
        """A full disk leaves the long file as it is, which holds the same facts."""
        with contextlib.suppress(OSError):
            self.compact(patience)

    def _load(self, root: str) -> tuple[bool, int, str | None]:
        """Read the file: whether it is of an older format, how many records, their cgroup root."""
        try:
            raw = ownfiles.read(self.path)
        except FileNotFoundError:
            return False, 0, None
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            raw = b""
        reading = records.read(raw, self._refusal)
        if reading.header is None or not self._is_mine(reading):
            self._set_aside(readable=reading.header is not None)
            return False, 0, None
        self.entries.update(reading.entries)
        self.damage += [f"{self.path}: {damage}" for damage in reading.damage]
        headed = str(reading.header.get("root", root))
        if self.entries:
            self.root = headed
        outdated = reading.format != FORMAT or reading.header.get("root") != self.root
        return outdated, reading.count, headed

    def _is_mine(self, reading: records.Reading) -> bool:
        """Whether this boot of this machine wrote it, in a format that can be read."""
        if not reading.is_of(self._stamp):
            return False
        if reading.format > FORMAT:
            raise errors.HostError(
                f"a newer koordlet wrote the journal"
                f" (format {reading.format}, this one knows {FORMAT})",
                culprit=str(self.path),
                fix="restore with that version first (koordlet restore),"
                " or remove the file and lose the originals in it",
            )
        return reading.format in _READABLE

    def _set_aside(self, *, readable: bool) -> None:
        # Of another boot there is nothing to put back: cgroups start empty. What we cannot read is
        # kept for a person to look at.
        if not readable and self.path.stat().st_size:
            self.aside = self.path.with_name(self.path.name + ".damaged")
            self.path.replace(self.aside)
            self.damage.append(f"{self.path}: not readable as a journal, kept as {self.aside.name}")
        else:
            self.path.unlink()


def peek(path: Path, *, machine_id: str, boot_id: str) -> dict[str, Entry]:
    """The entries of this boot's journal, for somebody who only looks: nothing is repaired."""
    try:
        raw = ownfiles.read(path)
    except FileNotFoundError:
        return {}
    reading = records.read(raw)
    return reading.entries if reading.is_of({"machine_id": machine_id, "boot_id": boot_id}) else {}
