"""The kernel tells what happens in directories, and what it tells is understood."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.host.fs import inotify


@pytest.fixture
def events() -> Iterator[inotify.Inotify]:
    """An instance."""
    instance = inotify.Inotify()
    yield instance
    instance.close()


def test_groups_that_come_and_go_and_written_files_are_told(
    events: inotify.Inotify, tmp_path: Path
) -> None:
    """mkdir, rmdir and a write are events with a name; reading is none."""
    file = tmp_path / "cpuset.cpus"
    file.touch()
    number = events.add(str(tmp_path))

    (tmp_path / "a b").mkdir()
    file.write_bytes(b"0\n")
    file.read_bytes()
    (tmp_path / "a b").rmdir()
    drained = events.drain()

    assert inotify.InotifyEvent(number, "a b", directory=True) == drained[0] == drained[-1]
    assert {inotify.InotifyEvent(number, "cpuset.cpus", directory=False)} == set(drained[1:-1])
    assert events.drain() == []


def test_a_directory_has_one_number(events: inotify.Inotify, tmp_path: Path) -> None:
    """Watching twice is watching once; what is removed tells nothing."""
    number = events.add(str(tmp_path))

    assert number == events.add(str(tmp_path))

    events.remove(number)
    (tmp_path / "group").mkdir()

    assert events.drain() == []


def test_what_is_no_directory_is_refused_by_name(events: inotify.Inotify, tmp_path: Path) -> None:
    """The error names the path and has its errno."""
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotADirectoryError, match="file"):
        events.add(str(file))
    with pytest.raises(FileNotFoundError, match="absent"):
        events.add(str(tmp_path / "absent"))


def test_lost_events_are_an_event() -> None:
    """A full queue says that anything may have happened."""
    assert [inotify.InotifyEvent(-1, "", directory=True)] == inotify.parse(
        struct.pack("iIII", -1, 0x4000, 0, 0)
    )


@given(st.binary(max_size=200))
def test_nothing_that_is_read_breaks_the_parser(data: bytes) -> None:
    """Whatever the bytes, the answer is a list of events."""
    assert all(isinstance(event, inotify.InotifyEvent) for event in inotify.parse(data))
