"""The journal: what was there before we came, on disk before we change it.

Covers: originals and our own last values, one entry per target, crash-safe.
Does not cover: what to do with them (``apply.planner``), every action's story (``state.audit``).

Format: one record per line, JSON, a tab, CRC-32 of the JSON in hex. Records are facts about a
target (``intent``, ``done``, ``forget``); the newest of a target wins. A header names machine, boot
and cgroup root: cgroups do not survive a boot, so a journal of another one is dropped, and the
names of groups mean something below that root only. It is there twice, and every record has a
newline on both sides, so that no single damaged byte costs more than one record.

Rules:
1. An intent is on disk (fsync) before the first write that it speaks of. What follows (``done``,
   ``forget``) is written with the next intent or ``flush``: a crash that loses it costs one more
   look at each target, because the intent names every value that may be ours.
2. A damaged line is skipped and reported; nothing after it is lost.
3. The file is bounded: when it holds four times more records than entries it is written anew,
   atomically.
4. Older formats are read and written anew as this one. A newer one is refused: it may hold what
   this koordlet cannot put back. Format 1 had no cgroup root.
"""

from __future__ import annotations

import functools
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring_ascii as _quote
from pathlib import Path
from typing import NamedTuple

from koordlet.model import errors

#: Version of the format that is written; every version up to it is read.
FORMAT = 2

_READABLE = (1, FORMAT)
_MIN_RECORDS = 256
#: Copies of the header.
_HEADERS = 2
_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class Entry(NamedTuple):
    """One target that we changed and have not put back. A tuple: plans make a thousand at once."""

    kind: str
    target: str
    policy: str
    #: The text found before our first write; ``None`` when nothing was there, or nobody could read
    #: it: then there is nothing to put back.
    original: str | None
    #: Texts that are ours: the last one that was read back, and any that may be on its way.
    values: tuple[str, ...]
    knob: str = ""
    group: str = ""
    #: The group's inode: another group under the same path is none of our business.
    inode: int = 0
    unix_time: float = 0.0
    #: True once a value of ours was read back: until then the original there is nobody's answer.
    sure: bool = False
    #: Where a unit's properties were set: the unit, and what systemd said of each before.
    unit: str = ""
    properties: tuple[tuple[str, str], ...] = ()

    def holding(self, values: tuple[str, ...]) -> Entry:
        """The entry with other values."""
        return Entry._make((*self[:4], values, *self[5:]))

    def landed(self, value: str, inode: int) -> Entry:
        """The entry once a value was read back, in the group as it is now."""
        # By place: ``_replace`` takes four times as long.
        return Entry._make((*self[:4], (value,), *self[5:7], inode, self[8], True, *self[10:]))


