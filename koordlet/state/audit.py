"""The audit log: one JSON line for every action, with its policy and reason. Bounded on disk.

Covers: appending, rotation. Does not cover: what is needed to put things back (``state.journal``).

What a pass did is appended at its end, all at once. A process that is killed within a pass loses
those lines; what it takes to put things back is in the journal, which was written before. Nobody
waits for the disk: while it does not answer, a bounded number of lines is held back.
"""

from __future__ import annotations

import errno
import functools
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from koordlet.state import disk, ownfiles

#: The log and its one predecessor together stay below twice this.
MAX_BYTES = 8 << 20
#: More than this is not held back.
_AT_ONCE = 1 << 20
_ERRAND = "the audit log"


class Audit:
    """An append-only log file; the one before it is kept as ``.1``."""

    def __init__(
        self,
        path: Path,
        max_bytes: Callable[[], int] = lambda: MAX_BYTES,
        on: disk.Disk | None = None,
    ) -> None:
        self.path = path
        self.disk = disk.Disk(path.parent) if on is None else on
        #: The bound in force, which a reload may change.
        self._max_bytes = max_bytes
        #: Lines that could not be written: a full disk must not stop enforcement.
        self.lost = 0
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, record: Mapping[str, object]) -> None:
        """Take one record; it is in the file at the end of the pass."""
        line = (json.dumps(record, sort_keys=True, default=str) + "\n").encode()
        if self._bytes + len(line) > min(_AT_ONCE, self._max_bytes()):
            self.flush()
            if self._lines:  # the disk still has those before them
                self.lost += 1
                return
        self._lines.append(line)
        self._bytes += len(line)

    def flush(self) -> int:
        """Append what was added with one ``write(2)``, so that lines of two writers never mix.

        The number of lines that are on their way.
        """
        if self.disk.out(_ERRAND):
            self.disk.wait(_ERRAND, 0.0)
        lines = self._lines
        if not lines:
            return 0

        def heard(error: OSError | None) -> None:
            if error is not None:
                self.lost += len(lines)

        if not self.disk.ask(_ERRAND, functools.partial(self._append, b"".join(lines)), heard):
            return 0
        self._lines, self._bytes = [], 0
        self.disk.wait(_ERRAND, 0.0)
        return len(lines)

    def _append(self, data: bytes) -> None:
        handle = self._open()
        try:
            if (size := os.fstat(handle).st_size) + len(data) > self._max_bytes() and size:
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
        # Each time: on some systems a group may write to /var/log, and so move what is in it.
        ownfiles.directory(self.path.parent)
        return ownfiles.open_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
