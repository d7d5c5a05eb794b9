"""From options to a line: whose clock, whose files, and why an agent may only observe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from koordlet.agent import bootstrap
from koordlet.config import last_answer
from koordlet.host.cgroup import hierarchies
from koordlet.host.fs import root
from koordlet.model import cgroup, errors
from koordlet.state import last_config
from tests.kit import agents
from tests.kit.kernel import Machine


@pytest.fixture
def recorded(tmp_path: Path) -> root.HostRoot:
    """A recorded machine whose files are of three ages."""
    for number, path in enumerate(("proc/stat", "proc/meminfo", "sys/devices/system/cpu/online")):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("0\n")
        os.utime(place, (1000 + number, 1000 + number))
    return bootstrap.host(argparse.Namespace(root=str(tmp_path)))


class Place:
    """Where an agent starts: a file, a state directory, an environment."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "config.yaml"
        self.last = folder / "state/lib/last-config.yaml"
        self.answer = folder / "state/lib/last-answer.json"
        self._args = argparse.Namespace(config=str(self.file), state_dir=str(folder / "state"))

    def start(self, **flags: object) -> bootstrap.Start:
        """What it starts with."""
        return bootstrap.start(self._args, flags)


GOOD = agents.HEADER + "report: {http: {address: '127.0.0.1:1'}}\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With a good file."""
    made = Place(tmp_path)
    made.file.write_text(GOOD)
    return made


def test_a_good_file_is_what_is_started_with(place: Place) -> None:
    """Whatever was good before it."""
    last_config.keep(place.last, agents.HEADER)
    start = place.start()
    assert (
        start.config.config.report.http.address,
        start.refused,
        start.configured,
    ) == ("127.0.0.1:1", None, True)


def test_a_start_like_the_last_one_validates_nothing(place: Place) -> None:
    """Its answer is on disk; one that is to be kept says what was asked."""
    first = place.start(mode="observe")
    assert first.asked is not None
    place.answer.parent.mkdir(parents=True)
    last_answer.keep(place.answer, first.asked, first.config)

    again, other = place.start(mode="observe"), place.start()

    assert (again.config, again.asked) == (first.config, None)
    assert other.asked is not None, "another question"


def test_an_answer_is_not_kept_where_no_start_looks(place: Place) -> None:
    """A start knows the directory of the command line, not yet the one that the file names."""
    place.file.write_text(f"{GOOD}state: {{dir: {place.file.parent}/elsewhere}}\n")

    assert place.start().asked is not None, "the command line's comes first"
    assert bootstrap.start(argparse.Namespace(config=str(place.file)), {}).asked is None


@pytest.mark.parametrize("text", ["mod: observe\n", "{", "kind: Pod\n", None])
def test_the_last_good_one(place: Place, text: str | None) -> None:
    """In place of a file with an error, and of one that is not there where it was named."""
    last_config.keep(place.last, GOOD)
    place.file.unlink() if text is None else place.file.write_text(text)
    start = place.start()
    assert start.config.config.report.http.address == "127.0.0.1:1"
    assert (start.config.config.mode, start.configured) == ("enforce", True)
    assert str(place.file) in str(start.refused)
    assert f"the last good configuration, {place.last}" == start.instead


@pytest.mark.parametrize(
    ("last", "why"),
    [(None, "no last good"), ("mod: observe\n", "mod"), ("\0", "U+0000")],
)
def test_without_any_good_one(place: Place, last: str | None, why: str) -> None:
    """The built-in values, observing, and words about both files."""
    place.file.write_text("{")
    if last is not None:
        last_config.keep(place.last, last)
    start = place.start()
    assert (start.config.config.mode, start.configured) == ("observe", False)
    assert "built-in values, observing only" in start.instead
    assert why in start.instead
    assert str(place.file) in str(start.refused)


