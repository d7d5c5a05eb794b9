"""A node that runs out of memory, on this host's kernel: a real victim ends, and the right one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host import hierarchies
from tests.kit import deadline, live

pytestmark = pytest.mark.e2e

_MI = 1 << 20
_CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
policies:
  node_pressure:
    memoryCgroup: node
    evictionHard: {memory.available: 150Mi}
    enforceNodeAllocatable: []
workloads:
  - {name: small, qos: BE, requests: {memory: 50Mi}, match: {cgroup: node/small}}
  - {name: large, qos: LS, requests: {memory: 50Mi}, match: {cgroup: node/large}}
  - {name: asked, qos: BE, requests: {memory: 300Mi}, match: {cgroup: node/asked}}
"""
#: Takes its memory, and what it is told to take on top.
_HOG = """\
import sys
held = [b"x" * (int(sys.argv[1]) << 20)]
print("there", flush=True)
for line in sys.stdin:
    held.append(b"x" * (int(line) << 20))
"""


class Node:
    """A group of so much memory that stands for a node, with processes in groups below."""

    def __init__(self, place: live.Place) -> None:
        where = hierarchies.discover(live.HOST).holder("memory")
        assert where is not None
        self.place = place
        self.top = Path(where.mount, place.name)
        self.made: list[Path] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        place.group("node")
        self._mkdir(self.top)
        self._mkdir(self.top / "node")
        (self.top / "node/memory.limit_in_bytes").write_text(str(400 * _MI))

    def _mkdir(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        self.made.append(path)

    def start(self, name: str, mebibytes: int) -> None:
        """A workload that holds so much."""
        self.place.group(f"node/{name}")
        self._mkdir(self.top / "node" / name)
        listed = str(self.top / "node" / name / "cgroup.procs")
        one = subprocess.Popen(
            [sys.executable, "-c", _HOG, str(mebibytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=lambda: Path(listed).write_text(str(os.getpid())),  # noqa: PLW1509
        )
        self.processes[name] = one
        assert one.stdout is not None
        assert one.stdout.readline() == b"there\n"

    def grow(self, name: str, mebibytes: int) -> None:
        """Have it take more."""
        pipe = self.processes[name].stdin
        assert pipe is not None
        pipe.write(b"%d\n" % mebibytes)
        pipe.flush()

    def close(self) -> None:
        """End everything and remove the groups."""
        live.end(self.processes.values(), self.made)


@pytest.fixture
def node(place: live.Place) -> Iterator[Node]:
    """Removed at the end."""
    made = Node(place)
    try:
        yield made
    finally:
        made.close()


def test_memory(place: live.Place, node: Node, tmp_path: Path) -> None:
    """Who holds more than it asked for ends, in order; who asked for more holds on; then relief."""
    config = tmp_path / "config.yaml"
    config.write_text(_CONFIG)
    node.start("small", 20)
    node.start("large", 110)
    node.start("asked", 20)
    with place.running("--config", str(config)) as running:
        running.until("READY=1")
        assert all(one.poll() is None for one in node.processes.values())
        before = time.monotonic()
        node.grow("asked", 130)
        deadline.until(lambda: node.processes["large"].poll() is not None, "the victim ended")
        sys.stderr.write(f"crossed and ended within {time.monotonic() - before:.2f} s\n")
        audit = Path(place.paths.audit)
        deadline.until(
            lambda: audit.exists() and b'"Evict"' in audit.read_bytes(), "it is in the audit log"
        )

    assert node.processes["small"].poll() is None
    assert node.processes["asked"].poll() is None
