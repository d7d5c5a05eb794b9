"""The demo's processes on this machine: a service, its client and a hog.

Covers: starting and ending them, what requests took last. Does not cover: their cgroups
(``groups``), the programs themselves (``service``, ``load``, ``hog``).

Whoever asks is in no group of the demo: it measures from outside, as a client would.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from koordlet.demo import groups, latency

_HERE = Path(__file__).parent
_LINES = 1 << 16


class Processes:
    """The three, and the pipes between them."""

    def __init__(self, cpus: int) -> None:
        """The service may use so many CPUs, and is asked for most of them now and then."""
        mine = str(os.getpid())
        #: The last complete line, and what came of the next one.
        self._rest = b""
        self._latest: latency.Latency | None = None
        with contextlib.ExitStack() as pipes:
            asked, ask = _pipe(pipes)
            answers, answer = _pipe(pipes)
            self._service = _start("service", [str(2 * cpus)], stdin=asked, stdout=answer)
            self._hog = _start("hog", [mine])
            self._told, told = os.pipe()
            pipes.callback(os.close, told)
            words = [mine, str(cpus), str(ask), str(answers)]
            self._load = _start("load", words, stdout=told, passed=(ask, answers))
        os.set_blocking(self._told, False)

    def settings(self) -> groups.DemoSettings:
        """Settings of the demo's policy for these processes."""
        return groups.DemoSettings(pids=(("ls", self._service.pid), ("be", self._hog.pid)))

    def latency(self) -> latency.Latency | None:
        """Latency of the last whole second; ``None`` before the first."""
        with contextlib.suppress(BlockingIOError):
            *lines, self._rest = (self._rest + os.read(self._told, _LINES)).split(b"\n")
            for line in lines:
                self._latest = latency.Latency.parse(line.decode())
        return self._latest

    def stop(self) -> None:
        """Kill and reap all; workers of the service end with its pipe."""
        running = (self._load, self._service, self._hog)
        for process in running:
            process.kill()
        for process in running:
            process.wait()
        os.close(self._told)


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