@pytest.mark.parametrize(
    ("state", "finds"),
    [
        ("state:\n  # ours\n\n  handoverSeconds: 9\n  dir: {}\n", True),
        ("state: {{handoverSeconds: 9, dir: '{}'}}\n", True),
        ("state:\n  dir: {}  # ours\nmode: [\n", True),
        ("state:\n  # before: {{dir: /old}}\n  dir: {}\n", True),
        ("report:\n  dir: {}\n", False),
        ("# state:\n#  dir: {}\n", False),
    ],
)
def test_the_last_good_one_is_beside_the_journal_that_a_refused_file_names(
    place: Place, state: str, *, finds: bool
) -> None:
    """Whatever else is wrong with it: ``restore`` finds what was changed by the same text."""
    elsewhere = place.file.parent / "elsewhere"
    last_config.keep(elsewhere / "lib/last-config.yaml", f"{GOOD}state: {{dir: {elsewhere}}}\n")
    place.file.write_text("mod: observe\n" + state.format(elsewhere))
    args = argparse.Namespace(config=str(place.file))
    config = bootstrap.start(args, {}).config
    assert (config.config.state.dir == str(elsewhere)) is finds


def test_what_others_may_write_is_not_the_last_good_one(place: Place) -> None:
    """An agent observes rather than to do what somebody else has put there."""
    last_config.keep(place.last, GOOD)
    place.last.chmod(0o666)
    place.file.write_text("{")
    start = place.start()
    assert not start.configured
    assert "others can write to it" in start.instead


def test_an_error_beside_the_file_is_raised(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can mend the command line or the environment of an agent that runs."""
    last_config.keep(place.last, GOOD)
    with pytest.raises(errors.ConfigError, match=r"report\.http\.address"):
        place.start(**{"report.http.address": "nowhere"})
    monkeypatch.setenv("KOORDLET_LOG__LEVEL", "loud")
    with pytest.raises(errors.ConfigError, match="loud"):
        place.start()


def test_a_recording_has_its_own_time(recorded: root.HostRoot) -> None:
    """The newest timestamp of a recording is its now; ``--now`` overrides it."""
    overridden = argparse.Namespace(cgroup_root=None, now=5.0)
    unset = argparse.Namespace(cgroup_root=None, now=None)
    times = [
        bootstrap.open_tick(args, recorded, agents.effective()).clock().wall
        for args in (unset, overridden)
    ]

    assert times == [1002.0, 5.0]


def test_where_state_is_kept() -> None:
    """The flag wins over the configuration."""
    config = agents.effective("state: {dir: /from/file}\n")
    flag, file = (
        bootstrap.state_paths(argparse.Namespace(state_dir=state_dir), config)
        for state_dir in ("/flag", None)
    )

    assert (
        str(flag.journal),
        str(file.journal),
    ) == ("/flag/lib/journal", "/from/file/lib/journal")


def test_why_an_agent_may_only_observe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told to, not root, nothing mounted, mounted read-only: each has its own sentence."""
    layout = hierarchies.discover(Machine("0-1"))
    config = agents.effective()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    closed = cgroup.Layout(
        hierarchies=(
            cgroup.Hierarchy(
                mount="/c", unified=False, controllers=frozenset({"cpuset"}), writable=False
            ),
        )
    )

    assert bootstrap.why_observe(config, layout) == ""
    assert "mode is observe" in bootstrap.why_observe(agents.effective("mode: observe\n"), layout)
    assert "no cgroup hierarchy is mounted" in bootstrap.why_observe(config, cgroup.Layout())
    assert "/c" in bootstrap.why_observe(config, closed)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert bootstrap.why_observe(config, layout) == "not running as root"


@pytest.mark.parametrize(
    ("by", "store", "alone", "evicts"),
    [
        ("auto", None, True, "LocalEviction"),
        ("auto", object(), False, "ApiEviction"),
        ("auto", object(), True, "LocalEviction"),
        ("local", object(), False, "LocalEviction"),
        ("api", object(), True, "ApiEviction"),
        ("delete", object(), False, "ApiEviction"),
        ("api", None, True, "no API server is configured: set kube.mode, or eviction.by: local"),
    ],
)
def test_who_evicts(by: str, store: object, *, alone: bool, evicts: str) -> None:
    """As configured, else the API server, else this machine; who cannot says what to set."""
    section = agents.effective(f"eviction: {{by: {by}}}\n").config.eviction
    node = SimpleNamespace(node=SimpleNamespace(name="n1"))
    line: Any = SimpleNamespace(
        host=None, observer=SimpleNamespace(layout=cgroup.Layout()), observation=node
    )
    sources: Any = None if store is None else SimpleNamespace(store=store, alone=alone)
    backend = bootstrap._eviction_backend(sources, line, section)
    assert backend == evicts if isinstance(backend, str) else type(backend).__name__ == evicts
    assert getattr(backend, "_delete", by == "delete") is (by == "delete")
