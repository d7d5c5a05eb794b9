"""NodeFeed: the state of this node, at once and as it changes, and the server of an agent.

Covers: calls and watchers, their bounds, telling the server of a new view.
Does not cover: what the feed says (``feed``), listening (``server``).

A watcher has no queue. It knows what it has sent, and sends what is newer when the last event has
been taken: a slow one gets fewer events, and holds one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import grpc

from koordlet.history import series
from koordlet.http import limits as bounds
from koordlet.report import view
from koordlet.rpc import feed, server, services
from koordlet.rpc.gen import feed_pb2

SERVICE = feed_pb2.DESCRIPTOR.services_by_name["NodeFeed"].full_name


class NodeFeed:
    """The service."""

    name = SERVICE

    def __init__(
        self,
        version: str,
        *,
        limits: bounds.CallLimits | None = None,
        past: series.History | None = None,
    ) -> None:
        self._limits = bounds.CallLimits() if limits is None else limits
        self._feed = feed.Feed(version, past=past)
        self._watchers: set[asyncio.Event] = set()
        #: Wakes the watchers when nothing else did.
        self._silence: asyncio.TimerHandle | None = None
        #: Counts of watcher events.
        self.counts = dict.fromkeys(("watches", "events", "dropped", "refused"), 0)

    @property
    def watchers(self) -> int:
        """Number of watchers."""
        return len(self._watchers)

    def methods(self) -> Mapping[str, services.Handler]:
        """The handlers."""
        return {
            "GetNode": grpc.unary_unary_rpc_method_handler(self._get),
            "WatchNode": grpc.unary_stream_rpc_method_handler(self._watch),
        }

    def publish(self, now: view.ReportView) -> None:
        """There is a new view: tell the watchers, if it says anything new."""
        before = self._feed.revision
        self._feed.publish(now)
        if self._watchers and self._feed.refresh() != before:
            self._tell()

    def _tell(self) -> None:
        """Wake all watchers, and again when nothing else did for so long: one clock for all."""
        if self._silence is not None:
            self._silence.cancel()
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(self._limits.heartbeat_seconds, self._tell)
        for watcher in self._watchers:
            watcher.set()

    async def _get(self, request: bytes, context: services.Context) -> bytes:
        await services.parsed(feed_pb2.GetNodeRequest, request, context)
        if not self._feed.epoch:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the first tick is not complete")
        return self._feed.node()

    async def _watch(self, request: bytes, context: services.Context) -> None:
        known = await services.parsed(feed_pb2.WatchRequest, request, context)
        if len(self._watchers) >= self._limits.watchers:
            self.counts["refused"] += 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watch calls are open")
        self.counts["watches"] += 1
        wake = asyncio.Event()
        self._watchers.add(wake)
        if self._silence is None:
            self._tell()
        try:
            await self._follow(known, wake, context)
        finally:
            self._watchers.discard(wake)
            if not self._watchers and self._silence is not None:
                self._silence.cancel()
                self._silence = None

    async def _follow(
        self, known: feed_pb2.WatchRequest, wake: asyncio.Event, context: services.Context
    ) -> None:
        while not self._feed.epoch:
            wake.clear()
            await wake.wait()
        sent = known.revision
        if not self._feed.resumable(known.epoch, known.revision):
            sent = self._feed.refresh()
            await self._write(context, self._feed.full())
        while True:
            wake.clear()
            newest = self._feed.refresh()
            if newest == sent:
                await wake.wait()
                newest = self._feed.refresh()
            event = self._feed.heartbeat() if newest == sent else self._feed.since(sent)
            self.counts["dropped"] += max(0, newest - sent - 1)
            sent = newest
            await self._write(context, event)

    async def _write(self, context: services.Context, event: bytes) -> None:
        # Waits while the client does not read. gRPC cannot end such a call from here: the age
        # of its connection does.
        await context.write(event)
        self.counts["events"] += 1


class AgentServer(server.RpcServer):
    """The feed of one node, and the server that it is asked on."""

    def __init__(
        self,
        path: Path,
        version: str,
        *,
        limits: bounds.CallLimits | None = None,
        remote: server.RemoteListener | None = None,
        past: series.History | None = None,
    ) -> None:
        self.feed = NodeFeed(version, limits=limits, past=past)
        super().__init__(path, (self.feed,), limits=limits, remote=remote)
        self._serving: bool | None = None

    def publish(self, now: view.ReportView) -> None:
        """There is a new view."""
        if now.ready is not self._serving:
            self._serving = now.ready
            self._saying = asyncio.ensure_future(self.say(serving=now.ready))
        self.feed.publish(now)
