"""A disk that hangs costs those who wait a bounded time, and is named with what helps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.state import disk
from tests.kit import clocks


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What the disk waits for; open at the end."""
    one = threading.Event()
    yield one
    one.set()


def test_an_errand_in_time_is_heard_at_once() -> None:
    """Who waits knows that it is done, or what was refused; other errors are bugs, and raised."""
    one = disk.Disk(Path("/d"), inline=False)
    heard: list[OSError | None] = []

    def refuse() -> None:
        raise PermissionError

    def fail() -> None:
        raise KeyError

    assert one.ask("a", lambda: None, heard.append)
    assert one.wait("a", 10)
    assert one.ask("a", refuse, heard.append)
    assert one.wait("a", 10)
    one.ask("a", fail)
    with pytest.raises(KeyError):
        one.wait("a", 10)
    one.close()

    assert [None, PermissionError] == [heard[0], type(heard[1])]


def test_what_is_late_is_not_waited_for_twice(gate: threading.Event) -> None:
    """Patience counts from the start of the errand; it is named; its answer is collected later."""
    clock = clocks.Clock()
    one = disk.Disk(Path("/d"), inline=False, clock=clock)
    heard: list[OSError | None] = []
    one.ask("the journal", lambda: gate.wait(20), heard.append)
    clock.now = 12.0

    assert not one.wait("the journal", 10.0)
    assert one.out("the journal")
    assert not one.ask("the journal", lambda: None)
    assert "/d does not answer: more than 10 s for the journal; put" in disk.hanging([one])
    gate.set()
    one.settle(20)
    one.collect()
    assert heard == [None]
    assert disk.hanging([one]) == ""
    one.close()


def test_closing_ends(gate: threading.Event) -> None:
    """What does not come back is left to the kernel."""
    one = disk.Disk(Path("/d"), inline=False)
    one.ask("the journal", lambda: gate.wait(20))

    assert not one.close(0.01)
