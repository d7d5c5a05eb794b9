"""While the journal's disk hangs: nothing new is written, what protects stays, leaving works."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.agent import lifecycle
from koordlet.model import errors
from koordlet.model.result import Verdict
from koordlet.state import disk, journal
from tests.apply.four import TREE
from tests.apply.test_executor import site_pass
from tests.kit import agents, clocks, images, trees
from tests.kit.kernel import KernelHost


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What every ``fsync`` waits for: closed, the disk hangs."""
    opened, sync = threading.Event(), os.fsync
    opened.set()

    def slow(handle: int) -> None:
        opened.wait(60.0)
        sync(handle)

    monkeypatch.setattr("os.fsync", slow)
    yield opened
    opened.set()


@pytest.fixture
def clock() -> clocks.Clock:
    """The clock of the disks."""
    return clocks.Clock()


@pytest.fixture
def who(site: agents.Site, gate: threading.Event, clock: clocks.Clock) -> Iterator[lifecycle.Agent]:
    """An agent that asks its disks from threads, as on a live machine."""
    with site.agent() as agent:
        journal_disk, state_disk = (
            disk.Disk(Path("/state"), inline=False, clock=clock) for _ in range(2)
        )
        agent.disks = journal_disk, state_disk
        agent.book.disk = journal_disk
        for each in (agent.checkpoints, agent.handover, agent.publisher.audit):
            each.disk = state_disk
        yield agent
        gate.set()


def text(host: KernelHost, path: str) -> str:
    """The set of a group."""
    return host.text(host.at(trees.file(TREE, path))).strip()


def disk_detail(who: lifecycle.Agent) -> str:
    """What is said of the disk."""
    assert who.publisher.view is not None
    messages = [
        condition.message
        for condition in who.publisher.view.plan.conditions
        if condition.type == "StateDiskHangs"
    ]
    shown = {check.name: check for check in who.publisher.view.checks}["disk"]
    assert (not shown.ok, [shown.detail]) == (bool(messages), messages or [""])
    return shown.detail


def test_nothing_is_written_before_its_original_is_on_disk(
    who: lifecycle.Agent, host: KernelHost, gate: threading.Event, clock: clocks.Clock
) -> None:
    """Passes go on, culprit and fix are said; when the disk answers, all is done, nothing said."""
    gate.clear()
    host.calls.clear()
    who.one_pass(slow=True)
    clock.now = 12.0
    who.one_pass(slow=True)
    detail = disk_detail(who)
    clock.now = 13.0
    who.one_pass(slow=True)

    assert (host.calls, dict(who.book.entries)) == ([], {})
    assert "/state does not answer: more than 10 s for the journal of originals; put" in detail
    assert detail == disk_detail(who)
    gate.set()
    for writer in who.disks:
        writer.settle(20.0)
    who.one_pass(slow=True)
    assert (text(host, "a"), text(host, "c")) == ("0-1", "2-3")
    assert disk_detail(who) == ""


def test_what_the_journal_knows_goes_on(
    who: lifecycle.Agent,
    host: KernelHost,
    gate: threading.Event,
    clock: clocks.Clock,
    site: agents.Site,
) -> None:
    """A limit that somebody removes comes back at once; a new value of another group waits."""
    assert agents.settle(who, site.clock)
    gate.clear()
    host.write(host.at(trees.file(TREE, "c")), b"0-4")
    _wants(who, "d", "3")
    clock.now += 1.0
    results = site_pass(who)

    assert (text(host, "c"), text(host, "d")) == ("2-3", "4")
    assert Verdict.WAITING is results[trees.file(TREE, "d")].verdict
    assert "journal's disk" in results[trees.file(TREE, "d")].detail


def test_leaving_does_not_wait(
    who: lifecycle.Agent,
    host: KernelHost,
    gate: threading.Event,
    clock: clocks.Clock,
    site: agents.Site,
) -> None:
    """Everything is put back, and in the journal that is so when the disk answers again."""
    agents.settle(who, site.clock)
    gate.clear()
    _wants(who, "d", "3")
    site_pass(who)
    clock.now += 100.0
    done = who.restore()

    assert (done.failed, done.restored) == ((), 4)
    assert {text(host, path) for path in ("a", "a/b", "c", "d")} == {"0-4"}
    gate.set()
    who.disks[0].settle(20.0)
    who.book.flush()
    who.disks[0].settle(20.0)
    assert _on_disk(who, site) == {}


def test_a_deadline_that_cannot_be_written_is_no_hand_over(
    who: lifecycle.Agent,
    gate: threading.Event,
    site: agents.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody would be held to it: everything is put back instead."""
    monkeypatch.setattr(disk, "LONG", 0.01)
    before = site.image()
    agents.settle(who, site.clock)
    gate.clear()
    who.hand_over()

    assert images.difference(before, site.image()) == {}


def test_a_deadline_that_is_refused_is_no_hand_over(
    who: lifecycle.Agent, site: agents.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is no better than one that hangs."""
    before = site.image()
    agents.settle(who, site.clock)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("koordlet.state.checkpoint.write_atomically", full)
    who.hand_over()

    assert images.difference(before, site.image()) == {}


def test_an_agent_that_ceased_to_act_hears_of_its_disk(
    who: lifecycle.Agent,
    gate: threading.Event,
    clock: clocks.Clock,
    site: agents.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it wrote last is written: a disk that has answered is not said to hang."""
    monkeypatch.setattr(disk, "LONG", 0.01)
    agents.settle(who, site.clock)
    gate.clear()
    who.switch(enforce=False)
    clock.now += 12.0
    who.one_pass(slow=True)
    detail = disk_detail(who)
    gate.set()
    assert who.disks[0]._worker.drain(20.0)  # it answers, and nobody has heard
    who.disks[1].settle(20.0)
    clock.now += 1.0
    who.one_pass(slow=False)

    assert "the journal of originals" in detail
    assert disk_detail(who) == ""


def test_a_start_gives_up(
    site: agents.Site, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its journal an agent does not know what is its own: it says so, and ends."""
    monkeypatch.setattr(disk, "OPENING", 0.1)

    def hang(*_: object) -> bool:
        gate.wait(60.0)
        raise OSError(5, "Input/output error")  # what hung writes nothing when the test is over

    monkeypatch.setattr(journal.Journal, "_load", hang)
    monkeypatch.setattr(site.host, "live", True)
    gate.clear()
    with pytest.raises(errors.HostError, match="does not answer") as refused:
        lifecycle.Agent(site.line(), site.paths, enforce=False)

    assert "--state-dir" in refused.value.fix
    gate.set()


def _wants(who: lifecycle.Agent, path: str, cpus: str) -> None:
    """The policy wants another set for a group from now on."""
    settings = who.tick.extra_settings["fixed"]
    assert isinstance(settings, agents.Sets)
    group = next(
        group_path for group_path in settings.cpus if group_path.rsplit("/", maxsplit=1)[-1] == path
    )
    changed = replace(settings, cpus={**settings.cpus, group: cpus})
    who.tick.extra_settings = {**who.tick.extra_settings, "fixed": changed}


def _on_disk(who: lifecycle.Agent, site: agents.Site) -> dict[str, journal.Entry]:
    """What a successor finds."""
    ids = who.tick.observer.identity
    where = site.paths.journal
    return journal.peek(where, machine_id=ids.machine_id, boot_id=ids.boot_id)