class Journal:
    """An append-only file and the entries that it amounts to."""

    def __init__(self, path: Path, *, machine_id: str, boot_id: str, root: str = "") -> None:
        self.path = path
        #: The cgroup root that the groups of the entries are below. That of the file, while it has
        #: entries; see ``move``.
        self.root = root
        self.entries: dict[str, Entry] = {}
        #: What was wrong with the file when it was opened, for the log.
        self.damage: list[str] = []
        #: Records that a full disk cost us; the entries in memory are right all the same.
        self.lost = 0
        self._stamp = {"machine_id": machine_id, "boot_id": boot_id}
        self._records = 0
        #: Facts that a crash may lose, until the next write.
        self._notes: list[bytes] = []
        #: Records from which on the file is written anew; more after a disk that had no room.
        self._limit = _MIN_RECORDS
        path.parent.mkdir(parents=True, exist_ok=True)
        outdated = self._load(root)
        self._file = os.open(path, _OPEN, 0o600)
        try:
            if self._records == 0:
                self.compact()
            elif self.damage or outdated:
                self._tidy()
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._file)

    # Facts ---------------------------------------------------------------------------------------

    def intend(self, entries: Iterable[Entry]) -> None:
        """Put what is about to happen on disk, with one fsync for all of it."""
        fresh = [entry for entry in entries if self.entries.get(entry.target) != entry]
        if not fresh:
            return
        self.flush()
        self._append([_framed(_intent(entry)) for entry in fresh], sync=True)
        self.remember(fresh)
        # Only now: what is written anew is what ``entries`` holds.
        self._bound()

    def remember(self, entries: Iterable[Entry]) -> None:
        """Know of entries without putting them on disk."""
        self.entries.update((entry.target, entry) for entry in entries)

    def done(self, target: str, value: str, inode: int) -> None:
        """Our value is there, as read back."""
        before = self.entries[target]
        if before.sure and before.values == (value,) and before.inode == inode:
            return
        self.entries[target] = before.landed(value, inode)
        if before.values == (value,) and before.inode == inode:
            return  # the intent names it alone, in the same group: the file knows enough
        self._notes.append(_line({"done": {"target": target, "value": value, "inode": inode}}))

    def forget(self, target: str) -> None:
        """The original is back, or the group is gone."""
        if self.entries.pop(target, None) is not None:
            self._notes.append(_line({"forget": {"target": target}}))

    def flush(self) -> None:
        """Write the facts that may be lost; a disk without room loses them."""
        notes, self._notes = self._notes, []
        try:
            self._append(notes)
        except OSError:
            self.lost += len(notes)
        self._bound()

    def move(self, root: str) -> None:
        """Entries to come are of groups below another cgroup root; there must be none now."""
        if self.entries:
            raise errors.BugError("the journal still has entries below its root", culprit=self.root)
        if root != self.root:
            self.root = root
            self.compact()

    # The file ------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write the header and the live entries anew, atomically."""
        fresh = self.path.with_name(self.path.name + ".new")
        header = {"format": FORMAT, **self._stamp, "root": self.root}
        lines = [
            *(_line(header) for _ in range(_HEADERS)),
            *(_framed(_intent(entry)) for entry in self.entries.values()),
        ]
        handle = os.open(fresh, _OPEN | os.O_TRUNC, 0o600)
        try:
            _write_all(handle, b"".join(lines))
            os.fsync(handle)
            fresh.replace(self.path)
        except OSError:
            os.close(handle)
            fresh.unlink(missing_ok=True)
            raise
        os.close(self._file)
        self._file = handle
        self._records = len(lines)
        # They are in the entries.
        self._notes.clear()
        sync_directory(self.path.parent)

    def _append(self, records: list[bytes], *, sync: bool = False) -> None:
        if not records:
            return
        size = os.fstat(self._file).st_size
        try:
            _write_all(self._file, b"".join(records))
            if sync:
                os.fsync(self._file)
        except OSError:
            # A full disk: leave no half record for the next one to be glued to.
            os.ftruncate(self._file, size)
            raise
        self._records += len(records)

    def _bound(self) -> None:
        if self._records > max(self._limit, 4 * len(self.entries)):
            self._tidy()

    def _tidy(self) -> None:
        """A full disk leaves the long file as it is, which holds the same facts."""
        try:
            self.compact()
            self._limit = _MIN_RECORDS
        except OSError:
            self._limit = 2 * self._records

    def _load(self, root: str) -> bool:
        """Read the file; ``True`` where it is of an older format."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return False
        lines = [(n, line) for n, line in enumerate(raw.split(b"\n"), 1) if line]
        records = [(number, _parse(line)) for number, line in lines]
        # One more: a damaged byte may have become a newline.
        first = [record for _, record in records[: _HEADERS + 1] if record is not None]
        header = next((record for record in first if "format" in record), None)
        if header is None or not self._is_mine(header):
            self._set_aside(header)
            return False
        for number, record in records:
            if record is None or not ("format" in record or _fold(self.entries, record)):
                self.damage.append(f"{self.path}:{number}: damaged record skipped")
        self._records = len(records)
        if self.entries:
            self.root = str(header.get("root", root))
        return header["format"] != FORMAT or header.get("root") != self.root

    def _is_mine(self, header: Mapping[str, object]) -> bool:
        """Whether this boot of this machine wrote it, in a format that can be read."""
        if any(header.get(key) != value for key, value in self._stamp.items()):
            return False
        found = header["format"]
        if isinstance(found, int) and found > FORMAT:
            raise errors.HostError(
                f"the journal is of a newer koordlet (format {found}, this one knows {FORMAT})",
                culprit=str(self.path),
                fix="put everything back with that version first (koordlet restore),"
                " or remove the file and give up the originals in it",
            )
        return found in _READABLE

    def _set_aside(self, header: Mapping[str, object] | None) -> None:
        # Of another boot there is nothing to put back: cgroups start empty. What we cannot read is
        # kept for a person to look at.
        if header is None and self.path.stat().st_size:
            aside = self.path.with_name(self.path.name + ".damaged")
            self.path.replace(aside)
            self.damage.append(f"{self.path}: not readable as a journal, kept as {aside.name}")
        else:
            self.path.unlink()


def peek(path: Path, *, machine_id: str, boot_id: str) -> dict[str, Entry]:
    """The entries of this boot's journal, for somebody who only looks: nothing is repaired."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    records = [found for line in raw.split(b"\n") if (found := _parse(line)) is not None]
    header = next((record for record in records if "format" in record), {})
    if (header.get("machine_id"), header.get("boot_id")) != (machine_id, boot_id):
        return {}
    entries: dict[str, Entry] = {}
    for record in records:
        _fold(entries, record)
    return entries


