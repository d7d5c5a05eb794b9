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
    opened = threading.Event()
    yield opened
    opened.set()


def test_an_errand_in_time_is_heard_at_once() -> None:
    """Who waits knows that it is done, or what was refused; other errors are bugs, and raised."""
    errands = disk.Disk(Path("/d"), inline=False)
    heard: list[OSError | None] = []

    def refuse() -> None:
        raise PermissionError

    def fail() -> None:
        raise KeyError

    assert errands.ask("a", lambda: None, heard.append)
    assert errands.wait("a", 10)
    assert errands.ask("a", refuse, heard.append)
    assert errands.wait("a", 10)
    errands.ask("a", fail)
    with pytest.raises(KeyError):
        errands.wait("a", 10)
    errands.close()

    assert [None, PermissionError] == [heard[0], type(heard[1])]


def test_what_is_late_is_not_waited_for_twice(gate: threading.Event) -> None:
    """Patience counts from the start of the errand; it is named; its answer is collected later."""
    clock = clocks.Clock()
    errands = disk.Disk(Path("/d"), inline=False, clock=clock)
    heard: list[OSError | None] = []
    errands.ask("the journal", lambda: gate.wait(20), heard.append)
    clock.now = 12.0

    assert not errands.wait("the journal", 10.0)
    assert errands.out("the journal")
    assert not errands.ask("the journal", lambda: None)
    assert "/d does not answer: more than 10 s for the journal; put" in disk.hanging([errands])
    gate.set()
    errands.settle(20)
    errands.collect()
    assert heard == [None]
    assert disk.hanging([errands]) == ""
    errands.close()


def test_closing_ends(gate: threading.Event) -> None:
    """What does not come back is left to the kernel."""
    errands = disk.Disk(Path("/d"), inline=False)
    errands.ask("the journal", lambda: gate.wait(20))

    assert not errands.close(0.01)
