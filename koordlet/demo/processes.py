"""The demo's processes on this machine: a service, its client, a hog, and a watch over the host.

Covers: starting and ending them, when requests were due and answered, gaps of the host.
Does not cover: their cgroups (``groups``), the programs themselves (``service``, ``load``, ``hog``,
``gaps``), what the times say (``comparison``).

Whoever asks is in no group of the demo: it measures from outside, as a client would.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from koordlet.demo import groups, intervals

_HERE = Path(__file__).parent
#: Bytes of one read, and of a pipe: records of half a minute at the highest rate.
_BYTES = 1 << 16
_PIPE = 1 << 20


class _Records:
    """Pairs of numbers that a program writes to a pipe."""

    _PAIR = struct.Struct("dd")

    def __init__(self) -> None:
        self._handle, self.writer = os.pipe()
        os.set_blocking(self._handle, False)
        with contextlib.suppress(OSError):  # beyond what the kernel grants a user: the usual size
            fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, _PIPE)
        #: What came of the next pair.
        self._rest = b""

    def read(self) -> Iterator[intervals.Span]:
        """All that was written since the last call."""
        data = self._rest
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self._handle, _BYTES):
                data += more
        whole = len(data) - len(data) % self._PAIR.size
        self._rest = data[whole:]
        return self._PAIR.iter_unpack(data[:whole])

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._handle)


class Processes:
    """The four, and the pipes between them."""

    def __init__(self, cpus: int) -> None:
        """The service is asked for most of so many CPUs now and then; the hog wants all of them."""
        mine = str(os.getpid())
        self._requests, self._gaps = _Records(), _Records()
        with contextlib.ExitStack() as pipes:
            for records in (self._requests, self._gaps):
                pipes.callback(os.close, records.writer)
            asked, ask = _pipe(pipes)
            answers, answer = _pipe(pipes)
            self._service = _start("service", [str(2 * cpus)], stdin=asked, stdout=answer)
            self._hog = _start("hog", [mine, groups.GROUP, str(cpus)])
            words = [mine, str(cpus), str(ask), str(answers)]
            load = _start("load", words, stdout=self._requests.writer, passed=(ask, answers))
            gaps = _start("gaps", [mine], stdout=self._gaps.writer)
        self._running = (load, gaps, self._service, self._hog)
        self._watcher = gaps

    def settings(self) -> groups.DemoSettings:
        """Settings of the demo's policy for these processes."""
        return groups.DemoSettings(pids=(("ls", self._service.pid), ("be", self._hog.pid)))

    def requests(self) -> Iterator[intervals.Span]:
        """Requests since the last call: when due and when answered."""
        return self._requests.read()

    def gaps(self) -> list[intervals.Span] | None:
        """Gaps of the host since the last call; ``None`` where the kernel lets nobody watch."""
        return None if self._watcher.poll() is not None else list(self._gaps.read())

    def stop(self) -> None:
        """Kill and reap all; workers of service and hog end with them."""
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait()
        self._requests.close()
        self._gaps.close()


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    """Both ends; ours are closed when the programs have theirs."""
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends


def _start(
    name: str,
    words: Sequence[str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    passed: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-S", "-P", str(_HERE / f"{name}.py"), *words],
        stdin=stdin,
        stdout=stdout,
        pass_fds=passed,
        # A terminal's Ctrl-C is for the agent, which ends them when all is put back.
        process_group=0,
    )