def _fold(entries: dict[str, Entry], record: Mapping[str, object]) -> bool:
    """Fold one record in; ``False`` when it makes no sense."""
    kind, body = next(iter(record.items()), ("", None))
    if not isinstance(body, dict):
        return False
    try:
        if kind == "intent":
            listed = {key: tuple(body[key]) for key in ("values", "properties") if key in body}
            entry = Entry(**{**body, **listed})
            entry = entry._replace(properties=tuple((a, b) for a, b in entry.properties))
            entries[entry.target] = entry
        elif kind == "done":
            before = entries[body["target"]]
            entries[before.target] = before.landed(body["value"], body["inode"])
        elif kind == "forget":
            entries.pop(body["target"], None)
        else:
            return False
    except (KeyError, TypeError, ValueError):
        return False
    return True


def sync_directory(path: Path) -> None:
    """Make a rename or a new name in a directory survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


#: All of a plan have one time.
_repr = functools.lru_cache(maxsize=16)(repr)
_encode = json.JSONEncoder(separators=(",", ":")).encode


def _intent(entry: Entry) -> bytes:
    """An entry as a record; what is as usual is left out.

    Written out by hand: it is the dearest part of a plan, and an encoder takes four times as long.
    """
    original = "null" if entry.original is None else _quote(entry.original)
    more = ',"sure":true' if entry.sure else ""
    if entry.unit:
        more += f',"unit":{_quote(entry.unit)},"properties":{_encode(entry.properties)}'
    return (
        f'{{"intent":{{"kind":{_quote(entry.kind)},"target":{_quote(entry.target)},'
        f'"policy":{_quote(entry.policy)},"original":{original},'
        f'"values":[{",".join(map(_quote, entry.values))}],"knob":{_quote(entry.knob)},'
        f'"group":{_quote(entry.group)},"inode":{entry.inode},'
        f'"unix_time":{_repr(entry.unix_time)}{more}}}}}'
    ).encode()


def _line(record: Mapping[str, object]) -> bytes:
    return _framed(_encode(record).encode())


def _framed(body: bytes) -> bytes:
    return b"\n%s\t%08x\n" % (body, zlib.crc32(body))


def _parse(line: bytes) -> Mapping[str, object] | None:
    body, _, checksum = line.rpartition(b"\t")
    try:
        if int(checksum, 16) != zlib.crc32(body):
            return None
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
