"""One agent per host: the lock is the kernel's, and names its holder."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.model import errors
from koordlet.state import lock

_HOLD = """
import sys
from pathlib import Path
from koordlet.state import lock
one = lock.Lock(Path(sys.argv[1]))
one.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def held_elsewhere(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    other = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    return other


def test_another_process_is_named(ram: Path) -> None:
    """While another process holds it, taking it is refused with that process's pid."""
    with held_elsewhere(ram / "run" / "lock") as other:
        with pytest.raises(errors.TakenError) as refused:
            lock.Lock(ram / "run" / "lock").acquire()
        other.communicate()

    assert f"pid {other.pid}" in str(refused.value)
    assert f"ps -fp {other.pid}" in refused.value.fix


def test_a_full_disk_costs_the_name_of_the_holder(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is the kernel's: what is to be put back does not wait for room on a disk."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (ram / "lock").write_text("312\n")  # of an earlier holder
    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        mine = lock.Lock(ram / "lock")
        mine.acquire()

    with pytest.raises(errors.TakenError, match="unknown") as refused:
        lock.Lock(ram / "lock").acquire()
    assert f"fuser -v {ram}/lock" in refused.value.fix
    mine.release()


def test_a_killed_holder_leaves_no_lock(ram: Path) -> None:
    """The kernel drops the lock with the process, however that ends."""
    with held_elsewhere(ram / "lock") as other:
        other.kill()
        other.communicate()
    mine = lock.Lock(ram / "lock")
    mine.acquire()

    assert f"{os.getpid()}\n" == (ram / "lock").read_text()
    mine.release()


def test_released_and_taken_again(ram: Path) -> None:
    """After a release anybody may have it; releasing twice is once."""
    first, second = lock.Lock(ram / "lock"), lock.Lock(ram / "lock")
    first.acquire()
    first.release()
    first.release()
    second.acquire()

    with pytest.raises(errors.TakenError, match=f"pid {os.getpid()}"):
        first.acquire()
    second.release()


def test_a_place_that_cannot_hold_it(ram: Path) -> None:
    """A file where a directory should be, or a directory in its place, is said with the fix."""
    (ram / "file").touch()
    (ram / "lock").mkdir()
    for path in (ram / "file" / "lock", ram / "lock"):
        with pytest.raises(errors.HostError) as refused:
            lock.Lock(path).acquire()
        assert str(path) == refused.value.culprit
        assert "--state-dir" in refused.value.fix
