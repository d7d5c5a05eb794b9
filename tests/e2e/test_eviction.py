"""A node that runs out of memory, on this host's kernel: a real victim ends, and the right one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import deadline, live, memory_node

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


@pytest.fixture
def node(place: live.Place) -> Iterator[memory_node.Node]:
    """Removed at the end."""
    made = memory_node.Node(place, 400)
    try:
        yield made
    finally:
        made.close()


def grow(process: subprocess.Popen[bytes], mebibytes: int) -> None:
    """Have it take more."""
    assert process.stdin is not None
    process.stdin.write(b"%d\n" % mebibytes)
    process.stdin.flush()


def test_memory(place: live.Place, node: memory_node.Node, tmp_path: Path) -> None:
    """Who holds more than it asked for ends, in order; who asked for more holds on; then relief."""
    config = tmp_path / "config.yaml"
    config.write_text(_CONFIG)
    node.start("small", _HOG, "20")
    node.start("large", _HOG, "110")
    node.start("asked", _HOG, "20")
    with place.running("--config", str(config)) as running:
        running.until("READY=1")
        assert all(process.poll() is None for process in node.processes.values())
        before = time.monotonic()
        grow(node.processes["asked"], 130)
        deadline.until(lambda: node.processes["large"].poll() is not None, "the victim ended")
        sys.stderr.write(f"crossed and ended within {time.monotonic() - before:.2f} s\n")
        audit = Path(place.paths.audit)
        deadline.until(
            lambda: audit.exists() and b'"Evict"' in audit.read_bytes(), "it is in the audit log"
        )

    assert node.processes["small"].poll() is None
    assert node.processes["asked"].poll() is None
