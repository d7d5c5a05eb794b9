"""A server with a few routes, and raw sockets to talk to it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from koordlet.http import authorisation, limits, message, routes, server
from tests.kit import loops

#: One for the session.
loop = loops.loop

#: Larger than all buffers between the two ends of a connection on loopback.
LARGE = 32 << 20


class Served:
    """A running server and its address."""

    def __init__(self, loop: loops.LoopThread, it: server.HttpServer, address: str) -> None:
        self.loop = loop
        self.server = it
        self.address = address
        self.host, _, port = address.rpartition(":")
        self.port = int(port)

    def connect(self) -> socket.socket:
        """A connection that gives up after some seconds."""
        return socket.create_connection((self.host, self.port), timeout=10)

    def ask(self, raw: bytes) -> bytes:
        """Send something, say that this was all, and read to the end."""
        with self.connect() as client:
            client.sendall(raw)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)
            return read_all(client)

    def get(
        self, path: str, *headers: str, method: str = "GET"
    ) -> tuple[int, dict[str, str], bytes]:
        """A well-behaved request: status, headers, body."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
        return parsed(self.ask("\r\n".join([*lines, "", ""]).encode("latin-1")))

    def open_connections(self) -> int:
        """How many the server counts."""
        return self.loop.call(lambda: len(self.server.places))

    def stalled(self) -> int:
        """How many clients take nothing of their answers."""
        places = self.server.places
        return self.loop.call(lambda: sum(each.stalled_since is not None for each in places))

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until something is so, or the test fails."""
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, "it never came to be"


Serve = Callable[..., Served]


@pytest.fixture
def serve(loop: loops.LoopThread) -> Iterator[Serve]:
    """Start servers; they are stopped, and nothing may have reached the loop."""
    running: list[server.HttpServer] = []
    loop.complaints.clear()

    def start(
        *rows: tuple[str, str, routes.Handler],
        authorise: authorisation.Authorise = authorisation.local_readers,
        address: str = "127.0.0.1:0",
        **bounds: Any,
    ) -> Served:
        table = routes.Routes([*STANDARD, *rows])
        chosen = limits.ServerLimits(**bounds)
        it = server.HttpServer(address, table, authorise, limits=chosen)
        bound = loop.run(it.start())
        running.append(it)
        return Served(loop, it, bound)

    yield start
    for running_server in running:
        loop.run(running_server.stop())
    assert loop.complaints == []


def read_all(client: socket.socket) -> bytes:
    """To the end, or to a reset."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def read_all_of(client: socket.socket, size: int) -> bytes:
    """So many bytes, or what came before the end."""
    parts: list[bytes] = []
    while (left := size - sum(map(len, parts))) > 0 and (part := client.recv(min(left, 1 << 20))):
        parts.append(part)
    return b"".join(parts)


def parsed(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case, body."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split(" ")[1]), headers, body


def _broken(_request: message.HttpRequest) -> message.HttpResponse:
    msg = "a bug"
    raise RuntimeError(msg)


_LARGE = message.HttpResponse(200, {"content-type": "application/octet-stream"}, b"x" * LARGE)

STANDARD: list[tuple[str, str, routes.Handler]] = [
    ("GET", "/", lambda _: message.text("hello\n")),
    ("GET", "/document", lambda _: message.document({"version": "v1", "fill": "y" * 4096})),
    ("GET", "/large", lambda _: _LARGE),
    ("GET", "/broken", _broken),
    ("POST", "/echo", lambda request: message.HttpResponse(200, {}, request.body)),
]
