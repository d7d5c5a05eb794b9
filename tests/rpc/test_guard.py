"""Every call passes the guard: rights, nodes, failures, and calls that a stop waits for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from koordlet.http import limits
from koordlet.kubeapi import refusals
from koordlet.model import errors
from koordlet.rpc import node_feed, server, services
from tests.kit import loops

WATCH = f"/{node_feed.SERVICE}/WatchNode"
GET = f"/{node_feed.SERVICE}/GetNode"


class Feed:
    """The feed's service with handlers of a test."""

    name = node_feed.SERVICE
    counts: Mapping[str, int] = {}

    def __init__(self, **handlers: services.Handler) -> None:
        self._handlers = handlers

    def methods(self) -> Mapping[str, services.Handler]:
        """As given."""
        return self._handlers


def called(
    loop: loops.LoopThread,
    ram: Path,
    offered: services.RpcService,
    ask: Callable[[Any], Awaitable[Any]],
    **bounds: Any,
) -> Any:
    """What comes of a call to a server with this service."""

    async def both() -> Any:
        path = ram / "s.sock"
        it = server.RpcServer(path, (offered,), limits=limits.CallLimits(**bounds))
        await it.start()
        try:
            async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
                return await asyncio.wait_for(ask(channel), 20)
        finally:
            await it.stop()

    return loop.run(both())


async def got(channel: Any) -> tuple[grpc.StatusCode, str]:
    """How ``GetNode`` ends."""
    try:
        answer = await channel.unary_unary(GET)(b"")
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, answer.decode()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (refusals.NotFound("no such pod", culprit="d/web"), grpc.StatusCode.NOT_FOUND, "d/web"),
        (
            errors.HostError("full", culprit="/x", fix="-"),
            grpc.StatusCode.FAILED_PRECONDITION,
            "/x",
        ),
        (ZeroDivisionError("a secret"), grpc.StatusCode.INTERNAL, "ZeroDivisionError"),
    ],
)
def test_a_handler_that_fails(
    loop: loops.LoopThread, ram: Path, error: Exception, code: grpc.StatusCode, words: str
) -> None:
    """Ends its call with a status: our errors in their words, a bug by its name alone."""

    async def fails(_request: bytes, _context: services.Context) -> bytes:
        raise error

    ended = called(loop, ram, Feed(GetNode=grpc.unary_unary_rpc_method_handler(fails)), got)

    assert code is ended[0]
    assert words in ended[1]
    assert "secret" not in ended[1]


def test_an_abort_of_the_handler_stays_what_it_is(loop: loops.LoopThread, ram: Path) -> None:
    """It is no failure of ours: code and words are the handler's."""

    async def aborts(_request: bytes, context: services.Context) -> bytes:
        await context.abort(grpc.StatusCode.OUT_OF_RANGE, "beyond")

    offered = Feed(GetNode=grpc.unary_unary_rpc_method_handler(aborts))

    assert called(loop, ram, offered, got) == (grpc.StatusCode.OUT_OF_RANGE, "beyond")


def test_a_generator_is_a_handler_as_well(loop: loops.LoopThread, ram: Path) -> None:
    """What it yields is written in order; where it fails the caller has what came before."""

    async def some(_request: bytes, _context: services.Context) -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"
        raise refusals.Unavailable("gone", culprit="it")

    async def ask(channel: Any) -> tuple[list[bytes], grpc.StatusCode]:
        events = []
        call = channel.unary_stream(WATCH)(b"")
        try:
            async for each in call:
                events.append(each)  # noqa: PERF401 -- what came before the failure counts
        except grpc.aio.AioRpcError:
            return events, await call.code()
        return events, grpc.StatusCode.OK

    offered = Feed(WatchNode=grpc.unary_stream_rpc_method_handler(some))
    assert called(loop, ram, offered, ask) == ([b"one", b"two"], grpc.StatusCode.UNAVAILABLE)


