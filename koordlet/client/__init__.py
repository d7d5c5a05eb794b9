"""The Python client library: what a node is, now and as it changes.

    from koordlet import client

    with client.connect("unix:/run/koordlet/koordlet.sock") as node:
        print(node.get().summary.name)
        for state in node.follow():
            print(state.revision, state.usage.node.cpu_milli)

Covers: connecting, one look, following across cuts and restarts, errors with a sentence.
Does not cover: the messages (``koordlet.rpc.gen.feed_pb2`` has them, ``feed.proto`` explains them).
"""

from __future__ import annotations

from koordlet.client.node import NodeClient as Node
from koordlet.client.node import connect, scheduler
from koordlet.rpc.client import RpcNoAnswerError as NoAnswerError
from koordlet.rpc.client import RpcRefusedError as RefusedError

__all__ = ["NoAnswerError", "Node", "RefusedError", "connect", "scheduler"]
