"""A journal whose disk answers late: nothing counts as written before it is, nothing is lost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from koordlet.state import disk, journal
from tests.state.test_journal import entry, reread


@dataclass
class Late:
    """A journal on a disk of which each ``fsync`` waits for a gate."""

    where: Path
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()
        self.disk = disk.Disk(self.where.parent, inline=False)
        self.book = journal.Journal(self.where, machine_id="m", boot_id="b", on=self.disk)

    def comes_back(self) -> None:
        """The disk answers, and that is heard."""
        self.gate.set()
        self.disk.settle(20.0)


@pytest.fixture
def late(ram: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Late]:
    """One whose disk answers; its gate is open at the end."""
    sync, gate = os.fsync, threading.Event()

    def slow(handle: int) -> None:
        gate.wait(20.0)
        sync(handle)

    monkeypatch.setattr("os.fsync", slow)
    slow_journal = Late(ram / "journal", gate)
    yield slow_journal
    slow_journal.comes_back()
    slow_journal.book.close()


def test_an_intent_counts_when_the_disk_says_so(late: Late) -> None:
    """Until then its targets are named and no entries; nothing else is asked for meanwhile."""
    assert late.book.intend([entry(1)]) == ()
    late.gate.clear()
    first, second = [entry(2), entry(3)], [entry(2), entry(4)]

    assert {intended.target for intended in first} == set(late.book.intend(first, 0.0))
    assert {intended.target for intended in second} == set(late.book.intend(second, 0.0))
    assert {entry(1).target} == set(late.book.entries)
    late.comes_back()
    assert {intended.target for intended in (entry(1), *first)} == set(late.book.entries)
    assert late.book.intend(second) == ()
    assert late.book.entries == reread(late.where).entries


def test_what_happens_meanwhile_is_newer(late: Late) -> None:
    """A target that is forgotten or read back while its intent is out stays so, in the file too."""
    late.book.intend([entry(1), entry(2)])
    late.gate.clear()
    late.book.intend([entry(1, values=("1", "2")), entry(2, values=("1", "2"))], 0.0)
    late.book.forget(entry(1).target)
    late.book.done(entry(2).target, "1", inode=1)
    late.book.flush()
    late.comes_back()
    late.book.flush()
    late.disk.settle(20.0)

    assert {entry(2).target: ("1",)} == {t: e.values for t, e in late.book.entries.items()}
    assert late.book.entries == reread(late.where).entries


def test_a_note_is_known_at_once_and_written_later(late: Late) -> None:
    """What is put back while the disk hangs is in the file once it answers."""
    late.book.intend([entry(1)])
    late.gate.clear()
    late.book.intend([entry(2)], 0.0)
    late.book.note(entry(1, values=("1", "0-3")))
    late.book.flush()

    assert late.book.entries[entry(1).target].values == ("1", "0-3")
    late.comes_back()
    late.book.flush()
    late.disk.settle(20.0)
    assert late.book.entries == reread(late.where).entries


def test_a_disk_that_refuses_late_costs_the_intent(
    late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no entry then, the file has no trace of it, and the next one is heard again."""
    late.book.intend([entry(1)])
    late.gate.clear()

    def refuse(_handle: int) -> None:
        late.gate.wait(20.0)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", refuse)
        late.book.intend([entry(2)], 0.0)
        late.comes_back()
        assert {entry(1).target} == set(late.book.entries) == set(reread(late.where).entries)
        with pytest.raises(OSError, match="No space"):
            late.book.intend([entry(3)])
    assert late.book.intend([entry(2)]) == ()


def test_compaction_in_between_keeps_everything(late: Late) -> None:
    """A long file is written anew beside the loop, with what was intended before and after."""
    for number in range(400):
        late.book.intend([entry(number % 3, values=(str(number),))])
        late.book.done(entry(number % 3).target, f"{number}\n", inode=1)
        late.book.flush()
    late.disk.settle(20.0)
    late.book.flush()
    late.disk.settle(20.0)

    assert late.where.read_bytes().count(b"\n{") < 300
    assert late.book.entries == reread(late.where).entries


def test_what_is_held_back_is_bounded(late: Late) -> None:
    """A file that is fought over for hours while the disk hangs is one fact, not one for each."""
    late.book.intend([entry(1)])
    late.gate.clear()
    late.book.intend([entry(2)], 0.0)
    for number in range(200):
        late.book.note(entry(1, values=(str(number),)))
    late.comes_back()
    late.book.flush()
    late.disk.settle(20.0)

    assert late.where.read_bytes().count(b"\n{") < 10
    assert late.book.entries == reread(late.where).entries


def test_an_end_writes_what_was_held_back(late: Late) -> None:
    """The disk answers meanwhile, and nobody has heard of it."""
    late.book.intend([entry(1), entry(2)])
    late.gate.clear()
    late.book.intend([entry(3)], 0.0)
    late.book.forget(entry(1).target)
    late.book.flush()
    threading.Timer(0.05, late.gate.set).start()
    assert late.book.close()
    kept = late.book.entries

    late.__post_init__()
    assert kept == late.book.entries


def test_a_compaction_that_is_refused_late_costs_nothing(
    late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read back is written all the same, and not every pass tries again."""
    for number in range(250):
        late.book.intend([entry(1, values=("0", str(number)))])
    sync, tries = os.fsync, []

    def full(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().name.endswith(".new"):
            tries.append(handle)
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr("os.fsync", full)
    for number in range(10):
        late.book.intend([entry(1, values=("0", str(number)))])
    late.book.done(entry(1).target, "9", inode=1)
    for _ in range(20):
        late.book.flush(readings=False)
        late.disk.settle(20.0)
    late.book.flush()
    late.disk.settle(20.0)

    assert len(tries) == 1
    monkeypatch.setattr("os.fsync", sync)
    assert late.book.entries == reread(late.where).entries


def test_entries_are_below_the_root_in_the_header(late: Late) -> None:
    """Whatever the disk does meanwhile: none of another root's file is taken for one of this."""
    late.book.intend([entry(1)])
    late.gate.clear()
    late.book.intend([entry(1, values=("2",))], 0.0)
    late.book.forget(entry(1).target)
    late.disk._clock = Steps()
    late.book.move("other")
    late.disk._clock = time.monotonic
    late.comes_back()

    assert late.book.intend([entry(3)]) == ()
    assert ("other", {entry(3).target}) == _found(late.where)


def test_nothing_is_intended_in_a_file_without_a_header(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new journal whose first write was late and refused is begun again with the next one."""
    sync, gate = os.fsync, threading.Event()

    def refuse(_handle: int) -> None:
        gate.wait(20.0)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", refuse)
    on = disk.Disk(ram, inline=False, clock=Steps())
    book = journal.Journal(ram / "journal", machine_id="m", boot_id="b", on=on)
    gate.set()
    on._clock = time.monotonic
    on.settle(20.0)
    monkeypatch.setattr("os.fsync", sync)

    assert book.intend([entry(1)]) == ()
    book.close()
    assert book.entries == reread(ram / "journal").entries


class Steps:
    """A clock by which everything has taken long."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def __call__(self) -> float:
        self.now += 100.0
        return self.now


def _found(where: Path) -> tuple[str, set[str]]:
    """The root and the targets that the next process finds."""
    book = journal.Journal(where, machine_id="m", boot_id="b", root="other")
    book.close()
    return book.root, set(book.entries)
