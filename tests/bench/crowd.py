"""How late the agent's loop gets while many clients come, and while one of them means no good.

Covers: 1 000 watchers that connect at once; each rogue of ``tests.kit.rogues``; lateness of a timer
in the loop that serves, less that of a timer in an idle process in the same window.
Does not cover: what serving costs (``fanout``).

A tick is late when it starts half of its second after its time (``node_feed.loop``): that is the
reference. Lateness is measured in the loop alone, without the agent's own work.

    python -m tests.bench.crowd watch SOCKET WATCHERS      the watchers
    python -m tests.bench.crowd idle                       the idle timer; prints its worst lateness
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from koordlet.report import view
from koordlet.rpc import node_feed
from tests.bench import gate
from tests.kit import rogues, views

WATCHERS = 1000
_LATE = 0.5
_STEP = 0.02
#: How long a rogue is endured.
_SECONDS = 2.0


def thousand_watchers() -> gate.Ratio:
    """The worst lateness while 1 000 watchers connect and get a whole node each."""
    return _ratio("feed.thousand_watchers_connect", asyncio.run(_measure(_crowd)))


def flooded() -> gate.Ratio:
    """The worst lateness under the worst rogue."""
    worst = max(asyncio.run(_measure(_rogue(kind))) for kind in rogues.KINDS)
    return _ratio("feed.flooded", worst)


def _ratio(name: str, worst: float) -> gate.Ratio:
    return gate.Ratio(
        name=name, ours=worst, reference=_LATE, limit=1.0, unit="s", against="half of a tick"
    )


_Crowd = Callable[[node_feed.AgentServer, Path], Awaitable[None]]


async def _measure(crowd: _Crowd) -> float:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run" / "koordlet.sock"
        serving = node_feed.AgentServer(path, "1")
        await serving.start()
        serving.publish(views.view(views.pods(250)))
        try:
            async with _timed() as lateness:
                await crowd(serving, path)
            return max(0.0, lateness[0] - lateness[1])
        finally:
            await serving.stop()


@asynccontextmanager
async def _timed() -> AsyncGenerator[list[float]]:
    """The worst lateness in this loop and in an idle process, known at the end."""
    words = (sys.executable, "-m", "tests.bench.crowd", "idle")
    idle = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert idle.stdin is not None
    assert idle.stdout is not None
    await idle.stdout.readline()
    lateness = [0.0, 0.0]
    own = asyncio.create_task(_timer(lateness))
    try:
        yield lateness
    finally:
        own.cancel()
        idle.stdin.close()
        lateness[1] = float(await idle.stdout.readline())
        await idle.wait()


async def _timer(worst: list[float]) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        due += _STEP
        await asyncio.sleep(due - loop.time())
        late = loop.time() - due
        worst[0] = max(worst[0], late)
        if late > _STEP:
            due = loop.time()


async def _crowd(serving: node_feed.AgentServer, path: Path) -> None:
    words = (sys.executable, "-m", "tests.bench.crowd", "watch", str(path), str(WATCHERS))
    watching = await asyncio.create_subprocess_exec(*words)
    try:
        async with asyncio.timeout(120):
            while serving.counts["events"] < WATCHERS:  # noqa: ASYNC110 -- counts only
                await asyncio.sleep(0.02)
        assert serving.feed.watchers == WATCHERS
    finally:
        watching.kill()
        await watching.wait()


def _rogue(kind: str) -> _Crowd:
    async def crowd(serving: node_feed.AgentServer, path: Path) -> None:
        words = (sys.executable, "-m", "tests.kit.rogues", str(path), kind)
        rogue = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        assert rogue.stdout is not None
        try:
            await rogue.stdout.readline()
            base: view.ReportView = views.view(views.pods(250))
            serving.publish(base)
            await asyncio.sleep(_SECONDS)
        finally:
            rogue.kill()
            await rogue.wait()

    return crowd


async def _watch(path: str, number: int) -> None:
    import grpc.aio

    async def watch(n: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("bench.watcher", n)]
        async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
            async for _ in channel.unary_stream("/koordlet.v1.NodeFeed/WatchNode", bytes, bytes)(
                b""
            ):
                pass

    await asyncio.gather(*(watch(n) for n in range(number)))


async def _idle() -> None:
    worst = [0.0]
    timer = asyncio.create_task(_timer(worst))
    print("on", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    timer.cancel()
    print(worst[0], flush=True)


if __name__ == "__main__":
    asyncio.run(_idle() if sys.argv[1] == "idle" else _watch(sys.argv[2], int(sys.argv[3])))
