"""Out of processes, bytes, inodes, time on this host's kernel; and how a victim ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies
from tests.kit import deadline, live, needs

pytestmark = pytest.mark.e2e

_HEAD = "apiVersion: koordlet.io/v1\nkind: Config\npolicies:\n  node_pressure:\n"
_WORKLOADS = """\
workloads:
  - {name: quiet, qos: LS, priority: %d, match: {cgroup: node/quiet}}
  - {name: guilty, qos: LS, priority: 0, match: {cgroup: node/guilty}}
"""
#: Does what a line says: threads, or files that are gone with the process: their number and size;
#: they may be read for ever.
_WORKER = """\
import mmap, os, signal, sys, tempfile, threading
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.stack_size(1 << 16)
for_ever, held = threading.Event(), []
def read():
    files = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in held]
    while True:
        for pages in files:
            for place in range(0, len(pages), 4096):
                pages[place]
print("there", flush=True)
for line in sys.stdin:
    what, count, size, where = line.split()
    for _ in range(int(count)):
        if what == "threads":
            threading.Thread(target=for_ever.wait, daemon=True).start()
        else:
            held.append(tempfile.TemporaryFile(dir=where))
            held[-1].write(b"x" * int(size))
            held[-1].flush()
    if what == "read":
        threading.Thread(target=read, daemon=True).start()
    print("done", flush=True)
