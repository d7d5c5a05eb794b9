"""The audit log: one JSON line for every action, with its policy and reason. Bounded on disk.

Covers: appending, rotation. Does not cover: what is needed to put things back (``state.journal``).

What a pass did is appended at its end, all at once. A process that is killed within a pass loses
those lines; what it takes to put things back is in the journal, which was written before.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path

#: The log and its one predecessor together stay below twice this.
MAX_BYTES = 8 << 20
#: More than this is not held back.
_AT_ONCE = 1 << 20


class Audit:
    """An append-only log file; the one before it is kept as ``.1``."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes
        #: Lines that could not be written: a full disk must not stop enforcement.
        self.lost = 0
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, record: Mapping[str, object]) -> None:
        """Take one record; it is in the file at the end of the pass."""
        line = (json.dumps(record, sort_keys=True, default=str) + "\n").encode()
        if self._bytes + len(line) > min(_AT_ONCE, self.max_bytes):
            self.flush()
        self._lines.append(line)
        self._bytes += len(line)

    def flush(self) -> int:
        """Append what was added with one ``write(2)``, so that lines of two writers never mix.

        The number of lines that there were.
        """
        lines, self._lines, self._bytes = self._lines, [], 0
        try:
            if lines:
                self._append(b"".join(lines))
        except OSError:
            self.lost += len(lines)
        return len(lines)

    def _append(self, data: bytes) -> None:
        handle = self._open()
        try:
            if (size := os.fstat(handle).st_size) + len(data) > self.max_bytes and size:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
                os.close(handle)
                handle = self._open()
                size = os.fstat(handle).st_size
            if os.write(handle, data) != len(data):
                # A full disk took half of it: leave nothing for the next line to be glued to.
                os.ftruncate(handle, size)
                raise OSError(errno.ENOSPC, "not all of it was taken", str(self.path))
        finally:
            os.close(handle)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.path, flags, 0o640)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o640)
