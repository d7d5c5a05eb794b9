"""Whom this host's kernel kills first: set on real processes, inherited, and put back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies
from tests.kit import deadline, live

pytestmark = pytest.mark.e2e

_CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
policies: {oom_score: {mode: enforce}}
workloads:
  - {name: batch, qos: BE, match: {cgroup: batch}}
  - {name: web, qos: LS, match: {cgroup: web}}
"""
#: Starts a process with each line, and says its number.
_PARENT = """\
import subprocess, sys
print("there", flush=True)
for line in sys.stdin:
    print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
"""


def score(pid: int) -> int:
    """What it says."""
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def line(process: subprocess.Popen[bytes]) -> str:
    """What it says next."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def test_set_inherited_put_back(place: live.Place, tmp_path: Path) -> None:
    """Best-effort goes first; who asked for nothing is left alone; a child's is put back, too."""
    where = hierarchies.discover(live.HOST).holder("memory")
    assert where is not None
    config, made = tmp_path / "config.yaml", []
    config.write_text(_CONFIG)
    for name in ("", "batch", "web"):
        if name:
            place.group(name)
        path = Path(where.mount, place.name, name)
        if not path.exists():
            path.mkdir()
            made.append(path)
    batch, web = (
        subprocess.Popen(
            [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    )
    children: list[int] = []
    try:
        for name, process in (("batch", batch), ("web", web)):
            assert line(process) == "there"
            for top in dict.fromkeys((str(made[0]), place.cpuset)):
                Path(top, name, "cgroup.procs").write_text(str(process.pid))
        before = score(batch.pid)
        with place.running("--config", str(config)) as running:
            running.until("READY=1")
            deadline.until(lambda: score(batch.pid) == 1000, "it goes first")
            assert batch.stdin is not None
            batch.stdin.write(b"\n")
            batch.stdin.flush()
            children.append(int(line(batch)))
            assert score(children[0]) == 1000
            journal = Path(place.paths.journal)
            deadline.until(
                lambda: f"/proc/{children[0]}/".encode() in journal.read_bytes(), "it is noted"
            )
            assert score(web.pid) == before
        assert (score(batch.pid), score(children[0])) == (before, before)
    finally:
        for pid in children:
            os.kill(pid, 9)
        live.end((batch, web), made)
