"""Processes and disks for scripts: on the running kernel, and on the stand-in.

Covers: starting, ending, waiting, affinity, memory that is really held, loop devices.
Does not cover: the files (both sides are a ``HostRoot``).
"""

from __future__ import annotations

import abc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from koordlet.host.fs.live_host import LiveHost
from koordlet.host.fs.root import HostRoot, fail
from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.host import KernelHost

#: How long anything on a real kernel may take before it counts as not happening.
PATIENCE_SECONDS = 30.0
_POLL_SECONDS = 0.01
_DISK_BYTES = 1 << 20

#: Waits for a line, then touches as many bytes, says so, and sleeps.
_HOG = """
import signal, sys
held = bytearray(int(sys.stdin.readline()))
held[::4096] = b"x" * len(held[::4096])
print("ready", flush=True)
signal.pause()
"""


class Actors(abc.ABC):
    """The processes of one session."""

    host: HostRoot

    @abc.abstractmethod
    def spawn(self) -> int:
        """A process that only sleeps, where this one is."""

    @abc.abstractmethod
    def hog(self) -> int:
        """A process that can hold memory later."""

    @abc.abstractmethod
    def hold(self, pid: int, size: int) -> None:
        """Makes a hog hold that many bytes."""

    @abc.abstractmethod
    def end(self, pid: int) -> None:
        """Kills and reaps it."""

    @abc.abstractmethod
    def outcome(self, pid: int) -> str:
        """``killed`` once something else has ended it, ``running`` when that does not happen."""

    @abc.abstractmethod
    def affinity(self, pid: int) -> CPUSet:
        """sched_getaffinity(2)."""

    @abc.abstractmethod
    def pin(self, pid: int, cpus: CPUSet) -> None:
        """sched_setaffinity(2)."""

    @abc.abstractmethod
    def plug(self) -> str:
        """A block device that nobody else uses: its number, MAJOR:MINOR."""

    @abc.abstractmethod
    def unplug(self, number: str) -> None:
        """Gives it back."""

    @abc.abstractmethod
    def until(self, true: Callable[[], bool]) -> bool:
        """Whether something becomes true in time."""


class Real(Actors):
    """Real processes, children of this one."""

    def __init__(self) -> None:
        self.host = LiveHost()
        self._children: dict[int, subprocess.Popen[str]] = {}
        #: Loop devices by their number.
        self._disks: dict[str, str] = {}

    def _start(self, *argv: str) -> int:
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._children[child.pid] = child
        return child.pid

    def spawn(self) -> int:
        return self._start("sleep", "infinity")

    def hog(self) -> int:
        return self._start(sys.executable, "-c", _HOG)

    def hold(self, pid: int, size: int) -> None:
        child = self._children[pid]
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{size}\n")
        child.stdin.flush()
        child.stdout.readline()

    def end(self, pid: int) -> None:
        child = self._children.pop(pid)
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            assert stream is not None
            stream.close()

    def outcome(self, pid: int) -> str:
        try:
            code = self._children[pid].wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            return "running"
        return "killed" if code < 0 else f"exited {code}"

    def affinity(self, pid: int) -> CPUSet:
        return CPUSet.of(os.sched_getaffinity(pid))

    def pin(self, pid: int, cpus: CPUSet) -> None:
        os.sched_setaffinity(pid, set(cpus))

    def plug(self) -> str:
        with tempfile.NamedTemporaryFile() as image:
            image.truncate(_DISK_BYTES)
            # The device keeps the file, which has no name any more.
            made = subprocess.run(
                ["losetup", "--find", "--show", image.name],
                check=True,
                capture_output=True,
                text=True,
            )
        device = made.stdout.strip()
        number = self.host.text(
            self.host.sys("class", "block", device.removeprefix("/dev/"), "dev")
        ).strip()
        self._disks[number] = device
        return number

    def unplug(self, number: str) -> None:
        subprocess.run(["losetup", "--detach", self._disks.pop(number)], check=True)

    def until(self, true: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not true():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


class StandIn(Actors):
    """Processes of a machine in memory, where everything happens at once."""

    def __init__(self, host: KernelHost) -> None:
        self.host = host
        self._kernel = host

    def spawn(self) -> int:
        return self._kernel.spawn()

    def hog(self) -> int:
        return self._kernel.spawn(name="hog")

    def hold(self, pid: int, size: int) -> None:
        self._kernel.hold(pid, size)

    def end(self, pid: int) -> None:
        if self._kernel.alive(pid):
            self._kernel.exit(pid)

    def outcome(self, pid: int) -> str:
        return "running" if self._kernel.alive(pid) else "killed"

    def affinity(self, pid: int) -> CPUSet:
        return self._kernel.affinity(pid)

    def pin(self, pid: int, cpus: CPUSet) -> None:
        try:
            self._kernel.pin(pid, cpus)
        except OSError as error:
            raise fail(error.errno or 0, str(pid)) from None

    def plug(self) -> str:
        return self._kernel.plug()

    def unplug(self, number: str) -> None:
        self._kernel.unplug(number)

    def until(self, true: Callable[[], bool]) -> bool:
        return true()
