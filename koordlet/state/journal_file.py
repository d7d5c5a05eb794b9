"""The append-only file of a journal: whole records, or none of a batch.

Covers: appending, writing anew, noticing that somebody removed it. Does not cover: what the records
say (``state.journal``), who may wait for the disk (``state.disk``).

The file belongs to an errand of the disk while one is out.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from koordlet.state import ownfiles

_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class JournalFile:
    """One open file, and what is counted of it."""

    def __init__(self, path: Path, records: int, root: str | None) -> None:
        """``records`` and ``root``: what was read of it."""
        self.path = path
        self.records = records
        #: The cgroup root in its header; ``None`` while it has no header.
        self.root = root
        #: Records that a full disk cost us.
        self.lost = 0
        #: How often the file was gone from under its name.
        self.removed = 0
        self._handle = ownfiles.open_file(path, _OPEN)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._handle)

    def replace(self, lines: list[bytes], root: str) -> None:
        """Write it anew, atomically, with the header of a cgroup root among its lines."""
        ownfiles.directory(self.path.parent)
        fresh = self.path.with_name(self.path.name + ".new")
        handle = ownfiles.fresh(fresh)
        try:
            ownfiles.write_all(handle, b"".join(lines))
            os.fsync(handle)
            fresh.replace(self.path)
        except OSError:
            os.close(handle)
            fresh.unlink(missing_ok=True)
            raise
        os.close(self._handle)
        self._handle = handle
        self.records, self.root = len(lines), root
        ownfiles.sync_directory(self.path.parent)

    def append(self, notes: list[bytes], lines: list[bytes]) -> None:
        """Add notes, which may be lost, and records that are on disk afterwards.

        ``FileNotFoundError`` where the file was removed.
        """
        self.note(notes)
        if self.root is None:
            raise FileNotFoundError(errno.ENOENT, "removed", str(self.path))
        self._add(lines, sync=True)

    def note(self, notes: list[bytes]) -> None:
        """Add records that may be lost; a file that was removed has no header any more."""
        if not self._is_in_place():
            self.root, self.removed = None, self.removed + 1
            return
        try:
            self._add(notes)
        except OSError:
            self.lost += len(notes)

    def _add(self, lines: list[bytes], *, sync: bool = False) -> None:
        if not lines:
            return
        size = os.fstat(self._handle).st_size
        try:
            ownfiles.write_all(self._handle, b"".join(lines))
            if sync:
                os.fsync(self._handle)
        except OSError:
            # A full disk: leave no half record for the next one to be glued to.
            os.ftruncate(self._handle, size)
            raise
        self.records += len(lines)

    def _is_in_place(self) -> bool:
        """Whether its name is still that of this file; a file system may be mounted over it."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._handle))
        except OSError as error:
            return error.errno != errno.ENOENT
