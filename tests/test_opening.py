"""From options to a line: whose clock, whose files, and why an agent may only observe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from koordlet import opening
from koordlet.host import hierarchies, root
from koordlet.model import cgroup
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
    return opening.host(argparse.Namespace(root=str(tmp_path)))


def test_a_recording_has_its_own_time(recorded: root.HostRoot) -> None:
    """The newest timestamp of a recording is its now; ``--now`` overrides it."""
    told = argparse.Namespace(cgroup_root=None, now=5.0)
    untold = argparse.Namespace(cgroup_root=None, now=None)
    times = [
        opening.open_line(args, recorded, agents.effective()).clock().wall
        for args in (untold, told)
    ]

    assert [1002.0, 5.0] == times


def test_where_state_is_kept() -> None:
    """The flag wins over the configuration."""
    config = agents.effective("state: {dir: /from/file}\n")
    flag, file = (
        opening.state_paths(argparse.Namespace(state_dir=one), config) for one in ("/flag", None)
    )

    assert ("/flag/lib/journal", "/from/file/lib/journal") == (
        str(flag.journal),
        str(file.journal),
    )


def test_why_an_agent_may_only_observe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told to, not root, nothing mounted, mounted read-only: each has its own sentence."""
    found = hierarchies.discover(Machine("0-1"))
    config = agents.effective()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    closed = cgroup.Layout(
        hierarchies=(
            cgroup.Hierarchy(
                mount="/c", unified=False, controllers=frozenset({"cpuset"}), writable=False
            ),
        )
    )

    assert "" == opening.why_observe(config, found)
    assert "mode is observe" in opening.why_observe(agents.effective("mode: observe\n"), found)
    assert "no cgroup hierarchy is mounted" in opening.why_observe(config, cgroup.Layout())
    assert "/c" in opening.why_observe(config, closed)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "not running as root" == opening.why_observe(config, found)
