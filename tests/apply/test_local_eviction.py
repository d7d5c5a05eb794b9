"""What runs in a group is ended, and only what is known to have ended has.

Covers: silence. Does not cover: processes that end (``tests/e2e``), since those have to be real.
"""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

from koordlet.apply import local_eviction
from koordlet.host.cgroup import hierarchies
from koordlet.host.recording import directory
from koordlet.model import eviction
from tests.kit import deep_groups, unanswering
from tests.kit.kernel import Machine

_GROUP = "/sys/fs/cgroup/web"


def test_who_nests_groups_deeper_than_calls_is_found(tmp_path: Path) -> None:
    """A process at the bottom of very many groups is ended like any other of its workload."""
    with deep_groups.nested(tmp_path) as bottom:
        (bottom / "cgroup.procs").write_text("7\n0\n")

        assert list(local_eviction.pids(directory.DirHost(str(tmp_path)), "/n")) == [7]


def test_silence_is_no_end() -> None:
    """Where the processes of a group cannot be listed, the eviction is not done, and says why."""
    machine = Machine("0-1", cgroup="v2")
    machine.mkdir(machine.at(_GROUP))
    machine.spawn(_GROUP)
    host = unanswering.UnansweringHost(machine)
    end = local_eviction.LocalEviction(host, hierarchies.discover(host))
    victim = eviction.Eviction(
        pod="host/web", uid="u", policy="p", signal="s", reason="r", message="m", group="web"
    )
    host.number, host.paths = errno.EMFILE, frozenset({f"{_GROUP}/cgroup.procs"})
    outcome = asyncio.run(end(victim))

    assert not outcome.done
    assert f"{_GROUP}/cgroup.procs: Too many open files" in outcome.detail