def test_too_many_calls_do_not_reach_the_handler(loop: loops.LoopThread, ram: Path) -> None:
    """Beyond the burst a call is refused, and counted; the handler is not asked."""
    asked = []

    async def answers(_request: bytes, _context: services.Context) -> bytes:
        asked.append(1)
        return b"here"

    async def ask(channel: Any) -> list[grpc.StatusCode]:
        return [(await got(channel))[0] for _ in range(5)]

    offered = Feed(GetNode=grpc.unary_unary_rpc_method_handler(answers))
    statuses = called(loop, ram, offered, ask, calls_per_second=1e-6, calls_burst=3.0)

    assert statuses == [grpc.StatusCode.OK] * 3 + [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
    assert len(asked) == 3


def test_what_has_no_row_is_not_there(loop: loops.LoopThread, ram: Path) -> None:
    """Whoever asks for a method that nobody serves is told just that."""

    async def ask(channel: Any) -> grpc.StatusCode:
        try:
            await channel.unary_unary("/koordlet.v1.NodeFeed/Nothing")(b"")
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    assert grpc.StatusCode.UNIMPLEMENTED is called(loop, ram, Feed(), ask)


class Watched:
    """A watch that ends some time after its client has gone: when it is let go."""

    def __init__(self) -> None:
        self.began, self.ending, self.free = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.ended = False

    async def watch(self, _request: bytes, context: services.Context) -> None:
        """Until the client goes, and longer."""
        try:
            await context.write(b"here")
            self.began.set()
            await asyncio.get_running_loop().create_future()
        finally:
            self.ending.set()
            await self.free.wait()
            self.ended = True

    async def left(self, path: Path, seconds: float) -> asyncio.Task[None]:
        """A stop that has begun, once the client has gone."""
        offered = Feed(WatchNode=grpc.unary_stream_rpc_method_handler(self.watch))
        it = server.RpcServer(path, (offered,), limits=limits.CallLimits(stop_seconds=seconds))
        await it.start()
        channel: Any
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            call = channel.unary_stream(WATCH)(b"")
            await call.read()
            await self.began.wait()
            call.cancel()
            await self.ending.wait()
        return asyncio.create_task(it.stop())


def test_a_stop_waits_for_calls_whose_client_has_gone(loop: loops.LoopThread, ram: Path) -> None:
    """When the server has stopped no task of a call is left, ours or gRPC's."""

    async def both() -> None:
        before, call = asyncio.all_tasks(), Watched()
        stopping = await call.left(ram / "s.sock", 20.0)
        # The core has nothing to wait for, and soon says so.
        await asyncio.wait([stopping], timeout=0.2)
        assert not stopping.done()
        call.free.set()
        await stopping
        left = [task.get_name() for task in asyncio.all_tasks() - before]
        assert (left, call.ended) == ([], True)

    loop.run(both())


def test_a_call_that_never_ends_does_not_hold_the_stop(loop: loops.LoopThread, ram: Path) -> None:
    """It is waited for as long as the limits say, and no longer."""

    async def both() -> bool:
        call = Watched()
        await asyncio.wait_for(await call.left(ram / "s.sock", 0.05), 20)
        ended = call.ended
        call.free.set()
        return ended

    assert not loop.run(both())


def ends_at_every_turn() -> None:
    """Loops that end so many turns after a call was let go, one after the other."""

    async def both(turns: int) -> None:
        call = Watched()
        stopping = await call.left(Path(tempfile.mkdtemp()) / "s.sock", 20.0)
        await asyncio.wait([stopping], timeout=0.2)
        call.free.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        await stopping

    for turns in range(6):
        asyncio.run(both(turns))


def test_a_client_that_goes_prints_no_traceback() -> None:
    """Whenever the loop ends after its server has stopped, nothing is on the standard error."""
    words = (sys.executable, "-c", f"from {__name__} import *; ends_at_every_turn()")
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
