"""The feed to 100 watchers at 1 Hz against 1 % of a core.

Covers: CPU of the serving process for each second's events, 250 workloads whose use changes, with
the watchers in another process. Does not cover: what the clients cost.

    python -m tests.bench.fanout SOCKET WATCHERS      the watchers
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import tempfile
import time
from pathlib import Path

from koordlet.report import view
from koordlet.rpc import node_feed
from tests.bench import gate, pace
from tests.kit import views

WATCHERS = 100
#: The budget is the goal; half of the cost is gRPC's own, whose pace is not the interpreter's.
LIMIT = 1.25
#: Rounds of one measurement; they come faster than once a second, each costs what it costs. Many
#: short measurements: on a machine with neighbours the least of them is what it costs.
_ROUNDS = 5
_PAUSE = 0.2
_REPEATS = 20


def hundred_watchers() -> gate.Ratio:
    """CPU for one event to each of 100 watchers, in units of 1 % of a second."""
    ours, reference = asyncio.run(_measure())
    return gate.Ratio(
        name="feed.hundred_watchers",
        ours=ours,
        reference=reference,
        limit=LIMIT,
        goal=1.0,
        unit="s/s",
        against="1 % of a core",
    )


async def _measure() -> tuple[float, float]:
    workloads = views.pods(250)
    base = views.view(workloads)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run" / "koordlet.sock"
        serving = node_feed.AgentServer(path, "1")
        await serving.start()
        serving.publish(base)
        watching = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.fanout", str(path), str(WATCHERS)
        )
        try:
            await _until(serving, WATCHERS)
            return pace.budget(
                0.01, [(await _rounds(serving, base, n), pace.work()) for n in range(_REPEATS)]
            )
        finally:
            watching.kill()
            await watching.wait()
            await serving.stop()


async def _rounds(serving: node_feed.AgentServer, base: view.ReportView, repeat: int) -> float:
    """CPU seconds of one round."""
    keys = [workload.key for workload in base.snapshot.pods]
    before, events = time.process_time(), serving.counts["events"]
    for n in range(_ROUNDS):
        cores = 0.5 + (repeat * _ROUNDS + n) / 1000
        serving.publish(dataclasses.replace(base, usage=dict.fromkeys(keys, cores)))
        await asyncio.sleep(_PAUSE)
    spent = time.process_time() - before
    await _until(serving, events + _ROUNDS * WATCHERS)
    return spent / _ROUNDS


async def _until(serving: node_feed.AgentServer, events: int) -> None:
    """Wait for the events to be out."""
    async with asyncio.timeout(60):
        while serving.counts["events"] + serving.counts["dropped"] < events:  # noqa: ASYNC110 -- counts only
            await asyncio.sleep(0.05)


async def _watch(path: str, number: int) -> None:
    """The watchers: each a connection of its own, bytes thrown away."""
    import grpc.aio

    async def one(n: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("bench.watcher", n)]
        async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
            call = channel.unary_stream("/koordlet.v1.NodeFeed/WatchNode", bytes, bytes)
            async for _ in call(b""):
                pass

    await asyncio.gather(*(one(n) for n in range(number)))


if __name__ == "__main__":
    asyncio.run(_watch(sys.argv[1], int(sys.argv[2])))
