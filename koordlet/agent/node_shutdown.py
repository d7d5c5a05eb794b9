"""Ends workloads in order before the node shuts down, where no kubelet does.

Covers: the lock that delays a shutdown, hearing of one, row after row, the record of it.
Does not cover: who is in which row (``policy.eviction.node_shutdown``), ending one workload
(``apply.local_eviction``), talking to the login manager (``host.systemd.login_manager``).

Rules:
1. The lock is given back once all rows are over, at the latest after the sum of their seconds: no
   workload delays a shutdown longer than the configuration says.
2. A row is over when all of its workloads have ended, or its seconds have passed. An empty row
   takes no time.
3. A second signal while rows are ended changes nothing. A shutdown that is given up ends the work
   here, and the lock is taken anew.
4. Without a login manager nothing is delayed; it is asked again each second, and said once. One
   that is lost while rows are ended does not end the delay: the lock needs no connection. What
   began, or was given up, meanwhile is learnt with the next connection.
5. An agent that does not act, and one beside a kubelet, holds no lock: it logs whom it would end.
   The lock follows the mode of the agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import time
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from koordlet import log
from koordlet.host.fs import worker
from koordlet.host.systemd import bus, login_manager
from koordlet.model import action, decision, plan, pod, result
from koordlet.policy.eviction import node_shutdown
from koordlet.state import checkpoint, ownfiles

if typing.TYPE_CHECKING:
    from koordlet.apply import evictor

#: Seconds until a login manager that does not answer is asked again.
_AGAIN = 1.0
#: Seconds that the record of a shutdown may take, and between looks: a disk that hangs delays
#: nobody, not even the end of this process, which waits for threads that asyncio has.
_DISK, _LOOK = 1.0, 0.02
#: Seconds of the first look whether the limit was raised, which doubles, and how many looks.
_FIRST_LOOK, _LOOKS = 0.1, 5
_WHO, _WHY = "koordlet", "workloads end in the order of their priority"


class LoginConnection(Protocol):
    """The connection to the login manager."""

    def __enter__(self) -> Self:
        """Stay connected."""

    def __exit__(self, *_: object) -> None:
        """Close the connection."""

    def fileno(self) -> int:
        """Become readable when there may be signals."""

    def most_delay_seconds(self) -> float:
        """Ask how long a lock delays a shutdown at most."""

    def delay_shutdown(self, who: str, why: str) -> int:
        """Take a delay lock."""

    def shutdowns(self) -> list[bool]:
        """Take the signals that came; at first, what is so already."""


def _write_record(path: Path, body: bytes) -> bool:
    ownfiles.directory(path.parent)
    checkpoint.write_atomically(path, body)
    return True


class NodeShutdown:
    """Delays shutdowns until the workloads have ended in order."""

    def __init__(
        self,
        table: Sequence[node_shutdown.Row],
        *,
        workloads: Callable[[], Iterable[pod.Pod]],
        end: evictor.Way,
        report: Callable[[result.Result], None],
        acting: Callable[[], bool],
        record: Path,
        connect: Callable[[], LoginConnection] = login_manager.LoginManager,
        raise_limit: Callable[[int], None] = login_manager.raise_limit,
        write: Callable[[Path, bytes], bool] = _write_record,
        patience: float = _DISK,
    ) -> None:
        """``write``: the record; it may hang, and is waited for so many seconds."""
        self._table = tuple(table)
        self._workloads, self._end, self._report = workloads, end, report
        self._acting, self._record = acting, record
        self._connect, self._raise_limit = connect, raise_limit
        self._write_record, self._patience = write, patience
        self._disk: worker.Worker[bool] = worker.Worker()
        self._seconds = sum(row.seconds for row in self._table)
        self._repeats = log.Repeats(time.monotonic)
        self._heard = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._lock: int | None = None
        self._times: dict[str, float] = {}
        #: Why a shutdown is delayed less than the configuration says; empty: it is not.
        self._gap = ""

    def start(self) -> None:
        """Begin to listen, in the running event loop."""
        self._keeping = asyncio.create_task(self._keep())

    def follow_mode(self) -> None:
        """Take the lock, or give it back, after the agent began or ceased to act."""
        self._heard.set()

    async def stop(self) -> None:
        """Give the lock back."""
        if self._ending is not None and not self._ending.done():
            log.get().warning(
                "node_shutdown.interrupted", detail="the agent ends: so does the delay"
            )
        for task in (self._ending, self._keeping):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._give_back()
        self._disk.close()

    def conditions(self) -> tuple[decision.Condition, ...]:
        """Return what an operator should know."""
        conditions = []
        if self._ending is not None:
            message = "node is shutting down: workloads end in the order of their priority"
            conditions.append(
                decision.Condition(type="NodeShutdown", reason="NodeShutdown", message=message)
            )
        if self._gap:
            conditions.append(
                decision.Condition(type="ShutdownNotDelayed", reason="Limit", message=self._gap)
            )
        return tuple(conditions)

    def times(self) -> Mapping[str, float]:
        """Return when the newest shutdown began, and when all workloads had ended."""
        return dict(self._times)

    async def _keep(self) -> None:
        while True:
            try:
                await self._listen()
            except (bus.NoSystemdError, OSError) as error:
                self._gap = f"no lock that delays a shutdown: {error}; is systemd-logind running?"
                self._repeats.say(log.get().warning, "node_shutdown.no_lock", "", detail=str(error))
            if self._ending is None or self._ending.done():
                self._give_back()
            await asyncio.sleep(_AGAIN)

    async def _listen(self) -> None:
        """Listen until the connection is lost, which raises."""
        loop = asyncio.get_running_loop()
        with await asyncio.to_thread(self._connect) as login:
            self._gap = ""
            handle = login.fileno()
            loop.add_reader(handle, self._heard.set)
            self._heard.set()
            try:
                while True:
                    await self._heard.wait()
                    self._heard.clear()
                    for begins in login.shutdowns():
                        await (self._begin() if begins else self._give_up())
                    await self._hold(login)
            finally:
                loop.remove_reader(handle)

    async def _hold(self, login: LoginConnection) -> None:
        """Hold the lock while this agent acts, until a shutdown begins."""
        if not self._acting():
            self._give_back()
            self._gap = ""
        elif self._lock is None and self._ending is None:
            taking = asyncio.create_task(asyncio.to_thread(self._delay, login))
            try:
                self._lock = await asyncio.shield(taking)
            except asyncio.CancelledError:
                # A thread goes on: the lock that it takes has to be given back.
                with contextlib.suppress(bus.NoSystemdError, OSError):
                    self._lock = await taking
                raise
            self._heard.set()  # a signal may have come before an answer

    def _delay(self, login: LoginConnection) -> int:
        """Take the lock. May wait, so it runs in a thread of its own."""
        most, problem = login.most_delay_seconds(), ""
        if most < self._seconds:
            try:
                self._raise_limit(self._seconds)
            except (bus.NoSystemdError, OSError) as error:
                problem = f"; it could not be raised: {error}"
            for look in range(0 if problem else _LOOKS):
                most = login.most_delay_seconds()
                if most >= self._seconds:
                    break
                time.sleep(_FIRST_LOOK * 2**look)
        self._gap = ""
        if most < self._seconds:
            self._gap = (
                f"nodeShutdown needs {self._seconds} s, and InhibitDelayMaxSec of systemd-logind"
                f" allows {most:g} s{problem}; set it in logind.conf, or give less time"
            )
        return login.delay_shutdown(_WHO, _WHY)

    async def _begin(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._shut_down())

    async def _give_up(self) -> None:
        ending, self._ending = self._ending, None
        if ending is not None:
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)
            log.get().info("node_shutdown.given_up")

    async def _shut_down(self) -> None:
        log.get().warning("node_shutdown.begins", seconds=self._seconds, acting=self._acting())
        try:
            self._times = {"start": time.time()}
            await self._write()
            ended: frozenset[str] = frozenset()
            for place, row in enumerate(self._table):
                due = node_shutdown.due(self._workloads(), self._table, place, ended)
                ended |= {workload.uid for workload in due}
                await self._end_row(row, due)
            self._times["end"] = time.time()
            await self._write()
            log.get().warning("node_shutdown.over", workloads=len(ended))
        finally:
            self._give_back()

    async def _end_row(self, row: node_shutdown.Row, due: Sequence[pod.Pod]) -> None:
        if not due:
            return
        keys = [workload.key for workload in due]
        log.get().info("node_shutdown.row", priority=row.priority, workloads=keys)
        if not self._acting():
            return
        async with asyncio.TaskGroup() as group:
            for workload in due:
                group.create_task(self._end_workload(workload, row))

    async def _end_workload(self, workload: pod.Pod, row: node_shutdown.Row) -> None:
        victim = node_shutdown.victim(workload, row)
        step = plan.Step(order=0, action=action.evict(victim, victim.message), was=None)
        report = functools.partial(result.Result, target=step.action.target, step=step)
        try:
            async with asyncio.timeout(row.seconds):
                outcome = await self._end(victim)
        except TimeoutError:
            detail = f"still there after {row.seconds} s"
            self._report(report(verdict=result.Verdict.LEFT, detail=detail))
            return
        except asyncio.CancelledError:
            detail = "the shutdown was given up, or the agent stopped, before it had ended"
            self._report(report(verdict=result.Verdict.LEFT, detail=detail))
            raise
        except Exception as error:  # noqa: BLE001 -- it costs this workload, and no other
            self._report(report(verdict=result.Verdict.REFUSED, detail=repr(error)))
            return
        verdict = result.Verdict.DONE if outcome.done else result.Verdict.REFUSED
        self._report(report(verdict=verdict, detail=outcome.detail))

    def _give_back(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            with contextlib.suppress(OSError):
                os.close(lock)

    async def _write(self) -> None:
        """Record the shutdown, for who looks after the next boot."""
        if not self._acting():
            return
        body = json.dumps({f"{name}Time": at for name, at in self._times.items()}) + "\n"
        call = functools.partial(self._write_record, self._record, body.encode())
        key, until = f"record {len(self._times)}", time.monotonic() + self._patience
        self._disk.submit(key, call)
        while True:
            answer = self._disk.wait(key, 0.0)
            if answer is not None or time.monotonic() >= until:
                break
            await asyncio.sleep(_LOOK)
        problem = f"{self._record}: not written within {self._patience:g} s"
        if answer is not None:
            problem = "" if answer.error is None else str(answer.error)
        if problem:
            log.get().warning("node_shutdown.not_recorded", detail=problem)
