"""The file of a journal: whole batches, and a name that is not its own any more."""

from __future__ import annotations

import os
from pathlib import Path, PosixPath
from typing import Any

import pytest

from koordlet.state.journal_file import JournalFile


class CoveredPath(PosixPath):
    """A path over which another file system was mounted, whose file has the same inode number."""

    covered = False

    def stat(self, **more: Any) -> os.stat_result:
        known = super().stat(**more)
        if not type(self).covered:
            return known
        fields = list(known)
        fields[2] = known.st_dev + 1
        return os.stat_result(fields)


def test_a_file_system_that_is_mounted_over_it_is_noticed(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A young file system numbers its files alike: the number alone says nothing."""
    file = JournalFile(CoveredPath(ram / "journal"), 1, "root")
    file.append([b"note\n"], [b"record\n"])
    assert (file.removed, file.records) == (0, 3)
    monkeypatch.setattr(CoveredPath, "covered", True)

    with pytest.raises(FileNotFoundError):
        file.append([], [b"more\n"])
    file.close()
    assert (file.removed, file.root) == (1, None)
    assert (ram / "journal").read_bytes() == b"note\nrecord\n"


def test_a_file_that_was_written_anew_takes_what_follows(ram: Path) -> None:
    """Also one that was removed before."""
    path = ram / "journal"
    file = JournalFile(path, 0, None)
    path.unlink()
    file.note([b"lost\n"])
    file.replace([b"header\n"], "root")
    file.append([], [b"record\n"])
    file.close()

    assert path.read_bytes() == b"header\nrecord\n"
    assert (file.removed, file.records, file.root) == (1, 2, "root")
