"""The Python client library: what a node is, now and as it changes.

    from koordlet import client

    with client.connect("unix:/run/koordlet/koordlet.sock") as node:
        print(node.get().summary.name)
        for state in node.follow():
            print(state.revision, state.usage.node.cpu_milli)

Covers: connecting, one look, following across cuts and restarts (full state at every step, whatever
happens to the connection), errors with a sentence.
Does not cover: the messages (``koordlet.rpc.gen.feed_pb2`` has them, ``feed.proto`` explains them),
transport (``rpc.client``).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from koordlet.rpc import client, tls
from koordlet.rpc.client import RpcNoAnswerError as NoAnswerError
from koordlet.rpc.client import RpcRefusedError as RefusedError
from koordlet.rpc.gen import feed_pb2, scheduler_pb2

__all__ = ["NoAnswerError", "Node", "RefusedError", "connect", "scheduler"]

_SECTIONS = tuple(field.name for field in feed_pb2.Delta.DESCRIPTOR.fields)
_FIRST, _MOST = 0.2, 15.0


class NodeClient:
    """A connection to one agent; use it with ``with``."""

    def __init__(
        self,
        connection: client.RpcClient,
        *,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connection = connection
        self._sleep = sleep
        self._chance = chance
        self._state = feed_pb2.Node()

    def get(self, *, timeout: float = 5.0) -> feed_pb2.Node:
        """The whole node, now."""
        try:
            return self._connection.get_node(timeout=timeout)
        except client.Error as error:
            raise client.explained(error, self._connection.address) from error

    def follow(self, *, patient: bool = True) -> Iterator[feed_pb2.Node]:
        """The whole node now, and again whenever it has changed.

        A cut or a restart of the agent is lived through: what was missed comes with the next state.
        Not ``patient``: the first failure is raised instead.
        """
        tries = 0
        while True:
            try:
                epoch, revision = self._state.epoch, self._state.revision
                for event in self._connection.watch_node(epoch=epoch, revision=revision):
                    tries = 0
                    if self._take(event):
                        # The caller's copy never changes.
                        made = feed_pb2.Node()
                        made.CopyFrom(self._state)
                        yield made
            except client.Error as error:
                failure = client.explained(error, self._connection.address)
                if not patient or isinstance(failure, RefusedError):
                    raise failure from error
            self._sleep(min(_MOST, _FIRST * (1 << min(tries, 10))) * (0.5 + self._chance() / 2))
            tries += 1

    def _take(self, event: feed_pb2.WatchEvent) -> bool:
        """Lay an event over what is known; whether it says anything new."""
        what = event.WhichOneof("event")
        if what == "full":
            self._state.CopyFrom(event.full)
        elif what == "delta":
            for name in _SECTIONS:
                if event.delta.HasField(name):
                    getattr(self._state, name).CopyFrom(getattr(event.delta, name))
        self._state.epoch, self._state.revision = event.epoch, event.revision
        self._state.observed_at.CopyFrom(event.observed_at)
        return bool(what != "heartbeat")

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Node = NodeClient


_Certificates = tuple[Path | str, Path | str, Path | str] | None


def connect(address: str, certificates: _Certificates = None) -> NodeClient:
    """An agent at ``unix:/path``, or at ``host:port`` with (certificate, key, authority)."""
    return NodeClient(client.RpcClient(address, _files(certificates)))


def scheduler(
    address: str, name: str = "", certificates: _Certificates = None
) -> list[scheduler_pb2.SchedulerNode]:
    """The nodes that a scheduler knows, or one of them."""
    with client.RpcClient(address, _files(certificates)) as connection:
        try:
            return connection.list_nodes(name)
        except client.Error as error:
            raise client.explained(error, connection.address) from error


def _files(given: _Certificates) -> tls.TlsFiles | None:
    return None if given is None else tls.TlsFiles(*map(Path, given))
