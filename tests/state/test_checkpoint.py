"""Checkpoints: one atomic file per policy, worthless on another boot, machine or schema."""

from __future__ import annotations

import errno
import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.state import checkpoint, disk
from tests.kit import search


@dataclass(frozen=True, slots=True)
class State:
    """What a policy remembers."""

    valid: str = "0-1"
    more: dict[str, int] = field(default_factory=dict)


def saved(path: Path, schema: int = 1, state: State | None = None) -> None:
    """One state, on disk."""
    book = opened(path)
    book.save("a", schema, State() if state is None else state)
    assert book.flush()


def opened(path: Path, machine: str = "m", boot: str = "b") -> checkpoint.Checkpoints:
    """The checkpoints of one machine and boot."""
    return checkpoint.Checkpoints(path / "checkpoint", machine_id=machine, boot_id=boot)


def test_a_state_comes_back(ram: Path) -> None:
    """What was saved is loaded by the next process."""
    saved(ram, state=State(more={"x": 1}))

    assert opened(ram).load("a", 1) == ({"valid": "0-1", "more": {"x": 1}}, "")
    assert opened(ram).load("other", 1) == (None, "")


def test_an_unchanged_state_costs_no_write(ram: Path) -> None:
    """Saving the same again writes nothing; a change writes."""
    book = opened(ram)
    wrote = [book.save("a", 1, State()), book.save("a", 1, State()), book.save("a", 1, State("2"))]

    assert wrote == [True, False, True]


def test_a_state_that_was_made_anew_is_compared_once(ram: Path) -> None:
    """Policies hand out the same object while nothing changes: that needs no look inside."""
    looks: list[object] = []

    class Compared(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            looks.append(other)
            return super().__eq__(other)

    book, again = opened(ram), State(valid=Compared("0-1"))
    book.save("a", 1, State())

    assert not any(book.save("a", 1, again) for _ in range(3))
    assert len(looks) == 1


@pytest.mark.parametrize(
    ("machine", "boot", "schema", "why"),
    [("x", "b", 1, "another machine"), ("m", "x", 1, "another boot"), ("m", "b", 2, "schema")],
)
def test_of_another_time_or_place(
    ram: Path, machine: str, boot: str, schema: int, why: str
) -> None:
    """State of another boot, machine or schema is discarded, and it is said which."""
    saved(ram)
    body, problem = opened(ram, machine, boot).load("a", schema)

    assert body is None
    assert why in problem


@search.examples(60)
@hypothesis.given(data=st.binary(max_size=60) | st.just(b"[" * 100_000))
def test_damage_costs_the_memory_only(ram: Path, data: bytes) -> None:
    """Whatever the file holds, loading gives a body or a reason, never an exception."""
    book = opened(ram)
    (ram / "checkpoint" / "a.json").write_bytes(data)
    body, problem = book.load("a", 1)

    assert (body is None) is bool(problem)


def test_a_directory_in_its_place(ram: Path) -> None:
    """Not to be read: a reason. Not to be written: named, and written once it can be."""
    book = opened(ram)
    (ram / "checkpoint" / "a.json").mkdir()

    assert "not readable" in book.load("a", 1)[1]
    book.save("a", 1, State())
    book.flush()
    assert "a.json" in str(book.refused()["a"])
    assert book.refused() == {}
    assert [path.name for path in (ram / "checkpoint").iterdir()] == ["a.json"]
    (ram / "checkpoint" / "a.json").rmdir()
    assert book.flush()
    assert opened(ram).load("a", 1) == ({"valid": "0-1", "more": {}}, "")


def test_a_failed_write_keeps_the_old_file(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full the old state stays whole, and nothing half written is left."""
    path = ram / "file"
    checkpoint.write_atomically(path, b"old")

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.write_atomically(path, b"new")

    assert (path.read_bytes(), [file.name for file in ram.iterdir()]) == (b"old", ["file"])


def test_the_file_is_one_json_document(ram: Path) -> None:
    """A person can read it: format, stamps and state."""
    saved(ram, 3)

    document = json.loads((ram / "checkpoint" / "a.json").read_text())
    assert set(document) == {"format", "machine_id", "boot_id", "schema", "state"}


def test_a_disk_that_hangs_keeps_nobody_waiting(ram: Path) -> None:
    """The newest state of each stem is held back, also where it is stuck with something else."""
    gate, now = threading.Event(), [0.0]
    hung = disk.Disk(ram, inline=False, clock=lambda: now[0])
    book = checkpoint.Checkpoints(ram / "checkpoint", machine_id="m", boot_id="b", on=hung)
    hung.ask("something else", lambda: gate.wait(20.0))
    for number in range(3):
        now[0] += 60.0
        book.save("a", 1, State(str(number)))
        assert not book.flush()
    gate.set()
    hung.settle(20.0)

    assert book.flush(20.0)
    assert opened(ram).load("a", 1) == ({"valid": "2", "more": {}}, "")
    hung.close()


def test_a_disk_stuck_with_somebody_else_s_errand_is_slow_and_refuses_nothing(ram: Path) -> None:
    """It takes no errand: what it refused before is not the cause."""
    began, gate, now = threading.Event(), threading.Event(), [0.0]
    hung = disk.Disk(ram, inline=False, clock=lambda: now[0])
    book = checkpoint.Checkpoints(ram / "checkpoint", machine_id="m", boot_id="b", on=hung)
    (ram / "checkpoint" / "a.json").mkdir()
    book.save("a", 1, State())
    book.flush(20.0)
    assert (book.slow, "Is a directory" in book.unwritten("a")) == (False, True)
    hung.ask("something else", began.set)
    hung.ask("one more thing", lambda: gate.wait(20.0))
    assert began.wait(20.0)
    now[0] += 60.0
    book.save("a", 1, State("2"))
    assert not book.flush()
    assert (book.slow, "does not answer" in book.unwritten("a")) == (True, True)
    gate.set()
    hung.settle(20.0)
    (ram / "checkpoint" / "a.json").rmdir()

    assert book.flush(20.0)
    assert (book.slow, book.unwritten("a")) == (False, "")
    hung.close()
