"""The loop and what the kernel tells of groups: heard from the start, within bounds."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import select
import selectors
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from koordlet.agent import loop
from koordlet.host.fs import inotify
from tests.kit.lives import Life


class Events:
    """What inotify(7) is, of a kernel that tells what a test wants."""

    def __init__(self) -> None:
        self.handle, self._told = os.pipe()
        self.watched: list[str] = []

    def add(self, path: str) -> int:
        """Watch a directory."""
        self.watched.append(path)
        return len(self.watched)

    def remove(self, watch: int) -> None:
        """Watch it no more."""

    def tell(self) -> None:
        """Something was lost, so anything may have happened."""
        os.write(self._told, b"!")

    def drain(self) -> list[inotify.InotifyEvent]:
        """What was told since the last call."""
        if not select.select([self.handle], [], [], 0)[0]:
            return []
        return [inotify.InotifyEvent(-1, "", directory=True) for _ in os.read(self.handle, 100)]

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self.handle)
        os.close(self._told)


@pytest.fixture
def life(ram: Path) -> Life:
    """A daemon that was not started yet."""
    return Life(ram)


@pytest.fixture
def events(life: Life, monkeypatch: pytest.MonkeyPatch) -> Events:
    """Of the machine of ``life``, whose lanes wait for ever."""
    for name in ("FAST", "TICK", "SLOW"):
        monkeypatch.setattr(loop, name, loop.Lane(name, 3600.0))
    made = Events()
    left = [made]

    def instance() -> Events:
        if not left:
            raise OSError(errno.EMFILE, "inotify_init1")
        return left.pop()

    monkeypatch.setattr(life.site.host, "events", instance)
    return made


def test_who_comes_after_the_start_is_heard(life: Life, events: Events) -> None:
    """Groups are watched before a service manager hears that everything is up."""
    seen: list[int] = []

    async def act(life: Life) -> None:
        await life.ready()
        seen.append(len(events.watched))
        events.tell()
        await life.shown.next(lambda: len(events.watched) > seen[0])

    life.run(act)

    assert any(path.endswith("/web") for path in events.watched[: seen[0]])


def test_a_busy_machine_is_no_storm(
    life: Life, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes that wait for a CPU or a disk use up no credit: the next event has its pass, too."""
    monkeypatch.setattr(loop, "_SHARE", 0.0)
    monkeypatch.setattr(loop, "_BURST", 0.1)

    async def act(life: Life) -> None:
        await life.ready()
        real = life.who.tick.draft

        def waiting(*args: Any, **kwargs: Any) -> object:
            select.select([], [], [], 0.1)
            return real(*args, **kwargs)

        monkeypatch.setattr(life.who.tick, "draft", waiting)
        for _ in range(2):
            count = len(life.shown.views)
            events.tell()
            await life.shown.next(lambda count=count: len(life.shown.views) > count)  # type: ignore[misc]

    life.run(act)


class Turns(selectors.DefaultSelector):
    """Counts the turns of an event loop."""

    count = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """One turn."""
        self.count += 1
        return super().select(timeout)


def _turning(act: Callable[[loop.Sleeper], Awaitable[None]]) -> int:
    """The turns that an event loop made meanwhile."""
    turns = Turns()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:

        async def bounded() -> None:
            async with asyncio.timeout(10):
                await act(loop.Sleeper())

        runner.run(bounded())
        return turns.count


def test_a_sleep_costs_two_turns_of_the_event_loop() -> None:
    """It is ten times a second; a task of its own would cost four turns more."""

    async def sleep(sleeper: loop.Sleeper, times: int) -> None:
        for _ in range(times):
            await sleeper.sleep(0.001)

    once, ten_times = (_turning(functools.partial(sleep, times=times)) for times in (1, 11))

    assert ten_times - once <= 2 * 10 + 5, "a timer may come a turn early"


def test_a_wake_up_ends_the_sleep_that_is_under_way() -> None:
    """Events of the kernel come while the loop sleeps."""

    async def act(sleeper: loop.Sleeper) -> None:
        asyncio.get_running_loop().call_later(0.001, sleeper.wake)
        await sleeper.sleep(3600)

    assert _turning(act) > 1


def test_a_wake_up_while_nobody_sleeps_ends_the_next_sleep_and_no_other() -> None:
    """A signal may come during a pass."""

    async def act(sleeper: loop.Sleeper) -> None:
        sleeper.wake()
        await sleeper.sleep(3600)
        late = asyncio.ensure_future(sleeper.sleep(3600))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not late.done()
        late.cancel()

    assert _turning(act) > 5
