"""NodeIngest with the heartbeats of 5 000 idle agents against 10 % of a core.

Covers: CPU of the scheduler's process for 500 heartbeats a second (5 000 agents, one each ten
seconds), over 250 connections that stand for them; the agents are another process.
Does not cover: what 5 000 connections cost in memory and keepalive.

    python -m tests.bench.ingested SOCKET STREAMS RATE      the agents
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import grpc.aio

from koordlet.model import nodereport
from koordlet.rpc import ingest, server
from koordlet.rpc.gen import feed_pb2, ingest_pb2
from tests.bench import gate, pace

#: The budget is the goal; half of the cost is gRPC's own, whose pace is not the interpreter's.
LIMIT = 1.25
STREAMS = 250
RATE = 500
#: Many short windows: on a machine with neighbours the least of them is what it costs.
_SECONDS = 0.5
_REPEATS = 20


def five_thousand_idle_agents() -> gate.Ratio:
    """CPU for a second's heartbeats, in units of 10 % of a second."""
    ours, reference = asyncio.run(_measure())
    return gate.Ratio(
        name="ingest.five_thousand_idle_agents",
        ours=ours,
        reference=reference,
        limit=LIMIT,
        goal=1.0,
        unit="s/s",
        against="10 % of a core",
    )


async def _measure() -> tuple[float, float]:
    reports: list[nodereport.NodeReport] = []
    taking = ingest.Ingest(reports.append)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run" / "s.sock"
        serving = server.RpcServer(path, (taking,))
        await serving.start()
        agents = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.bench.ingested", str(path), str(STREAMS), str(RATE))
        )
        try:
            while len(reports) < STREAMS:  # noqa: ASYNC110 - the other side is a process
                await asyncio.sleep(0.05)
            return pace.budget(0.1, [(await _round(taking), pace.work()) for _ in range(_REPEATS)])
        finally:
            agents.kill()
            await agents.wait()
            await serving.stop()


async def _round(taking: ingest.Ingest) -> float:
    """CPU seconds for each second's worth of heartbeats."""
    before, cpu = taking.counts["heartbeats"], time.process_time()
    await asyncio.sleep(_SECONDS)
    took, came = time.process_time() - cpu, taking.counts["heartbeats"] - before
    return took / max(came, 1) * RATE


async def _agents(path: str, streams: int, rate: int) -> None:
    full = feed_pb2.WatchEvent(epoch="e", revision=1, full=feed_pb2.Node())
    beat = feed_pb2.WatchEvent(epoch="e", revision=1, heartbeat=feed_pb2.Heartbeat())
    beat.observed_at.GetCurrentTime()  # an agent says of what moment it speaks
    messages = [ingest_pb2.ReportRequest(event=event).SerializeToString() for event in (full, beat)]
    calls: list[grpc.aio.StreamStreamCall[bytes, bytes]] = []
    for number in range(streams):
        channel = grpc.aio.insecure_channel(
            f"unix:{path}", options=[("grpc.use_local_subchannel_pool", 1)]
        )
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(
            f"/{ingest.SERVICE}/Report"
        )()
        hello = ingest_pb2.Hello(node=f"n{number}")
        await call.write(ingest_pb2.ReportRequest(hello=hello).SerializeToString())
        await call.read()
        await call.write(messages[0])
        calls.append(call)
    while True:
        for call in calls:
            await call.write(messages[1])
            await asyncio.sleep(1 / rate)


if __name__ == "__main__":
    asyncio.run(_agents(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
