"""Runs the standalone scheduler as a child of the agent, and restarts it when it ends.

Covers: the process, pauses between starts, both ends of "the child ends with its parent".
Does not cover: scheduling (``scheduler.process.lifecycle``), when it is wanted (``bootstrap``).

Rules:
1. A scheduler that dies costs the agent nothing: the end is logged, and the scheduler is restarted
   after a pause that doubles from half a second to half a minute. After a life of a minute, the
   pause is the shortest again.
2. The agent terminates it, and kills it where that takes too long. An agent that is killed cannot:
   so the child asks the kernel for a signal when its parent ends (``PR_SET_PDEATHSIG``, prctl(2)).
   The request is cleared by fork and follows the parent's thread; the agent starts the child from
   its one thread. The child sees a parent that ended earlier by its number (getppid(2)).
3. It is a process group of its own, so that a terminal's Ctrl-C reaches the agent alone, and it
   gets no variables of the service manager, which speaks to the agent only.
4. It dies for want of memory before the agent does: its ``oom_score_adj`` is the default.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from koordlet import log
from koordlet.model.record import dataclass

_DEATH_SIGNAL = 1
#: Variables for the service itself (sd_notify(3), sd_watchdog_enabled(3)).
_NOT_FOR_IT = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID")
_OOM_SCORE = Path("/proc/self/oom_score_adj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Pauses between starts, and the patience for an end."""

    first_seconds: float = 0.5
    most_seconds: float = 30.0
    #: After so long a life, the next pause is the shortest.
    well_seconds: float = 60.0
    #: From SIGTERM to SIGKILL.
    grace_seconds: float = 10.0


class SchedulerChild:
    """Keeps one scheduler running."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._words = tuple(words)
        self._pace = Pace() if pace is None else pace
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        #: The process, while there is one.
        self.pid: int | None = None
        self.starts = 0

    def start(self) -> None:
        """Start it, in the running event loop."""
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End it for good."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        failures = 0
        while True:
            began = self._clock()
            why = await self._once()
            if self._clock() - began >= self._pace.well_seconds:
                failures = 0
            pause = min(
                self._pace.most_seconds, self._pace.first_seconds * (1 << min(failures, 16))
            )
            failures += 1
            log.get().warning("scheduler.ended", why=why, again_in_seconds=pause)
            await asyncio.sleep(pause)

    async def _once(self) -> str:
        """Run it once; return how it ended."""
        env = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_IT}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words, stdin=asyncio.subprocess.DEVNULL, env=env, process_group=0
            )
        except OSError as error:
            return f"cannot be started: {error.strerror}"
        self.pid = process.pid
        self.starts += 1
        log.get().info("scheduler.child_started", pid=process.pid)
        try:
            status = await process.wait()
            return f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
        finally:
            if process.returncode is None:
                await self._end(process)
            self.pid = None

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), self._pace.grace_seconds)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def end_with(parent: int) -> bool:
    """In the child: end when the parent does (rules 2, 4); ``False``: the parent has ended."""
    import ctypes  # noqa: PLC0415 -- only a child needs it

    ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text("0", encoding="ascii")
    return os.getppid() == parent
