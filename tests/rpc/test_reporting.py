"""An agent tells a scheduler: the two sides of NodeIngest, beside each other."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from koordlet.http import limits
from koordlet.model import decision, nodereport
from koordlet.report import view
from koordlet.rpc import encode_usage, ingest, reporting, server, services
from koordlet.rpc.gen import ingest_pb2
from tests.kit import deadline, logs, loops, moments, views

PACE = reporting.ReportPace(
    apart_seconds=0.05, heartbeat_seconds=0.1, first_seconds=0.01, answer_seconds=2.0
)


class Scheduler:
    """A server that listens on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reports: list[nodereport.NodeReport] = []
        self.heard: list[str] = []
        self.ingest = ingest.Ingest(self.reports.append, self.heard.append)
        self.server = server.RpcServer(path, (self.ingest,))

    async def start(self) -> None:
        """Listen."""
        await self.server.start()


Body = Callable[[Scheduler, reporting.Reporting], Awaitable[None]]


def play(loop: loops.LoopThread, path: Path, body: Body, pace: reporting.ReportPace = PACE) -> None:
    """Run a test with a scheduler that does not listen yet, and an agent that dials it."""

    async def run() -> None:
        it = Scheduler(path / "run" / "s.sock")
        agent = reporting.Reporting(f"unix:{it.path}", "1", pace=pace)
        agent.start()
        try:
            await asyncio.wait_for(body(it, agent), 20)
        finally:
            await agent.stop()
            await it.server.stop()

    loop.run(run())


def pressed(*, met: bool, **changes: Any) -> view.ReportView:
    """A view with one signal."""
    signal = decision.Signal(name="memory.available", observed="1", threshold="2", met=met)
    return views.view(made=views.made_plan(signals=(signal,)), **changes)


def test_only_cpus_of_the_cgroup_tree_are_free() -> None:
    """A partition of another program has CPU 5; CPUs 0 and 1 are reserved, CPU 7 is offline."""
    base = views.view()
    root = moments.group("", "0-4,6", unified=True)
    now = dataclasses.replace(base, snapshot=dataclasses.replace(base.snapshot, groups={"": root}))

    assert [part.cpus for part in encode_usage.free(now).domains] == ["2-3", "4,6"]


def test_a_scheduler_that_comes_later_is_told(loop: loops.LoopThread, ram: Path) -> None:
    """It is dialled until it is there; then everything, then nothing but signs of life."""

    async def body(it: Scheduler, agent: reporting.Reporting) -> None:
        agent.publish(pressed(met=False))
        await deadline.comes(lambda: agent.counts["failures"] > 0)
        assert agent.problem
        await it.start()
        await deadline.comes(lambda: len(it.heard) > 1)
        assert agent.problem == ""
        (report,) = it.reports
        assert ("n1", True, frozenset()) == (report.node, report.ready, report.pressures)
        assert str(report.free[0].cpus | report.free[1].cpus) == "2-6"
        assert [claim.owner.value for claim in report.claims] == ["reserved"]

    play(loop, ram, body)


def test_pressure_is_told_at_once(loop: loops.LoopThread, ram: Path) -> None:
    """Whatever the pace is; a number that moved a little is not told at all."""

    async def body(it: Scheduler, agent: reporting.Reporting) -> None:
        await it.start()
        agent.publish(pressed(met=False))
        await deadline.comes(lambda: len(it.reports) == 1)
        agent.publish(pressed(met=False, usage={"default/web": 7.0}))
        agent.publish(pressed(met=True))
        await deadline.comes(lambda: len(it.reports) == 2)
        assert it.reports[1].pressures == {"memory.available"}

    slow = dataclasses.replace(PACE, apart_seconds=3600.0, heartbeat_seconds=3600.0)
    play(loop, ram, body, slow)


class Wire:
    """A stream of a scheduler that knows nothing; something happens during a write."""

    def __init__(self, during: Callable[[int], None]) -> None:
        self.during = during
        self.writes: list[bytes] = []
        self.asked = 0

    async def write(self, data: bytes) -> None:
        """The first is the hello."""
        self.writes.append(data)
        self.during(len(self.writes))
        await asyncio.sleep(0)

    async def code(self) -> grpc.StatusCode:
        """How it ended."""
        return grpc.StatusCode.UNAVAILABLE

    async def details(self) -> str:
        """The same in words."""
        return "Cancelling all calls"

    async def read(self) -> ingest_pb2.ReportReply:
        """One reply; the stream stays open then."""
        self.asked += 1
        if self.asked > 1:
            await asyncio.Event().wait()
        return ingest_pb2.ReportReply(known=ingest_pb2.Known())


class Wired(reporting.Reporting):
    """An agent that is connected already."""

    wire: Wire

    def _channel(self) -> Any:
        return self

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def stream_stream(self, _method: str, **_: object) -> Callable[..., Wire]:
        """Whatever is asked."""
        return lambda **_: self.wire


def test_pressure_that_comes_during_a_write_is_told_at_once(loop: loops.LoopThread) -> None:
    """What was told is what the event holds, not what is known when it has been sent."""
    slow = dataclasses.replace(PACE, apart_seconds=3600.0, heartbeat_seconds=3600.0)

    async def run() -> None:
        agent = Wired("unix:/nowhere", "1", pace=slow)

        def during(write: int) -> None:
            if write == 2:
                agent.publish(pressed(met=True))

        agent.wire = Wire(during)
        agent.publish(pressed(met=False))
        agent.start()
        try:
            async with asyncio.timeout(5):
                await deadline.comes(lambda: len(agent.wire.writes) == 3)
        finally:
            await agent.stop()
        assert agent.counts["events"] == 2
        assert b"memory.available" in agent.wire.writes[2]

    loop.run(run())


