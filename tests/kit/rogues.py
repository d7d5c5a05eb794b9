"""Clients of the gRPC server that mean no good, as a process of their own.

    python -m tests.kit.rogues SOCKET KIND      says ``on`` when it is in full swing

Covers: what they do. Does not cover: what they must not achieve (``tests.rpc.test_floods``, the
gate ``feed.flooded``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

#: What an HTTP/2 client says first.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
HELD = 10_000
_WATCH = "/koordlet.v1.NodeFeed/WatchNode"
_GET = "/koordlet.v1.NodeFeed/GetNode"


def connections(path: str) -> Iterator[None]:
    """10 000 connections that are held; those that were cut are made again."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held: list[socket.socket] = []
    for number in itertools.count():
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(0)
        try:
            connection.connect(path)
            connection.send(PREFACE)
        except OSError:
            # The queue of the listener is full: that is a flood, too.
            connection.close()
            os.sched_yield()
        else:
            held.append(connection)
        if len(held) > min(HELD, most - 100):
            held.pop(0).close()
        if number > HELD:
            yield


def calls(path: str) -> Iterator[None]:
    """Calls as fast as they can be made, sixteen at a time."""
    import grpc

    channel = grpc.insecure_channel(f"unix:{path}")
    get = channel.unary_unary(_GET, bytes, bytes)
    while True:
        for call in [get.future(b"") for _ in range(16)]:
            with contextlib.suppress(grpc.RpcError):
                call.result()
        yield


def garbage(path: str) -> Iterator[None]:
    """Frames of HTTP/2 that make no sense, again and again."""
    chance = random.Random(7)
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(path)
            connection.sendall(PREFACE + chance.randbytes(chance.randrange(1, 20_000)))
        yield


def deaf(path: str) -> Iterator[None]:
    """200 watchers that ask for everything and read nothing."""
    kept = []
    request = _request(_WATCH)
    for _ in range(200):
        with contextlib.suppress(OSError):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(1)
            connection.connect(path)
            # A window that is as large as can be: the server may send whatever it has.
            connection.sendall(PREFACE + _frame(8, 0, 0, (0x7FFF0000).to_bytes(4)) + request)
            kept.append(connection)
    while True:
        time.sleep(0.05)
        yield


def _request(method: str) -> bytes:
    """HEADERS and an empty message, without a table or Huffman codes."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    block = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    return _frame(1, 4, 1, block) + _frame(0, 1, 1, bytes(5))


def _frame(kind: int, flags: int, stream: int, data: bytes) -> bytes:
    return len(data).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + data


KINDS: dict[str, Callable[[str], Iterator[None]]] = {
    "connections": connections,
    "calls": calls,
    "garbage": garbage,
    "deaf": deaf,
}


@contextlib.contextmanager
def at_work(path: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    """One of them, in full swing."""
    words = [sys.executable, "-m", "tests.kit.rogues", str(path), kind]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as rogue:
        assert rogue.stdout is not None
        try:
            assert rogue.stdout.readline() == "on\n"
            yield rogue
        finally:
            rogue.kill()


if __name__ == "__main__":
    for step, _ in enumerate(KINDS[sys.argv[2]](sys.argv[1])):
        if step == 0:
            print("on", flush=True)
