"""The journal: what was there before we came, on disk before we change it.

Covers: originals and our own last values, one entry per target, crash-safe.
Does not cover: what to do with them (``apply.planner``), every action's story (``state.audit``).

Format: one record per line, JSON, a tab, CRC-32 of the JSON in hex. Records are facts about a
target (``intent``, ``done``, ``forget``); the newest of a target wins. A header names machine and
boot: cgroups do not survive a boot, so a journal of another one is set aside. It is there twice,
and every record has a newline on both sides, so that no single damaged byte costs more than one
record.

Rules:
1. An intent is on disk (fsync) before the first write that it speaks of.
2. A damaged line is skipped and reported; nothing after it is lost.
3. The file is bounded: when it holds four times more records than entries it is written anew,
   atomically.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

#: Version of the format; a journal of another one is set aside, not guessed at.
FORMAT = 1

_MIN_RECORDS = 256
#: Copies of the header.
_HEADERS = 2
_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One target that we changed and have not put back."""

    kind: str
    target: str
    policy: str
    #: The text found before our first write; ``None`` when nothing was there.
    original: str | None
    #: Texts that are ours: the last one that was read back, and any that may be on its way.
    values: tuple[str, ...]
    knob: str = ""
    group: str = ""
    #: The group's inode: another group under the same path is none of our business.
    inode: int = 0
    unix_time: float = 0.0


class Journal:
    """An append-only file and the entries that it amounts to."""

    def __init__(self, path: Path, *, machine_id: str, boot_id: str) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        #: What was wrong with the file when it was opened, for the log.
        self.damage: list[str] = []
        #: Records that a full disk cost us; the entries in memory are right all the same.
        self.lost = 0
        self._header = {"format": FORMAT, "machine_id": machine_id, "boot_id": boot_id}
        self._records = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._load()
        self._file = os.open(path, _OPEN, 0o600)
        try:
            if self._records == 0:
                self.compact()
            elif self.damage:
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
        fresh = list(entries)
        self._append([_line({"intent": asdict(entry)}) for entry in fresh], sync=True)
        self.remember(fresh)
        # Only now: what is written anew is what ``entries`` holds.
        self._bound()

    def remember(self, entries: Iterable[Entry]) -> None:
        """Know of entries without putting them on disk."""
        self.entries.update((entry.target, entry) for entry in entries)

    def done(self, target: str, value: str, inode: int) -> None:
        """Our value is there, as read back. Losing this record is harmless: the intent has it."""
        entry = replace(self.entries[target], values=(value,), inode=inode)
        self.entries[target] = entry
        self._note({"done": {"target": target, "value": value, "inode": inode}})

    def forget(self, target: str) -> None:
        """The original is back, or the group is gone."""
        if self.entries.pop(target, None) is not None:
            self._note({"forget": {"target": target}})

    def sync(self) -> None:
        """Make everything so far survive a power cut."""
        os.fsync(self._file)

    # The file ------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Write the header and the live entries anew, atomically."""
        fresh = self.path.with_name(self.path.name + ".new")
        lines = [
            *(_line(self._header) for _ in range(_HEADERS)),
            *(_line({"intent": asdict(e)}) for e in self.entries.values()),
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
        sync_directory(self.path.parent)

    def _note(self, record: Mapping[str, object]) -> None:
        """A record that may be lost: without it the next start only has to look once more."""
        try:
            self._append([_line(record)])
        except OSError:
            self.lost += 1
        self._bound()

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
        if self._records > max(_MIN_RECORDS, 4 * len(self.entries)):
            self._tidy()

    def _tidy(self) -> None:
        """A full disk leaves the long file as it is, which holds the same facts."""
        with contextlib.suppress(OSError):
            self.compact()

    def _load(self) -> None:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return
        lines = [(n, line) for n, line in enumerate(raw.split(b"\n"), 1) if line]
        records = [(number, _parse(line)) for number, line in lines]
        # One more: a damaged byte may have become a newline.
        first = [record for _, record in records[: _HEADERS + 1] if record is not None]
        header = next((record for record in first if "format" in record), None)
        if header != self._header:
            self._set_aside(header)
            return
        for number, record in records:
            if record is None or not (record == header or self._apply(record)):
                self.damage.append(f"{self.path}:{number}: damaged record skipped")
        self._records = len(records)

    def _set_aside(self, header: Mapping[str, object] | None) -> None:
        same_format = header is not None and header.get("format") == FORMAT
        why = "of another boot or machine" if same_format else "not readable as a journal"
        # Of another boot there is nothing to put back: cgroups start empty. What we cannot read is
        # kept for a person to look at.
        if not same_format and self.path.stat().st_size:
            aside = self.path.with_name(self.path.name + ".damaged")
            self.path.replace(aside)
            self.damage.append(f"{self.path}: {why}, kept as {aside.name}")
        else:
            self.path.unlink()

    def _apply(self, record: Mapping[str, object]) -> bool:
        """Fold one record in; ``False`` when it makes no sense."""
        kind, body = next(iter(record.items()), ("", None))
        if not isinstance(body, dict):
            return False
        try:
            if kind == "intent":
                entry = Entry(**{**body, "values": tuple(body["values"])})
                self.entries[entry.target] = entry
            elif kind == "done":
                before = self.entries[body["target"]]
                after = replace(before, values=(body["value"],), inode=body["inode"])
                self.entries[before.target] = after
            elif kind == "forget":
                self.entries.pop(body["target"], None)
            else:
                return False
        except (KeyError, TypeError):
            return False
        return True


def sync_directory(path: Path) -> None:
    """Make a rename or a new name in a directory survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line(record: Mapping[str, object]) -> bytes:
    body = json.dumps(record, separators=(",", ":"), sort_keys=True).encode()
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
