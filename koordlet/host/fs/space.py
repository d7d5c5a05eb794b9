"""Room on filesystems, asked for by a child that may be killed.

Covers: bytes and inodes of a few directories, hung mounts, a child that died.
Does not cover: which directories matter to whom (``host.counters.usage``), thresholds.

``statvfs(2)`` on a mount whose server is gone sleeps until the server is back. Neither the loop nor
a thread of ours may: a thread cannot be ended. So a small child asks, and answers line by line;
what it has not answered in time hangs: the child is killed, the directory rests for a while, and
its values are missing. Nobody waits: an answer is taken at the tick after the question.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from array import array
from collections.abc import Mapping, Sequence

from koordlet.model import counters, meter, pressure

#: Seconds until a question counts as hung, and until a directory that hung is asked for again.
PATIENCE = 5.0
REST = 300.0
#: Seconds that a killed child has to go, at the end.
_GOODBYE = 0.5
_METERS = (meter.SPACE_TOTAL, meter.SPACE_AVAILABLE, meter.INODES_TOTAL, meter.INODES_FREE)

#: The child: a path a line in, six fields a line out. It ends with its parent: end of input.
_CHILD = """\
import os, sys
for line in sys.stdin:
    path = line[:-1]
    try:
        s = os.statvfs(path)
        room = s.f_blocks * s.f_frsize, s.f_bavail * s.f_frsize
        print(*room, s.f_files, s.f_ffree, os.stat(path).st_dev, path, flush=True)
    except OSError:
        print("- - - - -", path, flush=True)
"""


def _system(device: str, *numbers: float) -> pressure.FileSystem:
    total, available, inodes, free = map(int, numbers)
    return pressure.FileSystem(
        device=device,
        available=available,
        capacity=total,
        # Some file systems make inodes as they need them, and say nothing about them.
        inodes_free=free if inodes else None,
        inodes=inodes or None,
    )


class SpaceReader:
    """Asks about some directories, again and again."""

    def __init__(
        self,
        paths: Sequence[str],
        command: Sequence[str] = (sys.executable, "-I", "-S", "-c", _CHILD),
    ) -> None:
        self._paths = tuple(path for path in paths if path.isprintable())
        self._slots = {path: slot for slot, path in enumerate(self._paths)}
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        #: Killed, and perhaps asleep in the kernel.
        self._ending: list[subprocess.Popen[bytes]] = []
        self._input = b""
        #: Paths that were asked and not answered, and when the first of them was.
        self._asked: list[str] = []
        self._since = 0.0
        #: Path to when it may be asked again.
        self._resting: dict[str, float] = {}
        self._values: dict[str, tuple[float, ...]] = {}
        #: Which file system it was, and when it was asked.
        self._devices: dict[str, str] = {}
        self._at: dict[str, float] = {}
        #: How often a directory hung.
        self.hung = 0

    @property
    def stale(self) -> tuple[str, ...]:
        """Directories whose mount hangs."""
        return tuple(sorted(self._resting))

    def read(self, at: float, suspended: float = 0.0) -> counters.Reading:
        """Answers since the last call; sends the next request."""
        self._ending = [child for child in self._ending if child.poll() is None]
        self._take(at)
        if self._asked and at - self._since > PATIENCE:
            self._hangs(at)
        if not self._asked:
            self._ask(at)
        every = [self._values.get(path, (counters.NAN,) * 4) for path in self._paths]
        columns = {
            what: array("d", [values[at] for values in every]) for at, what in enumerate(_METERS)
        }
        return counters.Reading.of(at, suspended, self._slots, columns, width=len(self._slots))

    @property
    def found(self) -> Mapping[str, pressure.FileSystem]:
        """Directory to its file system, of those that answered and do not hang."""
        return {path: _system(self._devices[path], *v) for path, v in self._values.items()}

    @property
    def asked_at(self) -> float | None:
        """Time of the oldest request among the answers; ``None`` before the first."""
        return min((self._at[path] for path in self._values), default=None)

    def settle(self, at: float, seconds: float) -> None:
        """Ask once, and wait so long for all answers: for commands that run once."""
        until = time.monotonic() + seconds
        self.read(at)
        while self._asked and self._child is not None and self._child.stdout is not None:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._child.stdout], [], [], left)[0]:
                return
            self._take(at)

    def close(self) -> None:
        """End the child. One that hangs in the kernel is left to the kernel."""
        self._end()
        for child in self._ending:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_GOODBYE)
        self._ending = []

    def _end(self) -> None:
        """Kill the child, and wait for nothing."""
        child, self._child = self._child, None
        self._asked, self._input = [], b""
        if child is None:
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._ending.append(child)

    def _take(self, at: float) -> None:
        if self._child is None or self._child.stdout is None:
            return
        try:
            while data := os.read(self._child.stdout.fileno(), 65536):
                self._input += data
            self._died()  # end of its output
        except BlockingIOError:
            pass
        *lines, self._input = self._input.split(b"\n")
        for line in lines:
            self._answer(line.decode("utf-8", "replace"))
            self._since = at

    def _answer(self, line: str) -> None:
        *numbers, device, path = line.split(" ", 5)
        if path not in self._asked:
            return
        self._asked.remove(path)
        try:
            self._values[path] = tuple(float(number) for number in numbers)
            self._devices[path] = device
            self._at[path] = self._since
        except ValueError:
            self._values.pop(path, None)

    def _died(self) -> None:
        """Discard a dead child's answers; the next request starts another child."""
        self._values.clear()
        self._end()

    def _hangs(self, at: float) -> None:
        """The first that was not answered is the one that the child sleeps on."""
        path = self._asked[0]
        self._resting[path] = at + REST
        self._values.pop(path, None)
        self.hung += 1
        self._end()

    def _ask(self, at: float) -> None:
        self._resting = {path: due for path, due in self._resting.items() if at < due}
        wanted = [path for path in self._paths if path not in self._resting]
        try:
            child = self._child or self._start()
            assert child.stdin is not None  # noqa: S101 -- it is a pipe
            os.write(child.stdin.fileno(), "".join(f"{path}\n" for path in wanted).encode())
        except OSError:
            self._died()
            return
        self._asked, self._since = wanted, at

    def _start(self) -> subprocess.Popen[bytes]:
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None  # noqa: S101 -- both are pipes
            os.set_blocking(pipe.fileno(), False)
        return self._child
