"""A login manager in memory, and scenes of a node that shuts down.

Covers: its locks, its signals, a connection that is lost, who ends. Does not cover: the real one
(``tests.vm``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

from koordlet.agent import node_shutdown
from koordlet.apply import evictor
from koordlet.host.systemd import bus
from koordlet.model import eviction, pod, qos, result
from koordlet.policy.eviction import node_shutdown as order

BATCH = pod.Pod(uid="1", namespace="host", name="batch", qos=qos.Qos.BE, source="test")
WEB = pod.Pod(uid="2", namespace="host", name="web", qos=qos.Qos.LS, source="test")
ROWS = (order.Row(0, 60), order.Row(9000, 60))


class Login:
    """A login manager in memory: whoever holds no lock is not waited for."""

    def __init__(self, most: float = 120.0) -> None:
        self.most = most
        self.asked = 0
        self._signals: list[bool] = []
        self._ears: list[int] = []
        #: The other end of the newest lock.
        self._held = -1
        self.lost = False
        #: What is so already when somebody connects.
        self.preparing = False

    def connect(self) -> Self:
        """Come in."""
        return self

    def __enter__(self) -> Self:
        """Stay."""
        self._ears = list(os.pipe())
        os.set_blocking(self._ears[0], False)
        self._signals = [self.preparing]
        return self

    def __exit__(self, *_: object) -> None:
        """Leave."""
        for handle in self._ears:
            os.close(handle)
        self._ears = []

    def fileno(self) -> int:
        """One end of a pipe."""
        return self._ears[0]

    def most_delay_seconds(self) -> float:
        """As it is set."""
        return self.most

    def delay_shutdown(self, *_: str) -> int:
        """One end of a pipe."""
        self.asked += 1
        self._held, lock = os.pipe()
        os.set_blocking(self._held, False)
        return lock

    def say(self, *signals: str) -> None:
        """Say it to who listens."""
        self._signals += [signal == "begins" for signal in signals]
        os.write(self._ears[1], b"x")

    def shutdowns(self) -> list[bool]:
        """Give what was said."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._ears[0], 4096)
        if self.lost:
            raise bus.NoSystemdError("the connection was closed")
        signals, self._signals = self._signals, []
        return signals

    @property
    def locked(self) -> bool:
        """Whether somebody holds the newest lock."""
        try:
            return os.read(self._held, 1) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False


class Ends:
    """Ends workloads when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may = asyncio.Event()

    async def __call__(self, victim: eviction.Eviction) -> evictor.Outcome:
        """One workload."""
        self.asked.append(victim.pod)
        await self.may.wait()
        return evictor.Outcome(done=True, detail="terminated", gone=True)


class Stage(NamedTuple):
    """Who plays."""

    shutdown: node_shutdown.NodeShutdown
    login: Login
    ends: Ends


def played(
    tmp_path: Path,
    scene: Callable[[Stage], Awaitable[None]],
    *,
    rows: tuple[order.Row, ...] = ROWS,
    login: Login | None = None,
    acting: Callable[[], bool] = lambda: True,
    end: evictor.Way | None = None,
    raise_limit: Callable[[int], None] = lambda _: None,
    **disk: Any,
) -> list[result.Result]:
    """Play a scene; what was reported of workloads."""
    reported: list[result.Result] = []
    asked = Login() if login is None else login

    async def play() -> None:
        ends = Ends()
        shutdown = node_shutdown.NodeShutdown(
            rows,
            workloads=lambda: (WEB, BATCH),
            end=ends if end is None else end,
            report=reported.append,
            acting=acting,
            record=tmp_path / "node-shutdown.json",
            connect=asked.connect,
            raise_limit=raise_limit,
            **disk,
        )
        shutdown.start()
        await scene(Stage(shutdown, asked, ends))
        await shutdown.stop()

    asyncio.run(play())
    assert not asked.locked, "an agent that is gone delays nothing"
    return reported
