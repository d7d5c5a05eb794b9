"""NodeIngest: streams of agents, and what a scheduler makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from koordlet.model import cpuset, nodereport, resources
from koordlet.rpc import ingest, server
from koordlet.rpc.gen import feed_pb2, ingest_pb2
from tests.kit import deadline, loops

Stream = Any
METHOD = f"/{ingest.SERVICE}/Report"


class Scheduler:
    """A server with NodeIngest alone."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.reports: list[nodereport.NodeReport] = []
        self.heard: list[str] = []
        self.ingest = ingest.Ingest(self.reports.append, self.heard.append, **options)
        self.server = server.RpcServer(path, (self.ingest,))
        self.path = path


async def known(stream: Stream) -> tuple[str, int]:
    """What the scheduler says that it has."""
    reply = await stream.read()
    assert reply is not grpc.aio.EOF
    return reply.known.epoch, reply.known.revision


def hello(node: str) -> ingest_pb2.ReportRequest:
    """The first message."""
    return ingest_pb2.ReportRequest(hello=ingest_pb2.Hello(node=node))


def event(revision: int, epoch: str = "e", **what: Any) -> ingest_pb2.ReportRequest:
    """A later one."""
    return ingest_pb2.ReportRequest(
        event=feed_pb2.WatchEvent(epoch=epoch, revision=revision, **what)
    )


FULL = feed_pb2.Node(
    summary=feed_pb2.Summary(ready=True),
    usage=feed_pb2.Usage(node=feed_pb2.Amount(cpu_milli=1500)),
    free=feed_pb2.Free(domains=[feed_pb2.FreeCpus(node=0, cpus="0-3")]),
    best_effort=feed_pb2.BestEffort(
        offers=[feed_pb2.Offer(resource=resources.BATCH_CPU, amount=7)]
    ),
)
PRESSED = feed_pb2.Delta(
    pressure=feed_pb2.Pressure(signals=[feed_pb2.Signal(name="memory.available", met=True)])
)

Body = Callable[[Scheduler, Callable[[], Stream]], Awaitable[None]]


def play(loop: loops.LoopThread, path: Path, body: Body, **options: Any) -> None:
    """Run a test beside a scheduler, in one loop."""

    async def run() -> None:
        it = Scheduler(path / "run" / "s.sock", **options)
        await it.server.start()
        async with grpc.aio.insecure_channel(f"unix:{it.path}") as channel:
            report = channel.stream_stream(
                METHOD,
                request_serializer=ingest_pb2.ReportRequest.SerializeToString,
                response_deserializer=ingest_pb2.ReportReply.FromString,
            )
            try:
                await asyncio.wait_for(body(it, report), 20)
            finally:
                await it.server.stop()

    loop.run(run())


def test_a_node_is_told_and_changes(loop: loops.LoopThread, ram: Path) -> None:
    """Everything first, then a section; what is not told stays, what is unknown is absent."""

    async def body(it: Scheduler, report: Callable[[], Stream]) -> None:
        stream = report()
        await stream.write(hello("n1"))
        assert await known(stream) == ("", 0)
        await stream.write(event(4, full=FULL))
        await stream.write(event(5, delta=PRESSED))
        await stream.write(event(5, heartbeat=feed_pb2.Heartbeat()))
        await deadline.comes(lambda: it.heard == ["n1"])
        first, second = it.reports

        assert (first.node, first.epoch, first.revision, first.ready) == ("n1", "e", 4, True)
        assert first.used == {resources.CPU: 1500}
        assert first.offered == {resources.BATCH_CPU: 7}
        assert cpuset.CPUSet.parse("0-3") == first.free[0].cpus
        assert (first.free[0].node, first.free[0].l3) == (0, None)
        assert frozenset() == first.pressures
        assert second.pressures == {"memory.available"}
        assert first.used == second.used

    play(loop, ram, body)


def test_a_stream_goes_on_where_it_was(loop: loops.LoopThread, ram: Path) -> None:
    """The scheduler says what it has; a delta from there is enough."""

    async def body(it: Scheduler, report: Callable[[], Stream]) -> None:
        stream = report()
        await stream.write(hello("n1"))
        await known(stream)
        await stream.write(event(4, full=FULL))
        await deadline.comes(lambda: len(it.reports) == 1)
        again = report()
        await again.write(hello("n1"))
        assert await known(again) == ("e", 4)
        await again.write(event(6, delta=PRESSED))
        await deadline.comes(lambda: len(it.reports) == 2)
        assert it.reports[0].used == it.reports[1].used
        # The older stream speaks for nobody any more, and ends.
        await stream.write(event(7, full=FULL))
        assert await stream.read() is grpc.aio.EOF
        assert len(it.reports) == 2

    play(loop, ram, body)


