"""The loop: readiness, lanes, reloading, failing passes, stopping, with a real event loop."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from koordlet.agent import loop, memory_watch
from koordlet.model import errors
from tests.kit import images
from tests.kit.lives import Life

WEB = "/sys/fs/cgroup/cpuset/web/cpuset.cpus"
BATCH = "/sys/fs/cgroup/cpuset/batch/jobs/cpuset.cpus"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of the daemon's seconds in one: the lanes keep their proportions."""
    for name, lane in (("FAST", loop.FAST), ("TICK", loop.TICK), ("SLOW", loop.SLOW)):
        monkeypatch.setattr(loop, name, loop.Lane(lane.name, lane.period / 10))


@pytest.fixture
def life(ram: Path) -> Life:
    """A daemon that was not started yet."""
    return Life(ram)


def test_from_start_to_stop(life: Life) -> None:
    """READY after the first verified pass, surfaces after READY, everything back at the end."""

    async def act(life: Life) -> None:
        await life.ready()
        assert life.text(WEB) == "2-3"
        assert [message for message in life.heard.told if message != "WATCHDOG=1"] == [
            "READY=1",
            "STATUS=all surfaces up, enforce, 5 files under control",
        ]
        assert life.greeted == [("http://here/",)]

    life.run(act)

    assert life.shown.events == ["start", "stop"]
    assert life.heard.told.index("READY=1") < life.heard.told.index("STOPPING=1")
    assert images.difference(life.before, life.site.image()) == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it(life: Life, number: signal.Signals) -> None:
    """SIGTERM and SIGINT end the loop after the current pass, restored."""

    async def act(life: Life) -> None:
        await life.ready()
        os.kill(os.getpid(), number)
        async with asyncio.timeout(30):
            await life.running

    life.run(act)

    assert images.difference(life.before, life.site.image()) == {}


def test_stopped_before_the_surfaces_are_up(life: Life) -> None:
    """A stop during the start is answered as soon as the start allows, with everything put back."""

    async def act(life: Life) -> None:
        life.daemon.stop()

    life.run(act)

    assert life.shown.events == ["start", "stop"]
    assert images.difference(life.before, life.site.image()) == {}


def test_the_watchdog_hears_of_good_passes(life: Life) -> None:
    """Each good pass is a sign of life."""

    async def act(life: Life) -> None:
        await life.shown.next(lambda: life.heard.told.count("WATCHDOG=1") >= 3)

    life.run(act)

    assert life.heard.told.index("READY=1") < life.heard.told.index("WATCHDOG=1")


def test_protective_limits_are_watched_between_ticks(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A BE limit that somebody removes is back without waiting for the next tick."""
    for name in ("TICK", "SLOW"):
        monkeypatch.setattr(loop, name, loop.Lane(name, 3600.0))

    async def act(life: Life) -> None:
        await life.ready()
        host = life.site.host
        host.write(host.at(BATCH), b"0-4")
        await life.shown.next(lambda: life.text(BATCH) == "1-4")

    life.run(act)

    assert images.difference(life.before, life.site.image()) == {}


def test_the_kernel_tells_of_memory(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is looked at then, and a crossing has a pass, without waiting for any lane."""
    for name in ("FAST", "TICK", "SLOW"):
        monkeypatch.setattr(loop, name, loop.Lane(name, 3600.0))
    reading, writing = os.pipe()
    looks: list[bool] = []

    def crossed(_: object, *, told: bool = False) -> bool:
        looks.append(told)
        return told

    monkeypatch.setattr(memory_watch.MemoryWatch, "listen", lambda *_: reading)
    rings = lambda _: bool(os.read(reading, 1))  # noqa: E731 -- as the line below
    monkeypatch.setattr(memory_watch.MemoryWatch, "rings", rings)
    monkeypatch.setattr(memory_watch.MemoryWatch, "crossed", crossed)

    async def act(life: Life) -> None:
        await life.ready()
        os.write(writing, b"1")
        await life.shown.next(lambda: looks == [True])

    life.run(act)
    os.close(reading)
    os.close(writing)


def test_a_failing_pass_costs_that_pass(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that raises is said, the watchdog hears nothing of it, and the next one comes."""

    async def act(life: Life) -> None:
        await life.ready()
        real = life.who.tick.draft
        failed: list[int] = []

        def broken(*args: Any, **kwargs: Any) -> object:
            if len(failed) < 2:
                failed.append(life.heard.told.count("WATCHDOG=1"))
                msg = "broken"
                raise RuntimeError(msg)
            return real(*args, **kwargs)

        monkeypatch.setattr(life.who.tick, "draft", broken)
        count = len(life.shown.views)
        await life.shown.next(lambda: len(life.shown.views) > count)
        assert len(failed) == 2
        assert failed[0] == failed[1]

    life.run(act)

    assert images.difference(life.before, life.site.image()) == {}


def test_a_changed_file_is_taken(life: Life) -> None:
    """A new configuration is taken without a signal; what was wanted by the old one goes back."""

    async def act(life: Life) -> None:
        await life.ready()
        life.file.write_text(life.file.read_text().replace('cpus: "2-3"', 'cpus: "4"'))
        await life.shown.next(lambda: life.text(WEB) == "4")

    life.run(act)

    assert images.difference(life.before, life.site.image()) == {}


def test_a_bad_file_keeps_the_old_configuration(life: Life) -> None:
    """A file that is refused changes nothing, is shown by health, and ends the reload."""

    async def act(life: Life) -> None:
        await life.ready()
        life.file.write_text("nonsense: true\n")
        life.daemon.hup()
        await life.shown.next(lambda: not life.checks()["configuration"])
        assert life.text(WEB) == "2-3"

    life.run(act)

    messages = [message for message in life.heard.told if message != "WATCHDOG=1"]
    assert "READY=1" in messages[messages.index("RELOADING=1") :]


def test_switching_to_observe_while_running(life: Life) -> None:
    """``mode: observe`` in a new file puts everything back at once."""

    async def act(life: Life) -> None:
        await life.ready()
        life.file.write_text(life.file.read_text() + "mode: observe\n")
        life.daemon.hup()
        await life.shown.next(lambda: life.who.publisher.mode == "observe")
        assert images.difference(life.before, life.site.image()) == {}

    life.run(act)


def test_a_stop_that_hands_over(ram: Path) -> None:
    """With ``onStop: handover`` the limits stay, with a deadline for whoever comes."""
    life = Life(ram, "state: {onStop: handover, handoverSeconds: 60}\n")

    async def act(life: Life) -> None:
        await life.ready()

    life.run(act)

    assert life.text(WEB) == "2-3"
    assert life.site.paths.handover.exists()
    assert life.site.restore().failed == ()
    assert images.difference(life.before, life.site.image()) == {}


def test_a_surface_that_fails_is_shown(life: Life) -> None:
    """The agent runs on without a surface, and health names it."""

    async def act(life: Life) -> None:
        life.shown.problems = {"http": "address in use"}
        await life.ready()
        await life.shown.next(lambda: not life.checks()["surfaces"])

    life.run(act)

    assert images.difference(life.before, life.site.image()) == {}


def test_an_agent_that_cannot_begin_leaves_nothing(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first pass cannot write its journal, the start fails and changes nothing."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def act(life: Life) -> None:
        monkeypatch.setattr(life.who.book, "intend", full)

    with pytest.raises(errors.HostError, match="nothing was changed"):
        life.run(act)

    assert life.site.host.calls == []
    assert life.shown.events == []
