"""The standalone scheduler as a child of the agent: started, started anew when it ends, ended.

Covers: the process, pauses between starts, both ends of "the child ends with its parent".
Does not cover: scheduling (``scheduler.process.lifecycle``), when it is wanted (``cli.run``).

Rules:
1. A scheduler that dies costs the agent nothing: it is said, and started anew after a pause that
   doubles from half a second to half a minute. One that has worked for a minute begins with the
   short pause again.
2. The agent ends it in order, and kills it where it takes too long. An agent that is killed cannot:
   so the child asks the kernel for a signal when its parent ends (``PR_SET_PDEATHSIG``, prctl(2)).
   The request is cleared by fork and follows the parent's thread; the agent starts it from its one
   thread. A parent that ended before the child could ask is seen by its number (getppid(2)).
3. It is a group of its own, so that a terminal's Ctrl-C reaches the agent alone, and it is told
   nothing of the service manager, whose one conversation is the agent's.
4. It dies for want of memory before the agent does: its ``oom_score_adj`` is the usual one.
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
#: What a service manager tells its service, and nobody else (sd_notify(3), sd_watchdog_enabled(3)).
_NOT_FOR_IT = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID")
_OOM_SCORE = Path("/proc/self/oom_score_adj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How patient."""

    first_seconds: float = 0.5
    most_seconds: float = 30.0
    #: One that lived so long was well.
    well_seconds: float = 60.0
    #: For an end in order.
    grace_seconds: float = 10.0


class SchedulerChild:
    """Keeps one process running."""

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
        """Begin, in the running loop."""
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End it, and start it no more."""
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
        """One life; how it ended."""
        told = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_IT}
        try:
            one = await asyncio.create_subprocess_exec(
                *self._words, stdin=asyncio.subprocess.DEVNULL, env=told, process_group=0
            )
        except OSError as error:
            return f"cannot be started: {error.strerror}"
        self.pid = one.pid
        self.starts += 1
        log.get().info("scheduler.child_started", pid=one.pid)
        try:
            return _ending(await one.wait())
        finally:
            if one.returncode is None:
                await self._end(one)
            self.pid = None

    async def _end(self, one: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            one.terminate()
        try:
            await asyncio.wait_for(one.wait(), self._pace.grace_seconds)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                one.kill()
            await one.wait()


def _ending(status: int) -> str:
    return f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"


def end_with(parent: int) -> bool:
    """In the child: end when the parent does. ``False``: it has ended already (rules 2 and 4)."""
    # Only a child needs it.
    import ctypes  # noqa: PLC0415

    ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
    with contextlib.suppress(OSError):
        _OOM_SCORE.write_text("0", encoding="ascii")
    return os.getppid() == parent
