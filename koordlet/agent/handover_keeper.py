"""Looks after limits while no agent runs: waits for a successor, or puts everything back.

Covers: what ``koordlet restore --after-stop`` and ``--when-overdue`` decide, how long they wait,
and what a failed start does.
Does not cover: asking systemd (``host.systemd.units``), putting files back (``restore``).

Rules:
1. Limits stay without an agent only while a process waits for their deadline. Where none can wait,
   or the deadline cannot be written down, they are put back at once.
2. A running agent is never fought: the keeper waits for its lock. A ready agent has cleared the
   deadline, and nothing is left to do.
3. Only a ready agent or a final restore clears a deadline. The limits that a crash loop sets after
   the deadline are therefore put back after each crash.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import TypeVar

from koordlet.agent import restore as agent_restore
from koordlet.host import machine
from koordlet.host.systemd import units
from koordlet.model import errors, printable
from koordlet.model.record import dataclass
from koordlet.state import handover, lock

#: Seconds between two checks for a successor, or for a free lock.
LOOK_SECONDS = 1.0
#: How often the lock is tried, as another restore may hold it, before it counts as an agent's.
_TRIES = 10

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Clock, systemd and pauses; a test has its own."""

    #: Sleeps so many seconds; ``True`` at once after a signal to stop.
    pause: Callable[[float], bool]
    clock: Callable[[], float] = machine.boottime
    look: Callable[[str], units.SystemdUnit] = units.look
    start: Callable[[str], None] = units.start


def world() -> World:
    """Give this process's: SIGTERM and SIGINT only end a pause, and so interrupt no restore."""
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    return World(pause=lambda seconds: signal.sigtimedwait(stop, seconds) is not None)


#: Puts everything back once (``final`` also clears the deadline), or raises ``TakenError`` while an
#: agent runs.
Restore = Callable[..., agent_restore.Summary]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverKeeper:
    """Looks after the limits while no agent does. Each method returns a summary or a sentence."""

    #: The agent's service; empty where systemd has no part in it.
    unit: str
    lock: lock.Lock
    deadline: handover.Handover
    restore: Restore
    world: World

    def after_stop(self, result: str, seconds: float) -> agent_restore.Summary | str:
        """Leave the limits of an ended agent to a successor that systemd starts, or restore."""
        try:
            if units.comes_back(self.world.look(self.unit), result):
                return self._expect(seconds)
        except (units.SystemdError, OSError) as error:
            _say(f"nobody would wait for the deadline: {error}")
        return self._when_free(lambda: self.restore(final=True))

    def after_wait(self) -> agent_restore.Summary | str:
        """Restore where systemd stopped the waiting helper together with the agent, for good.

        Not where systemd only restarts the helper, as it does whenever it restarts the agent.
        """
        try:
            own = self.world.look(units.helper_of(self.unit))
            if own.job != "stop" or not units.left_alone(self.world.look(self.unit)):
                return f"the rest is up to {self.unit}"
        except units.SystemdError as error:
            _say(f"nobody can be relied on: {error}")
        return self._when_free(lambda: self.restore(final=True))

    def after_failed_start(self, seconds: float) -> agent_restore.Summary | str:
        """Handle a failed start where no service manager waits, as in a container.

        The deadline counts from the first failure; the first failure after it restores.
        """
        try:
            left = self._left(seconds)
            if left <= 0:
                return self.restore(final=False)
        except errors.TakenError as error:
            return f"nothing done: {error}"
        return f"limits of an earlier agent stay for {left:.0f} s"

    def when_overdue(
        self, seconds: float, left_over: Callable[[], bool]
    ) -> agent_restore.Summary | str:
        """Wait for the deadline; restore unless a ready agent has cleared it.

        Where limits are left without a recorded deadline, it counts from now.
        """
        if self.deadline.read() is None and left_over():
            try:
                if self._left(seconds) <= 0:
                    return self.restore(final=False)
            except errors.TakenError as error:
                return f"nothing done: {error}"
        while (recorded := self.deadline.read()) is not None:
            left = recorded.boottime - self.world.clock()
            if left <= 0:
                try:
                    return self.restore(final=False)
                except errors.TakenError:
                    left = LOOK_SECONDS
            if self.world.pause(min(left, LOOK_SECONDS)):
                return "told to stop: limits stay"
        return "no deadline: an agent has taken over, or everything was put back"

    def _expect(self, seconds: float) -> agent_restore.Summary | str:
        recorded = self._when_free(lambda: self._record(seconds))
        if isinstance(recorded, str):
            return recorded
        self.world.start(units.helper_of(self.unit))
        left = max(0.0, recorded.boottime - self.world.clock())
        return f"{self.unit} comes back: limits stay for {left:.0f} s"

    def _left(self, seconds: float) -> float:
        """Seconds to the deadline, recorded now where there is none; 0 where that fails."""
        try:
            return self._record(seconds).boottime - self.world.clock()
        except OSError as error:
            _say(f"the deadline cannot be kept, so it has passed: {error}")
            return 0.0

    def _record(self, seconds: float) -> handover.Deadline:
        """Record a deadline under the lock, so that a running agent gets none."""
        self.lock.acquire()
        try:
            return self.deadline.record(self.world.clock() + seconds)
        finally:
            self.lock.release()

    def _when_free(self, work: Callable[[], _T]) -> _T | str:
        """Retry while the lock is taken: another restore ends soon, an agent does not."""
        why = ""
        for _ in range(_TRIES):
            try:
                return work()
            except errors.TakenError as error:
                why = str(error)
            self.world.pause(LOOK_SECONDS)
        return f"nothing done: {why}"


def _say(text: str) -> None:
    sys.stderr.write(f"koordlet: {printable.escaped(text)}\n")
