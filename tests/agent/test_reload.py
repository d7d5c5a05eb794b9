"""An agent and its configuration file: what is kept, what is told, what it does without any."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from koordlet.agent import bootstrap, loop
from koordlet.config import examiner, last_answer, loader
from koordlet.host import machine
from koordlet.model import errors
from koordlet.report import view
from koordlet.state import last_config
from tests.kit import images
from tests.kit.lives import Life

WEB = "/sys/fs/cgroup/cpuset/web/cpuset.cpus"
BAD = errors.ConfigError("unknown key", culprit="config.yaml:9", fix="remove it")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of the daemon's seconds in one: the lanes keep their proportions."""
    for name, lane in (("FAST", loop.FAST), ("TICK", loop.TICK), ("SLOW", loop.SLOW)):
        monkeypatch.setattr(loop, name, loop.Lane(lane.name, lane.period / 10))


def newest_view(life: Life) -> view.ReportView:
    """The newest view."""
    newest = life.shown.views[-1]
    assert newest is not None
    return newest


def refusal(life: Life) -> str:
    """What the condition says; empty where it does not hold."""
    messages = (
        condition.message
        for condition in newest_view(life).plan.conditions
        if condition.type == "ConfigurationRefused" and condition.status
    )
    return next(messages, "")


def without(life: Life) -> Life:
    """With nothing but what is built in, observing."""
    config = loader.from_text(None, "", {}, {"mode": "observe"})
    life.start = bootstrap.Start(
        config=config, refused=BAD, instead="the built-in values", configured=False
    )
    return life


def test_what_an_agent_is_ready_with_is_kept(ram: Path) -> None:
    """The text of the file, at the start and after each good change; never that of a bad one."""
    life = Life(ram)
    good = life.file.read_text()
    kept = life.site.paths.last_config

    async def act(life: Life) -> None:
        await life.ready()
        assert good == last_config.load(kept)
        life.file.write_text(good + "no_such_key: 1\n")
        await life.shown.next(lambda: not life.checks().get("configuration", True))
        assert good == last_config.load(kept)
        assert "in force: what it said before" in refusal(life)
        life.file.write_text(good + "log: {level: warning}\n")
        await life.shown.next(lambda: life.checks().get("configuration", False))
        assert good + "log: {level: warning}\n" == last_config.load(kept)
        assert not refusal(life)

    life.run(act)


def test_only_the_answer_that_the_agent_is_ready_with_is_kept(ram: Path) -> None:
    """The question was about the file of the start: another one may be in force by then."""
    life = Life(ram)
    question = examiner.question(str(life.file), {}, {})
    started = examiner.answered(question)
    life.start = bootstrap.Start(config=started, asked=question)
    kept = life.site.paths.last_answer

    async def act(life: Life) -> None:
        await life.ready()
        assert last_answer.load(kept, question) == started
        kept.unlink()
        life.who.tick.configure(loader.from_text(question.text, "elsewhere", {}, {}))
        life.daemon.config.ready()
        assert not kept.exists()

    life.run(act)


def test_the_view_has_the_file_in_force(ram: Path) -> None:
    """A refused one is not; one that means the same is, though nobody had to take it."""
    life = Life(ram)
    good = life.file.read_text()

    async def act(life: Life) -> None:
        await life.ready()
        assert newest_view(life).config == good
        life.file.write_text(good + "no_such_key: 1\n")
        await life.shown.next(lambda: bool(refusal(life)))
        assert newest_view(life).config == good
        for more in ("# as before\n", "log: {level: warning}\n"):
            life.file.write_text(good + more)
            await life.shown.next(lambda: newest_view(life).config == life.file.read_text())

    life.run(act)


def test_it_is_kept_before_ready_is_told(ram: Path) -> None:
    """Who dies while its surfaces still start leaves it to the next agent."""
    life = Life(ram)
    there: list[bool] = []
    send = life.heard._send
    kept = life.site.paths.last_config
    life.heard._send = lambda message: (there.append(kept.exists()), send(message))  # type: ignore[method-assign, assignment, func-returns-value]

    async def act(life: Life) -> None:
        await life.ready()

    life.run(act)

    assert there[life.heard.told.index("READY=1")]


