"""The disk of the state directory hangs, really: a file system on a loop device is frozen.

The kernel lets nobody write there until it is thawed: what asks it stands in state D, as on a disk
that a writer floods.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit import agents, answers, deadline, live, live_workloads, needs

pytestmark = pytest.mark.e2e

#: A workload that comes when the disk hangs already.
_LATE = "  - {name: late, qos: BE, match: {cgroup: late}}\n"
#: The waits of an end, one after the other, and a busy machine.
_ENDS = 30.0


@dataclass(slots=True)
class Frozen:
    """A file system of its own, and whether it answers."""

    where: Path
    frozen: bool = False

    def freeze(self) -> None:
        """From now on nobody writes."""
        subprocess.run(["fsfreeze", "-f", self.where], check=True)
        self.frozen = True

    def thaw(self) -> None:
        """It answers again."""
        if self.frozen:
            subprocess.run(["fsfreeze", "-u", self.where], check=True)
        self.frozen = False


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Frozen]:
    """An ext4 of 64 MB."""
    image, where = tmp_path / "image", tmp_path / "disk"
    where.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, where], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        needs.missing(f"no loop device can be mounted: {error}")
    frozen = Frozen(where)
    try:
        yield frozen
    finally:
        frozen.thaw()
        subprocess.run(["umount", where], check=True)


def ticks(address: str) -> float:
    """How many passes there were."""
    return answers.metric(address, "koordlet_ticks_total")


@contextlib.contextmanager
def running(place: live.Place, disk: Frozen, config: str) -> Iterator[tuple[live.Running, str]]:
    """The program, ready, its state on that disk; and where it answers."""
    path = place.state / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    socket = f'report: {{grpc: {{socket: "{place.state}/grpc"}}}}\n'
    path.write_text(agents.HEADER + socket + config)
    words = [sys.executable, "-m", "koordlet", "run", "--cgroup-root", place.name]
    words += ["--state-dir", str(disk.where / "state"), "--config", str(path)]
    agent = live.Running([*words, "--http", "127.0.0.1:0"], place.state)
    try:
        agent.until("all surfaces up")
        url = deadline.until(
            lambda: re.search(r"http://(127\.0\.0\.1:\d+)", agent.out + agent.err), "an address"
        )
        yield agent, url[1]
    finally:
        disk.thaw()
        agent.close()


def main_thread(agent: live.Running) -> str:
    """The state of the program's first thread."""
    stat = Path(f"/proc/{agent.process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


def test_the_loop_goes_on(place: live.Place, disk: Frozen) -> None:
    """Ticks go on, what protects comes back, what is new waits, and it is said what to do."""
    live_workloads.furnish(place)
    whole = place.read("cpuset.cpus")
    with running(place, disk, place.config + _LATE) as (agent, address):
        pool = place.read("batch/cpuset.cpus")
        assert pool != whole
        disk.freeze()
        place.group("late")
        place.sleeper(f"{place.cpuset}/late")
        live.HOST.write(live.HOST.at(f"{place.cpuset}/batch/cpuset.cpus"), whole.encode())
        before = ticks(address)
        deadline.until(
            lambda: "StateDiskHangs" in answers.text(address, "/api/v1/plan"), "it is said"
        )
        deadline.until(lambda: ticks(address) > before + 3, "ticks go on")
        deadline.until(lambda: place.read("batch/cpuset.cpus") == pool, "the limit is back")
        health = answers.text(address, "/healthz")
        assert whole == place.read("late/cpuset.cpus")
        disk.thaw()
        deadline.until(lambda: place.read("late/cpuset.cpus") != whole, "the rest is done")
        deadline.until(
            lambda: "StateDiskHangs" not in answers.text(address, "/api/v1/plan"), "it is over"
        )
        assert agent.ends(signal.SIGTERM) == 0

    assert f"[-]disk the disk of {disk.where}" in health
    assert "--state-dir" in health


def test_stopping_ends(place: live.Place, disk: Frozen) -> None:
    """Everything is put back, locks are free, the loop is gone; the rest goes with the disk."""
    before = live_workloads.furnish(place)
    with running(place, disk, place.config) as (agent, _):
        disk.freeze()
        place.group("web/two")
        place.sleeper(f"{place.cpuset}/web/two")
        agent.process.send_signal(signal.SIGTERM)
        deadline.until(lambda: main_thread(agent) == "Z", "its loop ends", seconds=_ENDS)
        after = place.image()
        assert "daemon.restored" in agent.err
        disk.thaw()
        assert agent.ends() == 0

    assert before.items() <= after.items()
    assert place.restore().failed == ()
