"""Room on filesystems: answers come later, a hung mount stops nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.history import series
from koordlet.host.fs import space
from koordlet.model import meter
from tests.kit import deadline

#: Answers nothing, as a child that sleeps in the kernel does.
HANGS = ("sleep", "infinity")
#: Answers for the first directory only.
STOPS = (
    sys.executable,
    "-c",
    (
        "import sys, time\n"
        "print(1, 2, 3, 4, 5, sys.stdin.readline()[:-1], flush=True)\n"
        "time.sleep(1000)"
    ),
)


@pytest.fixture
def made() -> Iterator[list[space.SpaceReader]]:
    """Readers that are closed at the end, with their children."""
    readers: list[space.SpaceReader] = []
    yield readers
    for reader in readers:
        reader.close()


def answered(look: space.SpaceReader, path: str, at: float = 0.0) -> series.History:
    """What is known once that directory was answered for."""
    past = series.History()

    def known() -> bool:
        past.take({"disks": look.read(at)})
        return past.disks.last(path, meter.SPACE_TOTAL) is not None

    deadline.until(known, "an answer")
    return past


def test_room(tmp_path: Path, made: list[space.SpaceReader]) -> None:
    """Bytes and inodes are those of statvfs; a directory that is not there has no values."""
    odd = tmp_path / "with a blank"
    odd.mkdir()
    made.append(space.SpaceReader([str(odd), "/does/not/exist"]))
    past = answered(made[0], str(odd))
    exact = os.statvfs(odd)

    assert exact.f_blocks * exact.f_frsize == past.disks.last(str(odd), meter.SPACE_TOTAL)
    assert exact.f_files == past.disks.last(str(odd), meter.INODES_TOTAL)
    assert past.disks.last("/does/not/exist", meter.SPACE_TOTAL) is None


def test_a_mount_that_hangs(made: list[space.SpaceReader]) -> None:
    """The directory that is not answered for rests; the others are asked about again."""
    look = space.SpaceReader(["/", "/hung", "/proc"], STOPS)
    made.append(look)
    answered(look, "/")
    child = look._child
    assert child is not None
    look.read(space.PATIENCE + 1)

    assert (look.stale, look.hung) == (("/hung",), 1)
    assert child.wait() < 0

    def next_one() -> bool:
        look.read(space.PATIENCE + 2)
        return look._asked == ["/proc"]

    deadline.until(next_one, "an answer for the first of those that are left")
    look.read(space.PATIENCE + space.REST + 20)
    assert look.stale == ("/proc",), "the first has rested; now the next one hangs"


def test_nobody_waits(made: list[space.SpaceReader]) -> None:
    """Looking returns at once, with missing values, however long the child sleeps."""
    look = space.SpaceReader(["/"], HANGS)
    made.append(look)
    looks = [look.read(at) for at in (0.0, 1.0, 2.0)]

    assert all(reading.batches[0].values[0] != reading.batches[0].values[0] for reading in looks)
    assert look.hung == 0


def test_a_child_that_dies(tmp_path: Path, made: list[space.SpaceReader]) -> None:
    """It is started again at the next question."""
    starts = tmp_path / "starts"
    look = space.SpaceReader(["/"], ("sh", "-c", f"echo >>'{starts}'"))
    made.append(look)

    def twice() -> bool:
        look.read(0.0)
        return starts.exists() and len(starts.read_bytes()) >= 2

    deadline.until(twice, "two children")
    assert look.stale == ()


def test_a_child_that_cannot_be_started() -> None:
    """It costs the values, and nothing else."""
    look = space.SpaceReader(["/"], ("/does/not/exist",))
    reading = look.read(0.0)

    assert reading.batches[0].values[0] != reading.batches[0].values[0]
    look.close()