def test_a_busy_disk_keeps_it_later(ram: Path) -> None:
    """An errand that the disk did not take is asked for again."""
    life = Life(ram)
    kept = life.site.paths.last_config

    async def act(life: Life) -> None:
        await life.ready()
        kept.unlink()
        disk, ask = life.who.disks[1], life.who.disks[1].ask
        refused: list[str] = []

        def once(what: str, *words: object) -> bool:
            if what == "the last good configuration" and not refused:
                refused.append(what)
                return False
            return ask(what, *words)  # type: ignore[arg-type]

        disk.ask = once  # type: ignore[method-assign, assignment]
        life.daemon.hup()
        await life.shown.next(kept.exists)
        assert refused

    life.run(act)


def test_a_start_with_the_last_good_one(ram: Path) -> None:
    """The limits are in place, the agent is ready, and every surface says what it runs with."""
    life = Life(ram)
    good = life.file.read_text()
    life.start = bootstrap.Start(
        config=loader.from_text(good, "last-config.yaml", {}, {}),
        refused=BAD,
        instead="the last good configuration, last-config.yaml",
    )
    life.file.write_text(good + "no_such_key: 1\n")

    async def act(life: Life) -> None:
        await life.ready()
        assert (life.text(WEB), newest_view(life).ready) == ("2-3", True)
        assert life.checks()["configuration"] is False
        assert "in force: the last good configuration, last-config.yaml" in refusal(life)
        assert any("in force: the last good" in status for status in life.heard.statuses)
        life.file.write_text(good)
        await life.shown.next(lambda: life.checks()["configuration"])
        assert not refusal(life)
        assert "in force" not in life.heard.statuses[-1]

    life.run(act)


def test_an_agent_without_any_is_not_ready(ram: Path) -> None:
    """It observes, and says why; a predecessor's limits get a deadline, and go when it passes."""
    life = without(Life(ram))
    life.site.settle()
    limited = life.site.image()
    life.file.write_text("no_such_key: 1\n")

    async def act(life: Life) -> None:
        await life.ready()
        assert (newest_view(life).ready, newest_view(life).mode) == (False, "observe")
        assert "no valid configuration" in newest_view(life).unready
        assert "the built-in values" in refusal(life)
        assert images.difference(limited, life.site.image()) == {}, "nobody has refused them yet"
        deadline = life.who.handover.read()
        assert deadline is not None
        assert deadline.boottime > machine.boottime()
        life.who.handover.clear()
        life.who.handover.record(machine.boottime() - 1)
        await life.shown.next(lambda: not life.who.book.entries)
        assert images.difference(life.before, life.site.image()) == {}
        assert last_config.load(life.site.paths.last_config) is None

    life.run(act)


def test_the_first_good_one_begins_anew(ram: Path) -> None:
    """Much is read once only, so the agent ends, leaving what is limited to itself."""
    life = without(Life(ram))
    good = life.file.read_text()
    life.site.settle()
    limited = life.site.image()
    life.file.write_text(good + "no_such_key: 1\n")

    async def act(life: Life) -> None:
        await life.ready()
        life.file.write_text(good)
        async with asyncio.timeout(30):
            await life.running
        assert life.daemon.again

    life.run(act)

    assert images.difference(limited, life.site.image()) == {}


def test_a_stop_is_for_good(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is told to stop while it is about to begin anew ends, and puts everything back."""
    life = without(Life(ram))
    good = life.file.read_text()
    life.site.settle()
    life.file.write_text("no_such_key: 1\n")
    ended: list[bool] = []

    async def stop_meanwhile(*, final: bool) -> None:
        ended.append(final)
        life.daemon.stop()

    async def act(life: Life) -> None:
        await life.ready()
        monkeypatch.setattr(life.shown, "stop", stop_meanwhile)
        life.file.write_text(good)
        async with asyncio.timeout(30):
            await life.running

    life.run(act)

    assert (ended, life.daemon.again) == ([False], False)
    assert images.difference(life.before, life.site.image()) == {}


def test_a_final_stop_of_an_agent_without_any(ram: Path) -> None:
    """It restores like any other."""
    life = without(Life(ram))
    life.site.settle()
    life.file.write_text("no_such_key: 1\n")

    async def act(life: Life) -> None:
        await life.ready()

    life.run(act)

    assert images.difference(life.before, life.site.image()) == {}
