"""A small blocking client of the feed.

Covers: one node on one Unix socket. Does not cover: reconnecting, several nodes, TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from koordlet.rpc.gen import feed_pb2

_GET = "/koordlet.v1.NodeFeed/GetNode"
_WATCH = "/koordlet.v1.NodeFeed/WatchNode"


class Client:
    """A connection; use it with ``with``."""

    def __init__(self, path: Path) -> None:
        self.channel = grpc.insecure_channel(f"unix:{path}")
        self._get = self.channel.unary_unary(
            _GET,
            request_serializer=feed_pb2.GetNodeRequest.SerializeToString,
            response_deserializer=feed_pb2.Node.FromString,
        )
        self._watch = self.channel.unary_stream(
            _WATCH,
            request_serializer=feed_pb2.WatchRequest.SerializeToString,
            response_deserializer=feed_pb2.WatchEvent.FromString,
        )

    def get_node(self, *, timeout: float = 5.0) -> feed_pb2.Node:
        """The whole node, now."""
        node: feed_pb2.Node = self._get(feed_pb2.GetNodeRequest(), timeout=timeout)
        return node

    def watch_node(
        self, *, epoch: str = "", revision: int = 0, timeout: float | None = None
    ) -> Iterator[feed_pb2.WatchEvent]:
        """Events, the first one full unless the revision can be resumed."""
        request = feed_pb2.WatchRequest(epoch=epoch, revision=revision)
        events: Iterator[feed_pb2.WatchEvent] = self._watch(request, timeout=timeout)
        return events

    def close(self) -> None:
        """Close the connection, and with it every watch."""
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