"""


class Node:
    """Workloads in groups of their own, in the hierarchies that count memory and processes."""

    def __init__(self, place: live.Place) -> None:
        layout = hierarchies.discover(live.HOST)
        holders = [layout.holder(name) for name in ("memory", "pids")]
        mounts = dict.fromkeys(hierarchy.mount for hierarchy in holders if hierarchy is not None)
        self.place = place
        self.tops = [Path(mount, place.name) for mount in mounts]
        self.made: list[Path] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._group("node", self.tops)

    def _group(self, path: str, tops: list[Path]) -> list[Path]:
        """Make it everywhere."""
        self.place.group(path)
        there = []
        for top in tops:
            for group in (top, top / path):
                if not group.exists():
                    group.mkdir()
                    self.made.append(group)
            there.append(top / path)
        return there

    def start(self, name: str, manner: str = "") -> None:
        """A workload that waits for what to do."""
        groups = self._group(f"node/{name}", self.tops)

        def enter() -> None:
            for group in groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, manner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=enter,  # noqa: PLW1509
        )
        self.processes[name] = process
        self._hears(process, b"there\n")

    def tell(self, name: str, what: str, count: int, size: int = 0, where: str = "-") -> None:
        """Have it do something; returns when it is done, or the process is."""
        process = self.processes[name]
        assert process.stdin is not None
        process.stdin.write(f"{what} {count} {size} {where}\n".encode())
        process.stdin.flush()

    def _hears(self, process: subprocess.Popen[bytes], word: bytes) -> None:
        assert process.stdout is not None
        assert process.stdout.readline() == word

    def ended(self, name: str) -> int:
        """Wait until it ended; how."""
        process = self.processes[name]
        deadline.until(lambda: process.poll() is not None, f"{name} ended")
        assert process.returncode is not None
        return process.returncode

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


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB and 2000 inodes in a file of ours."""
    image, where = tmp_path / "disk", tmp_path / "mount"
    where.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-N", "2000", "-m", "0", str(image)], check=True)
    made = subprocess.run(["mount", "-o", "loop", str(image), str(where)], check=False)
    if made.returncode:
        needs.missing("no loop device can be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def audited(place: live.Place) -> list[dict[str, object]]:
    """What the audit log says about evictions."""
    path = Path(place.paths.audit)
    lines = path.read_text().splitlines() if path.exists() else []
    return [entry for entry in map(json.loads, lines) if "Evict" in json.dumps(entry)]


def available() -> int:
    """Tasks that this machine may still have."""
    limits = [Path("/proc/sys/kernel", name).read_text() for name in ("pid_max", "threads-max")]
    there = Path("/proc/loadavg").read_text().split()[3].partition("/")[2]
    return min(map(int, limits)) - int(there)


def test_processes(place: live.Place, node: Node, tmp_path: Path) -> None:
    """Who has the most of them ends, in order, and nobody else; the audit log has it."""
    config = tmp_path / "config.yaml"
    wanted = available() - 700
    config.write_text(f'{_HEAD}    evictionHard: {{pid.available: "{wanted}"}}\n{_WORKLOADS % 0}')
    node.start("quiet")
    node.start("guilty")
    with place.running("--config", str(config)) as running:
        running.until("READY=1")
        node.tell("quiet", "threads", 20)
        node.tell("guilty", "threads", 1400)
        assert node.ended("guilty") == -signal.SIGTERM
        deadline.until(lambda: audited(place), "it is in the audit log")

    assert node.processes["quiet"].poll() is None
    assert "pid.available" in json.dumps(audited(place))


@pytest.mark.parametrize("what", ["available", "inodesFree"])
def test_a_disk(place: live.Place, node: Node, disk: Path, tmp_path: Path, what: str) -> None:
    """Full in bytes, full in inodes: the lower priority ends, its files go, and that is enough."""
    config = tmp_path / "config.yaml"
    limits = f"    nodefs: {disk}\n    evictionHard: {{nodefs.{what}: 40%}}\n"
    config.write_text(_HEAD + limits + _WORKLOADS % 9)
    count, size = {"available": (11, 1 << 20), "inodesFree": (1500, 0)}[what]
    node.start("quiet")
    node.start("guilty")
    with place.running("--config", str(config)) as running:
        running.until("READY=1")
        node.tell("guilty", "files", count, size, str(disk))
        assert node.ended("guilty") == -signal.SIGTERM
        free = os.statvfs(disk)
        assert free.f_bavail > free.f_blocks * 0.4
        assert free.f_ffree > free.f_files * 0.4
        deadline.until(lambda: audited(place), "it is in the audit log")

    assert node.processes["quiet"].poll() is None
    assert f"nodefs.{what}" in json.dumps(audited(place))


def test_time_lost_to_short_memory(place: live.Place, node: Node, tmp_path: Path) -> None:
    """A workload that reads more than it may hold stalls the machine, and ends for it."""
    if not Path("/proc/pressure/memory").exists():
        needs.missing("this kernel counts no pressure")
    config = tmp_path / "config.yaml"
    own = "    evictionHard: {}\n    evictionOwnGracePeriod: 2s\n"
    config.write_text(f"{_HEAD}{own}    evictionOwn: {{memory.some.avg10: 4%}}\n{_WORKLOADS % 9}")
    node.start("quiet")
    node.start("guilty")
    holder = hierarchies.discover(live.HOST).holder("memory")
    assert holder is not None
    limit = "memory.max" if holder.unified else "memory.limit_in_bytes"
    Path(holder.mount, place.name, "node/guilty", limit).write_text("16M")
    with place.running("--config", str(config)) as running:
        running.until("READY=1")
        node.tell("guilty", "read", 96, 1 << 20, "/var/tmp")
        assert node.ended("guilty") == -signal.SIGTERM
        deadline.until(lambda: audited(place), "it is in the audit log")

    assert node.processes["quiet"].poll() is None
    (event, *_) = audited(place)
    assert event["signal"] == "pressure.memory.some.avg10"
    assert "The node lost time to short memory. Threshold quantity: 4%, lost: " in str(
        event["message"]
    )


def test_who_does_not_listen_is_killed(place: live.Place, node: Node, tmp_path: Path) -> None:
    """A second after it was asked to end."""
    config = tmp_path / "config.yaml"
    wanted = available() - 700
    config.write_text(f'{_HEAD}    evictionHard: {{pid.available: "{wanted}"}}\n{_WORKLOADS % 9}')
    node.start("quiet")
    node.start("guilty", "deaf")
    with place.running("--config", str(config)) as running:
        running.until("READY=1")
        node.tell("guilty", "threads", 1400)
        assert node.ended("guilty") == -signal.SIGKILL

    assert node.processes["quiet"].poll() is None


def test_shadow_ends_nobody(place: live.Place, node: Node, tmp_path: Path) -> None:
    """It names the victim."""
    config = tmp_path / "config.yaml"
    shadow = f'{_HEAD}    mode: shadow\n    evictionHard: {{pid.available: "{available()}"}}\n'
    config.write_text(shadow + _WORKLOADS % 9)
    node.start("quiet")
    node.start("guilty")
    node.tell("guilty", "threads", 500)
    with place.running("--config", str(config)) as running:
        running.until("READY=1")
        plan = place.call("plan", "-o", "json", "--config", str(config))
        (victim,) = json.loads(plan.stdout)["evictions"]
        assert victim["pod"].endswith("/guilty")
        assert victim["signal"] == "pid.available"

    assert [process.poll() for process in node.processes.values()] == [None, None]
