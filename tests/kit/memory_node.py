"""A group of so much memory that stands for a node, on this host's cgroup v1.

Covers: the group, programs in groups below it, their end.
Does not cover: what they do with the memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from koordlet.host.cgroup import hierarchies
from tests.kit import live


class Node:
    """It is there until it is closed."""

    def __init__(self, place: live.Place, mebibytes: int) -> None:
        where = hierarchies.discover(live.HOST).holder("memory")
        assert where is not None
        self._place = place
        self._top = Path(where.mount, place.name)
        self._made: list[Path] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        #: Where its memory is counted.
        self.group = self._top / "node"
        place.group("node")
        self._mkdir(self._top)
        self._mkdir(self.group)
        (self.group / "memory.limit_in_bytes").write_text(str(mebibytes << 20))

    def _mkdir(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        self._made.append(path)

    def start(self, name: str, code: str, *words: str) -> subprocess.Popen[bytes]:
        """A workload: a Python program that says ``there`` when it holds what it shall."""
        self._place.group(f"node/{name}")
        self._mkdir(self.group / name)
        listed = self.group / name / "cgroup.procs"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # In its group before its first page. Nothing here has a thread that could hold a lock.
            preexec_fn=lambda: listed.write_text(str(os.getpid())),  # noqa: PLW1509 -- as above
        )
        self.processes[name] = process
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        return process

    def close(self) -> None:
        """End everything and remove the groups."""
        live.end(self.processes.values(), self._made)