@pytest.mark.parametrize(
    "odd",
    [
        event(9, epoch="another", delta=PRESSED),
        event(3, delta=PRESSED),
        event(8, heartbeat=feed_pb2.Heartbeat()),
        event(8),
        hello("n1"),
    ],
    ids=["another epoch", "backwards", "missed one", "empty", "hello again"],
)
def test_what_does_not_follow_is_not_taken_in(
    loop: loops.LoopThread, ram: Path, odd: ingest_pb2.ReportRequest
) -> None:
    """The answer says what is known, and the agent begins from there."""

    async def body(it: Scheduler, report: Callable[[], Stream]) -> None:
        stream = report()
        await stream.write(hello("n1"))
        await known(stream)
        await stream.write(event(4, full=FULL))
        await stream.write(odd)
        assert await known(stream) == ("e", 4)
        assert 1 == len(it.reports) == it.ingest.counts["resyncs"]

    play(loop, ram, body)


def test_bounds(loop: loops.LoopThread, ram: Path) -> None:
    """Nodes beyond the bound, no hello, no name, garbage: that call alone ends."""

    async def body(it: Scheduler, report: Callable[[], Stream]) -> None:
        stream = report()
        await stream.write(hello("n1"))
        await known(stream)
        for bad, why in (
            (hello("n2"), grpc.StatusCode.RESOURCE_EXHAUSTED),
            (hello(""), grpc.StatusCode.INVALID_ARGUMENT),
            (event(1, full=FULL), grpc.StatusCode.INVALID_ARGUMENT),
        ):
            report_stream = report()
            await report_stream.write(bad)
            assert why is await report_stream.code()
        await stream.write(event(4, full=FULL))
        await deadline.comes(lambda: len(it.reports) == 1)
        assert it.ingest.counts["refused"] == 3

    play(loop, ram, body, most_nodes=1)


def test_silence_ends_a_stream(loop: loops.LoopThread, ram: Path) -> None:
    """Who says nothing holds no place; what is known of the node stays."""

    async def body(it: Scheduler, report: Callable[[], Stream]) -> None:
        stream = report()
        await stream.write(hello("n1"))
        await known(stream)
        assert await stream.read() is grpc.aio.EOF
        assert it.ingest.streams == 0

    play(loop, ram, body, silence_seconds=0.5)


@pytest.mark.parametrize("size", [65536, 2**32 - 1])
def test_a_report_that_cannot_be(loop: loops.LoopThread, ram: Path, size: int) -> None:
    """A CPU of no machine ends the stream with a reason; the node begins anew, others go on."""

    async def body(it: Scheduler, report: Callable[[], Stream]) -> None:
        stream, other = report(), report()
        for each, node in ((stream, "n1"), (other, "n2")):
            await each.write(hello(node))
            await known(each)
        bad = feed_pb2.Node(topology=feed_pb2.Topology(cpus=[feed_pb2.Cpu(cpu=size, online=True)]))
        await stream.write(event(4, full=bad))

        assert grpc.StatusCode.INVALID_ARGUMENT is await stream.code()
        assert f"CPU number out of range 0-65535: '{size}'" in await stream.details()
        assert it.ingest.counts["refused"] == 1
        again = report()
        await again.write(hello("n1"))
        assert await known(again) == ("", 0)
        for each in (again, other):
            await each.write(event(4, full=FULL))
        await deadline.comes(lambda: len(it.reports) == 2)

    play(loop, ram, body)


def test_a_failure_of_ours_is_said(loop: loops.LoopThread, ram: Path) -> None:
    """An exception nobody thought of ends its stream as ours, by its name and not by its words."""

    def fail(_report: nodereport.NodeReport) -> None:
        msg = "secret"
        raise RuntimeError(msg)

    async def body(it: Scheduler, report: Callable[[], Stream]) -> None:
        it.ingest._sink = fail
        stream = report()
        await stream.write(hello("n1"))
        await known(stream)
        await stream.write(event(4, full=FULL))

        assert grpc.StatusCode.INTERNAL is await stream.code()
        assert await stream.details() == "RuntimeError"

    play(loop, ram, body)


def test_foreign_sets_of_cpus_cost_themselves() -> None:
    """A text that is no set is none; an owner of a later version is left out."""
    state = feed_pb2.Node(
        allocation=feed_pb2.Allocation(
            claims=[
                feed_pb2.Claim(owner="LSE", cpus="what?"),
                feed_pb2.Claim(owner="LATER", cpus="1"),
            ]
        )
    )

    (claim,) = ingest.decoded("n", state).claims
    assert cpuset.CPUSet() == claim.cpus
