"""The loop and what the kernel tells of groups: heard from the start, within bounds."""

from __future__ import annotations

import errno
import os
import select
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
