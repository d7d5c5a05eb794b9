"""A journal whose file somebody removes while koordlet runs is written anew, with all entries."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from koordlet.state import checkpoint
from tests.state.test_journal import entry, opened, reread


@pytest.mark.parametrize("whole", [False, True])
def test_the_next_intent_misses_it(ram: Path, *, whole: bool) -> None:
    """The file or its directory: what is written next has its original on disk, as before."""
    path = ram / "lib" / "journal"
    book = opened(path)
    book.intend([entry(1), entry(2)])
    shutil.rmtree(path.parent) if whole else path.unlink()
    book.intend([entry(3)])

    assert book.removed == 1
    assert list(reread(path).entries.values()) == [entry(1), entry(2), entry(3)]


def test_a_slow_pass_misses_it(ram: Path) -> None:
    """Nothing is intended for days where nothing changes; a flush looks, and that is cheap."""
    path = ram / "journal"
    book = opened(path)
    book.intend([entry(1)])
    path.replace(ram / "elsewhere")
    path.touch(mode=0o600)
    book.flush(readings=False)
    assert path.read_bytes() == b""
    book.flush()

    assert list(reread(path).entries.values()) == [entry(1)]
    assert book.removed == 1
    book.flush()
    assert book.removed == 1


def test_what_was_forgotten_stays_so(ram: Path) -> None:
    """A note that was for the file that is gone is in the new one."""
    path = ram / "journal"
    book = opened(path)
    book.intend([entry(1), entry(2)])
    path.unlink()
    book.forget(entry(1).target)
    book.flush()

    assert list(reread(path).entries.values()) == [entry(2)]


def test_checkpoints_make_their_directory_anew(ram: Path) -> None:
    """A removed directory costs what was in it, not what comes."""
    files = checkpoint.Checkpoints(ram / "checkpoint", machine_id="m", boot_id="b")
    shutil.rmtree(ram / "checkpoint")
    files.save("s", 1, {"a": 1}, lambda state: state)
    files.flush()

    assert files.load("s", 1) == ({"a": 1}, "")
