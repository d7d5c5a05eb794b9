"""NodeFeed, health and reflection on a Unix socket.

Covers: calls and watchers, their bounds, starting and stopping. Does not cover: what the feed says
(``feed``), the socket's path (``unix_socket``).

Rules:
1. Handlers take and give bytes: an event is encoded once, whoever reads it.
2. A watcher has no queue. It knows what it has sent, and sends what is newer when the last event
   has been taken: a slow one gets fewer events, and holds one.
3. What a client does costs itself: its call, its place among the watchers, at most its connection.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The C core would write to our standard error about every client that speaks no HTTP/2.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
import grpc.aio
from google.protobuf import message as protobuf
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from koordlet.model import errors
from koordlet.report import view
from koordlet.rpc import feed, unix_socket
from koordlet.rpc import limits as bounds
from koordlet.rpc.gen import feed_pb2

SERVICE = feed_pb2.DESCRIPTOR.services_by_name["NodeFeed"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class Server:
    """The feed of one agent, in the running loop."""

    def __init__(self, path: Path, version: str, *, limits: bounds.Limits | None = None) -> None:
        self._path = path
        self._limits = bounds.Limits() if limits is None else limits
        self._feed = feed.Feed(version)
        self._server: grpc.aio.Server | None = None
        self._health = health.aio.HealthServicer()
        self._watchers: set[asyncio.Event] = set()
        self._serving: bool | None = None
        self._counts = dict.fromkeys(("watches", "events", "dropped", "refused"), 0)

    @property
    def counts(self) -> Mapping[str, int]:
        """What happened to clients, for an operator."""
        return dict(self._counts)

    @property
    def watchers(self) -> int:
        """How many there are now."""
        return len(self._watchers)

    async def start(self) -> str:
        """Listen; the address as gRPC clients write it."""
        unix_socket.prepare(self._path)
        server = grpc.aio.server(
            options=_options(self._limits),
            maximum_concurrent_rpcs=self._limits.watchers + self._limits.calls,
        )
        server.add_generic_rpc_handlers((self._handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        address = f"unix:{self._path}"
        try:
            with unix_socket.private():
                server.add_insecure_port(address)
        except RuntimeError as error:
            await server.stop(None)
            raise errors.HostError(
                "cannot listen", culprit=str(self._path), fix="set another report.grpc.socket"
            ) from error
        await self._say_health(serving=False)
        await server.start()
        self._server = server
        return address

    def publish(self, now: view.View) -> None:
        """There is a new view: tell the watchers, if it says anything new."""
        before = self._feed.revision
        self._feed.publish(now)
        if now.ready is not self._serving:
            self._serving = now.ready
            self._saying = asyncio.ensure_future(self._say_health(serving=now.ready))
        if self._watchers and self._feed.refresh() != before:
            for one in self._watchers:
                one.set()

    async def stop(self) -> None:
        """Let running calls end, then cut. gRPC takes the socket away."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await self._health.enter_graceful_shutdown()
        await server.stop(self._limits.stop_seconds)

    def _handlers(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "GetNode": grpc.unary_unary_rpc_method_handler(self._get),
                "WatchNode": grpc.unary_stream_rpc_method_handler(self._watch),
            },
        )

    async def _say_health(self, *, serving: bool) -> None:
        status = (
            health_pb2.HealthCheckResponse.SERVING
            if serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in ("", SERVICE):
            await self._health.set(name, status)

    async def _get(self, request: bytes, context: Context) -> bytes:
        await self._parsed(feed_pb2.GetNodeRequest(), request, context)
        if not self._feed.epoch:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the first tick is not done")
        return self._feed.node()

    async def _watch(self, request: bytes, context: Context) -> None:
        known = feed_pb2.WatchRequest()
        await self._parsed(known, request, context)
        if len(self._watchers) >= self._limits.watchers:
            self._counts["refused"] += 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watchers")
        self._counts["watches"] += 1
        wake = asyncio.Event()
        self._watchers.add(wake)
        try:
            await self._follow(known, wake, context)
        finally:
            self._watchers.discard(wake)

    async def _follow(
        self, known: feed_pb2.WatchRequest, wake: asyncio.Event, context: Context
    ) -> None:
        loop = asyncio.get_running_loop()
        if not self._feed.epoch:
            await wake.wait()
        sent = known.revision
        if not self._feed.resumable(known.epoch, known.revision):
            sent = self._feed.refresh()
            await self._write(context, self._feed.full())
        while True:
            wake.clear()
            if self._feed.refresh() == sent:
                timer = loop.call_later(self._limits.heartbeat_seconds, wake.set)
                try:
                    await wake.wait()
                finally:
                    timer.cancel()
            newest = self._feed.refresh()
            event = self._feed.heartbeat() if newest == sent else self._feed.since(sent)
            self._counts["dropped"] += max(0, newest - sent - 1)
            sent = newest
            await self._write(context, event)

    async def _write(self, context: Context, event: bytes) -> None:
        # Waits while the client does not read. gRPC cannot end such a call from here: the age
        # of its connection does.
        await context.write(event)
        self._counts["events"] += 1

    async def _parsed(self, into: protobuf.Message, request: bytes, context: Context) -> None:
        try:
            into.ParseFromString(request)
        except protobuf.DecodeError:
            self._counts["refused"] += 1
            name = into.DESCRIPTOR.full_name
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {name}")


def _options(limits: bounds.Limits) -> list[tuple[str, int]]:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = max(8, int(min(descriptors, 1 << 16) * limits.descriptor_share))
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.max_allowed_incoming_connections", connections),
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_send_message_length", limits.answer_bytes),
        ("grpc.max_metadata_size", limits.metadata_bytes),
        ("grpc.max_concurrent_streams", limits.watchers + limits.calls),
        ("grpc.server_handshake_timeout_ms", _milli(limits.handshake_seconds)),
        ("grpc.keepalive_time_ms", _milli(limits.keepalive_seconds)),
        ("grpc.keepalive_timeout_ms", _milli(limits.keepalive_timeout_seconds)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.max_connection_idle_ms", _milli(limits.idle_seconds)),
        ("grpc.max_connection_age_ms", _milli(limits.age_seconds)),
        ("grpc.max_connection_age_grace_ms", _milli(limits.age_grace_seconds)),
    ]


def _milli(seconds: float) -> int:
    return round(seconds * 1000)
