"""The gRPC server of an agent: the feed of its node.

Covers: which services an agent has, telling them of a new view. Does not cover: any of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from koordlet.http import limits as bounds
from koordlet.report import view
from koordlet.report.objects import metric_object
from koordlet.rpc import access, node_feed, permissions, server, tls


class AgentServer:
    """Starts, publishes, stops."""

    def __init__(
        self,
        path: Path,
        version: str,
        *,
        limits: bounds.CallLimits | None = None,
        remote: server.RemoteListener | None = None,
        past: metric_object.MetricHistory | None = None,
    ) -> None:
        self.feed = node_feed.NodeFeed(version, limits=limits, past=past)
        self.server = server.RpcServer(path, (self.feed,), limits=limits, remote=remote)
        self._serving: bool | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of client events."""
        return self.server.counts

    @property
    def watchers(self) -> int:
        """Number of watchers."""
        return self.feed.watchers

    async def start(self) -> str:
        """Listen; the addresses as gRPC clients write them."""
        return await self.server.start()

    def publish(self, now: view.ReportView) -> None:
        """There is a new view."""
        if now.ready is not self._serving:
            self._serving = now.ready
            self._saying = asyncio.ensure_future(self.server.say(serving=now.ready))
        self.feed.publish(now)

    async def stop(self) -> None:
        """Let running calls end, then cut."""
        await self.server.stop()


def remote(
    address: str | None,
    files: tuple[Path, Path, Path] | None,
    rules: Iterable[tuple[str, Iterable[str]]],
) -> server.RemoteListener | None:
    """Listener for other machines; ``None`` if the configuration has none."""
    if address is None or files is None:
        return None
    return server.RemoteListener(
        address=address,
        files=tls.TlsFiles(*files),
        rules=[
            access.AccessRule(
                name=name, rights=frozenset(permissions.Right(right) for right in rights)
            )
            for name, rights in rules
        ],
    )
