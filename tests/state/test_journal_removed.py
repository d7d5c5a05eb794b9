"""A journal whose file somebody removes while koordlet runs is written anew, with all entries."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from koordlet.state import checkpoint, records
from tests.kit import agents, logs
from tests.kit.kernel import Machine
from tests.state.test_journal import entry, opened, reread


@pytest.mark.parametrize("whole", [False, True])
def test_the_next_intent_misses_it(ram: Path, *, whole: bool) -> None:
    """The file or its directory: what is written next has its original on disk, as before."""
    path = ram / "lib" / "journal"
    book = opened(path)
    book.intend([entry(1), entry(2)])
    shutil.rmtree(path.parent) if whole else path.unlink()
    book.intend([entry(3)])

    assert book.removed == 1
    assert list(reread(path).entries.values()) == [entry(1), entry(2), entry(3)]


def test_a_slow_pass_misses_it(ram: Path) -> None:
    """Nothing is intended for days where nothing changes; a flush looks, and that is cheap."""
    path = ram / "journal"
    book = opened(path)
    book.intend([entry(1)])
    path.replace(ram / "elsewhere")
    path.touch(mode=0o600)
    book.flush(readings=False)
    assert path.read_bytes() == b""
    book.flush()

    assert list(reread(path).entries.values()) == [entry(1)]
    assert book.removed == 1
    book.flush()
    assert book.removed == 1


def test_what_was_forgotten_stays_so(ram: Path) -> None:
    """A note that was for the file that is gone is in the new one."""
    path = ram / "journal"
    book = opened(path)
    book.intend([entry(1), entry(2)])
    path.unlink()
    book.forget(entry(1).target)
    book.flush()

    assert list(reread(path).entries.values()) == [entry(2)]


def test_checkpoints_make_their_directory_anew(ram: Path) -> None:
    """What is saved next is there, and what was saved before when somebody asks for it."""
    files = checkpoint.Checkpoints(ram / "checkpoint", machine_id="m", boot_id="b")
    files.save("before", 1, {"a": 1})
    files.flush()
    shutil.rmtree(ram / "checkpoint")
    files.save("after", 1, {"a": 2})
    files.flush()
    assert files.load("after", 1) == ({"a": 2}, "")
    assert files.load("before", 1) == (None, "")
    files.write_again()
    files.flush()
    assert files.load("before", 1) == ({"a": 1}, "")


def test_an_agent_that_goes_on_writes_all_of_its_state_anew(ram: Path) -> None:
    """Its journal and its checkpoints, whose states have not changed; it tells so once."""
    machine = Machine("0-3", cgroup="v2")
    machine.mkdir(machine.at("/sys/fs/cgroup/job"))
    config = "workloads: [{name: job, qos: BE, match: {cgroup: job}}]\n"
    site = agents.Site(machine, ram / "state", config=config)
    with logs.written() as told, site.agent() as agent:
        agents.settle(agent, site.clock)
        entries = dict(agent.book.entries)
        saved = sorted(path.name for path in agent.paths.checkpoints.iterdir())
        shutil.rmtree(agent.paths.lib)
        for _ in range(3):
            agent.one_pass(slow=True)

        assert entries
        assert sorted(path.name for path in agent.paths.checkpoints.iterdir()) == saved
        assert told.getvalue().count("journal.removed") == 1
    kept = records.read(site.paths.journal.read_bytes()).entries
    assert kept.keys() == entries.keys()
