"""The kernel of this host tells that memory grows short (cgroup v1: eventfd)."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies, memory_alarms
from tests.kit import live, needs

pytestmark = pytest.mark.e2e

_MI = 1 << 20
_HOG = """\
import sys
held = []
for line in sys.stdin:
    held.append(b"x" * (int(line) << 20))
    print("there", flush=True)
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A group that counts memory."""
    where = hierarchies.discover(live.HOST).holder("memory")
    if where is None or where.unified:
        needs.missing("no cgroup v1 hierarchy counts memory")
    made = Path(where.mount, f"koordlet-alarms-{os.getpid()}")
    made.mkdir()
    try:
        yield made
    finally:
        made.rmdir()


def test_a_level_is_crossed(group: Path) -> None:
    """Nothing is told below it; crossing wakes; set anew above, only the next crossing does."""
    told = memory_alarms.Alarms(live.HOST)
    hog = subprocess.Popen(
        [sys.executable, "-c", _HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def grow(mebibytes: int) -> None:
        assert hog.stdin is not None
        assert hog.stdout is not None
        hog.stdin.write(b"%d\n" % mebibytes)
        hog.stdin.flush()
        assert hog.stdout.readline() == b"there\n"

    def rung() -> bool:
        """Readable where the loop would see it; stalls of the whole node do not count."""
        select.select([told.handle], [], [], 5)
        before = dict(told._levels)
        return told.heard() and before != told._levels

    try:
        (group / "cgroup.procs").write_text(str(hog.pid))
        told.set({str(group): 64 * _MI})
        grow(10)
        told.heard()
        assert str(group) in told._levels
        grow(80)
        assert rung()
        told.set({str(group): 160 * _MI})
        grow(10)
        told.heard()
        assert str(group) in told._levels
        grow(90)
        assert rung()
    finally:
        hog.kill()
        hog.wait()
        for pipe in (hog.stdin, hog.stdout):
            if pipe is not None:
                pipe.close()
        told.close()


def test_stalls(group: Path) -> None:
    """The trigger of this kernel's pressure file is taken, as short a window as is allowed."""
    del group
    told = memory_alarms.Alarms(live.HOST)
    try:
        assert "pressure" not in told.problems or "No such file" in told.problems["pressure"]
    finally:
        told.close()
