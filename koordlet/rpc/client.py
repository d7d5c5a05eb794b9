"""A small blocking client of our services.

Covers: one server on a Unix socket or over mutual TLS; one call each.
Does not cover: coming back after a cut (``koordlet.client``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import grpc

from koordlet.rpc import tls
from koordlet.rpc.gen import feed_pb2, scheduler_pb2

_FEED = "/koordlet.v1.NodeFeed"
_SCHEDULER = "/koordlet.v1.Scheduler"


class RpcClient:
    """A connection; use it with ``with``."""

    def __init__(self, address: Path | str, files: tls.TlsFiles | None = None) -> None:
        #: A path is that of a Unix socket; a text is as gRPC writes addresses.
        self.address = f"unix:{address}" if isinstance(address, Path) else address
        if files is None:
            self.channel = grpc.insecure_channel(self.address)
        else:
            self.channel = grpc.secure_channel(self.address, tls.channel_credentials(files))
        self._get = self.channel.unary_unary(
            f"{_FEED}/GetNode",
            request_serializer=feed_pb2.GetNodeRequest.SerializeToString,
            response_deserializer=feed_pb2.Node.FromString,
        )
        self._watch = self.channel.unary_stream(
            f"{_FEED}/WatchNode",
            request_serializer=feed_pb2.WatchRequest.SerializeToString,
            response_deserializer=feed_pb2.WatchEvent.FromString,
        )
        self._nodes = self.channel.unary_unary(
            f"{_SCHEDULER}/ListNodes",
            request_serializer=scheduler_pb2.ListNodesRequest.SerializeToString,
            response_deserializer=scheduler_pb2.ListNodesResponse.FromString,
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

    def list_nodes(
        self, name: str = "", *, timeout: float = 5.0
    ) -> list[scheduler_pb2.SchedulerNode]:
        """List the scheduler's nodes, or one of them."""
        request = scheduler_pb2.ListNodesRequest(name=name)
        nodes: scheduler_pb2.ListNodesResponse = self._nodes(request, timeout=timeout)
        return list(nodes.nodes)

    def close(self) -> None:
        """Close the connection, and with it every watch."""
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
