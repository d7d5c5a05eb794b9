"""Streams over real sockets: what comes, what a slow or rude listener costs."""

from __future__ import annotations

import socket

from koordlet.http import message
from tests.http import conftest

ASK = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"


class World:
    """A channel whose state a test sets, behind a server."""

    def __init__(self, serve: conftest.Serve, **bounds: float) -> None:
        self.state = b"data: 1\n\n"
        self.channel = message.Channel(lambda: self.state)
        self.served = serve(
            ("GET", "/events", lambda _: message.EventStream(self.channel)),
            ("GET", "/other", lambda _: message.text("here\n")),
            **bounds,
        )

    def publish(self, state: bytes) -> None:
        """A new state."""
        self.state = state
        self.served.loop.call(self.channel.publish)

    def open(self) -> socket.socket:
        """One that listens."""
        client = self.served.connect()
        client.sendall(ASK)
        self.served.wait_for(lambda: self.listeners() > 0)
        return client

    def listeners(self) -> int:
        """How many there are."""
        return self.served.loop.call(lambda: self.channel.listeners)


def until(client: socket.socket, end: bytes) -> bytes:
    """Everything up to some bytes."""
    received = b""
    while end not in received:
        piece = client.recv(65536)
        assert piece, f"ended before {end!r}: {received[-200:]!r}"
        received += piece
    return received


def test_states_as_they_come(serve: conftest.Serve) -> None:
    """One at once, one with every publication, on a connection that is not kept for more."""
    world = World(serve)
    with world.open() as client:
        head = until(client, b"data: 1\n\n")
        world.publish(b"data: 2\n\n")
        until(client, b"data: 2\n\n")

    assert b"200" in head.splitlines()[0]
    assert b"content-type: text/event-stream" in head
    assert b"content-length" not in head
    assert b"cache-control: no-store" in head
    world.served.wait_for(lambda: world.listeners() == 0)


def test_a_head_is_no_listener(serve: conftest.Serve) -> None:
    """It gets the headers and is done."""
    world = World(serve)

    assert world.served.get("/events", method="HEAD")[0] == 200
    assert world.listeners() == 0


def test_one_that_says_more(serve: conftest.Serve) -> None:
    """Whoever listens has nothing to ask on that connection: it is cut."""
    world = World(serve)
    with world.open() as client:
        until(client, b"data: 1\n\n")
        client.sendall(ASK)
        world.served.wait_for(lambda: world.listeners() == 0)

    assert world.served.get("/other")[2] == b"here\n"


def test_one_that_reads_slowly_gets_the_newest(serve: conftest.Serve) -> None:
    """What it has not begun to take is replaced: no queue grows behind it."""
    world = World(serve)
    with world.open() as client:
        for n in range(30):
            world.publish(b"%02d" % n * (1 << 20))
        world.publish(b"the end")
        received = until(client, b"the end")

    assert len(received) < 20 << 20


def test_one_that_never_reads(serve: conftest.Serve) -> None:
    """It is sent away when its time is over; the others are served."""
    world = World(serve, write_seconds=0.2)
    with world.open():
        for _ in range(3):
            world.publish(b"x" * conftest.LARGE)
        world.served.wait_for(lambda: world.listeners() == 0)

    assert world.served.get("/other")[2] == b"here\n"


def test_a_stop_ends_streams(serve: conftest.Serve) -> None:
    """They do not hold it."""
    world = World(serve)
    with world.open() as client:
        until(client, b"data: 1\n\n")
        world.served.loop.run(world.served.server.stop())
        assert conftest.read_all(client).endswith(b"")
    assert world.listeners() == 0