def test_a_scheduler_that_does_not_answer_is_dialled_again(loop: loops.LoopThread) -> None:
    """It took the connection and the hello; the agent says so, and does not wait for ever."""

    async def run() -> None:
        agent = Wired("unix:/nowhere", "1", pace=dataclasses.replace(PACE, answer_seconds=0.01))
        agent.wire = Wire(lambda _write: None)
        agent.wire.asked = 1
        agent.publish(pressed(met=False))
        agent.start()
        try:
            await deadline.comes(lambda: len(agent.wire.writes) > 1)
        finally:
            await agent.stop()
        assert agent.problem == "unix:/nowhere: no answer within 0.01 s"
        assert agent.counts["connects"] == 0

    loop.run(run())


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        # What gRPC says of a stream that ended before.
        (
            asyncio.InvalidStateError("RPC already finished."),
            "unix:/nowhere: UNAVAILABLE: Cancelling all calls",
        ),
        (ZeroDivisionError("whatever nobody thought of"), "whatever nobody thought of"),
    ],
)
def test_after_a_write_that_fails_a_scheduler_is_dialled_again(
    loop: loops.LoopThread, error: Exception, detail: str
) -> None:
    """Whatever the error is: an agent that told nothing any more would be silent for ever."""

    async def run() -> None:
        agent = Wired("unix:/nowhere", "1", pace=PACE)

        def during(write: int) -> None:
            if write == 2:
                agent.wire.asked = 0
                raise error

        agent.wire = Wire(during)
        agent.publish(pressed(met=False))
        agent.start()
        try:
            await deadline.comes(lambda: agent.counts["events"] == 1, seconds=20)
        finally:
            await agent.stop()
        assert (agent.counts["connects"], agent.counts["failures"]) == (2, 1)

    with logs.written() as stream:
        loop.run(run())
    assert detail in stream.getvalue()


def test_a_change_waits_for_its_turn(loop: loops.LoopThread, ram: Path) -> None:
    """Many changes in a short time are few events, and the last of them is told."""

    async def body(it: Scheduler, agent: reporting.Reporting) -> None:
        await it.start()
        for number in range(40):
            agent.publish(views.view(shape=views.machine(8 + 2 * number)))
            await asyncio.sleep(0.002)
        await deadline.comes(lambda: "84" in str(it.reports and it.reports[-1].free))
        assert len(it.reports) < 20

    play(loop, ram, body)


def test_a_scheduler_that_restarts_knows_nothing(loop: loops.LoopThread, ram: Path) -> None:
    """Then everything is told again, and what it still has is not."""

    async def body(it: Scheduler, agent: reporting.Reporting) -> None:
        await it.start()
        agent.publish(pressed(met=False))
        await deadline.comes(lambda: len(it.reports) == 1)
        await it.server.stop()
        again = Scheduler(it.path)
        again.server = server.RpcServer(it.path, (it.ingest,))
        await again.start()
        await deadline.comes(lambda: agent.counts["connects"] >= 2 and len(it.heard) > 1)
        assert len(it.reports) == 1, "it went on from what was known"
        await again.server.stop()
        fresh = Scheduler(it.path)
        await fresh.start()
        await deadline.comes(lambda: len(fresh.reports) == 1)
        await fresh.server.stop()

    play(loop, ram, body)


def _connected(agent: reporting.Reporting, times: int) -> bool:
    return agent.counts["connects"] == times


def test_who_was_heard_comes_back_at_once(loop: loops.LoopThread, ram: Path) -> None:
    """A server closes old connections; that is no failure that makes the next attempt wait longer.

    Servers of this size end each connection within 30 minutes: a pause that grew with each of them
    would come to half a minute of silence.
    """

    async def body(it: Scheduler, agent: reporting.Reporting) -> None:
        agent.publish(pressed(met=False))
        for number in range(1, 6):
            again = Scheduler(it.path)
            hasty = limits.CallLimits(stop_seconds=0.01)
            again.server = server.RpcServer(it.path, (again.ingest,), limits=hasty)
            await again.start()
            await deadline.comes(functools.partial(_connected, agent, number))
            await again.server.stop()

    patient = dataclasses.replace(PACE, first_seconds=0.01, most_seconds=3600.0)
    play(loop, ram, body, patient)


def test_a_token_is_sent_and_read_anew(loop: loops.LoopThread, ram: Path) -> None:
    """At each connection as it is on disk; what cannot be one is said, and tried again."""
    seen: list[dict[str, Any]] = []
    token = ram / "token"
    token.write_text("\x1b[31m")

    async def speaks(context: services.Context, _node: str) -> str:
        seen.append(dict(context.invocation_metadata() or ()))
        return ""

    async def run() -> None:
        taking = ingest.Ingest(lambda _: None, speaks=speaks)
        it = server.RpcServer(ram / "run" / "s.sock", (taking,))
        await it.start()
        agent = reporting.Reporting(f"unix:{ram}/run/s.sock", "1", token=token, pace=PACE)
        agent.publish(pressed(met=False))
        agent.start()
        try:
            async with asyncio.timeout(20):
                await deadline.comes(lambda: "the file contains no token" in agent.problem)
                token.write_text("one\n")
                await deadline.comes(lambda: len(seen) == 1)
        finally:
            await agent.stop()
            await it.stop()

    loop.run(run())
    assert seen[0]["authorization"] == "Bearer one"
