"""Limits of a block device on the real kernel: a loop device of our own, throttled, put back."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.agent import lifecycle
from koordlet.host.cgroup import hierarchies
from tests.kit import agents, live, needs

pytestmark = pytest.mark.e2e

MIB = 1 << 20
CONFIG = """
policies:
  adaptive: {{mode: off}}
  blkio_qos:
    beClass: {{enable: true, blocks: [{{name: {name}, ioCfg: {{writeBPS: {bps}}}}}]}}
workloads:
  - {{name: batch, qos: BE, match: {{cgroup: batch}}}}
"""
WRITE = "blkio.throttle.write_bps_device"


@contextlib.contextmanager
def loop_device(ram: Path) -> Iterator[tuple[str, str]]:
    """A device of 16 MiB, gone at the end: its path and its number."""
    image = ram / "disk"
    image.write_bytes(bytes(16 * MIB))
    made = subprocess.run(
        ["losetup", "-f", "--show", str(image)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        needs.missing(f"no loop device: {made.stderr.strip()}")
    name = made.stdout.strip()
    try:
        number = Path(f"/sys/class/block/{name.removeprefix('/dev/')}/dev").read_text().strip()
        yield name, number
    finally:
        subprocess.run(["losetup", "-d", name], check=True)


@contextlib.contextmanager
def below(directory: str) -> Iterator[str]:
    """Groups in the hierarchy of block devices, where the test kit makes none."""
    made: list[str] = []
    try:
        for path in (directory, f"{directory}/batch"):
            live.HOST.mkdir(live.HOST.at(path))
            made.append(path)
        yield f"{directory}/batch"
    finally:
        for path in reversed(made):
            live.HOST.rmdir(live.HOST.at(path))


def seconds_to_write(group: str, device: str, size: int) -> float:
    """How long a process of the group takes to write past the page cache."""
    command = (
        f"echo $$ > {group}/cgroup.procs && exec dd if=/dev/zero of={device}"
        f" bs={MIB // 4} count={size * 4 // MIB} oflag=direct status=none"
    )
    begun = time.monotonic()
    subprocess.run(["sh", "-c", command], check=True)
    return time.monotonic() - begun


def test_a_loop_device_is_throttled_and_put_back(place: live.Place, ram: Path) -> None:
    """The kernel holds the limit, other devices' lines stay others', and nothing is left."""
    holder = hierarchies.discover(live.HOST).holder("blkio")
    if holder is None or holder.unified:
        needs.missing("no cgroup v1 hierarchy has blkio")
    place.group("batch")
    with below(f"{holder.mount}/{place.name}") as group, loop_device(ram) as (name, number):
        file = live.HOST.at(f"{group}/{WRITE}")
        place.config = CONFIG.format(name=name, bps=2 * MIB)
        free = seconds_to_write(group, name, 4 * MIB)
        assert place.forked(_settle) == 0
        assert f"{number} {2 * MIB}" == live.HOST.text(file).strip()
        # The kernel lets the first slice through; the rest takes its time.
        assert seconds_to_write(group, name, 4 * MIB) > 1.5 > free

        live.HOST.write(file, b"7:7 1048576\n")
        assert place.forked(_settle) == 0
        place.config = CONFIG.format(name=name, bps=4 * MIB)
        assert place.forked(_settle) == 0
        assert {f"{number} {4 * MIB}", "7:7 1048576"} == set(live.HOST.text(file).splitlines())

        done = place.restore()
        assert (done.left, done.failed) == ((), ())
        assert live.HOST.text(file).splitlines() == ["7:7 1048576"]
        assert place.restore().restored == 0


def _settle(who: lifecycle.Agent) -> None:
    agents.settle(who, agents.Clock())
