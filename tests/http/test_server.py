"""Binding, bounds, stopping."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from koordlet.http import routes, server
from koordlet.model import errors
from tests.http import conftest
from tests.kit import loops

TABLE = routes.Routes([])


def refused(loop: loops.LoopThread, address: str) -> errors.KoordletError:
    """The error of a server that cannot start."""
    with pytest.raises(errors.KoordletError) as caught:
        loop.run(server.HttpServer(address, TABLE).start())
    return caught.value


def test_port_0_becomes_a_port(serve: conftest.Serve) -> None:
    """The address that start returns is the one to connect to."""
    assert not serve().address.endswith(":0")


def test_address_taken_by_a_koordlet(serve: conftest.Serve, loop: loops.LoopThread) -> None:
    """A second agent is told that a first one is there, and what to do."""
    served = serve()

    error = refused(loop, served.address)

    assert "another koordlet already listens there" in str(error)
    assert str(served.port) in error.fix
    assert isinstance(error, errors.HostError)


def test_address_taken_by_a_silent_program(loop: loops.LoopThread) -> None:
    """A program that answers nothing does not hold the start for long."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        error = refused(loop, f"127.0.0.1:{port}")

    assert "another program already listens there" in str(error)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("192.0.2.1:0", "not an address of this machine"),
        ("no-such-host.invalid:0", "no address"),
        ("9316", "not an address"),
        ("127.0.0.1:99999", "not an address"),
        ("127.0.0.1:", "not an address"),
    ],
)
def test_address_that_cannot_be(loop: loops.LoopThread, address: str, message: str) -> None:
    """What cannot be listened on is named, with a fix."""
    error = refused(loop, address)

    assert message in str(error)
    assert error.culprit == address
    assert error.fix


def test_ipv6(serve: conftest.Serve) -> None:
    """IPv6 addresses are written in brackets, both ways."""
    try:
        served = serve(address="[::1]:0")
    except errors.HostError:
        # Some containers have none, and no set-up inside can bring it.
        pytest.skip("this machine has no IPv6 loopback")

    assert served.address.startswith("[::1]:")


def test_connections_are_bounded_in_a_flood(serve: conftest.Serve) -> None:
    """Two hundred silent connections leave no more than the bound, and the loop serves."""
    served = serve(connections=4, heads=3, probes=1)

    flood = [served.connect() for _ in range(200)]

    served.wait_for(lambda: served.open_connections() <= 8)
    assert served.get("/")[0] == 200
    for client in flood:
        client.close()


def test_stop_lets_a_running_response_end(serve: conftest.Serve, loop: loops.LoopThread) -> None:
    """A response that is being taken is finished; idle connections are closed."""
    served = serve(stop_seconds=5.0)
    with served.connect() as idle_one, served.connect() as running:
        running.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = running.recv(1000)

        stopping = asyncio.run_coroutine_threadsafe(served.server.stop(), loop.loop)
        taken = len(head) + len(conftest.read_all(running))
        stopping.result(10)

        assert taken > conftest.LARGE
        assert idle_one.recv(10) == b""
    with pytest.raises(ConnectionError):
        served.connect()


def test_stop_cuts_a_client_that_does_not_read(
    serve: conftest.Serve, loop: loops.LoopThread
) -> None:
    """A stop does not wait for ever."""
    served = serve(stop_seconds=0.1)
    with served.connect() as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(10)

        loop.run(served.server.stop())

        assert served.open_connections() == 0


def test_same_port_again(serve: conftest.Serve, loop: loops.LoopThread) -> None:
    """After a stop the port is free for the next agent at once."""
    served = serve()
    served.get("/")
    loop.run(served.server.stop())

    again = serve(address=served.address)

    assert again.get("/")[0] == 200


class Transport(asyncio.Transport):
    """Takes its protocol."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: asyncio.BaseProtocol | None = None
        self.paused = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        self.paused = True


class Taking(asyncio.BufferedProtocol):
    """A connection with a buffer of some bytes."""

    def __init__(self, room: int) -> None:
        self._buffer = bytearray(room)
        self.heard: list[Any] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.heard.append(transport)

    def get_buffer(self, sizehint: int) -> bytearray:
        assert sizehint == -1
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.heard.append(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> None:
        self.heard.append("end")


@pytest.mark.parametrize(
    ("room", "parts"), [(4, [b"abcd", b"ef"]), (6, [b"abcdef"]), (100, [b"abcdef"])]
)
def test_what_came_too_early(room: int, parts: list[bytes]) -> None:
    """Piece by piece where the connection has less room than there is, and the end at the end."""
    early, transport, connection = server.Early(), Transport(), Taking(room)
    early.data_received(b"abc")
    early.data_received(b"def")
    assert early.eof_received()
    early.hand_over(transport, connection)

    assert [transport, *parts, "end"] == connection.heard
    assert transport.protocol is connection


def test_a_client_that_waits_its_turn() -> None:
    """Nothing was said, so the connection hears of its transport only."""
    early, transport, connection = server.Early(), Transport(), Taking(4)
    early.hand_over(transport, connection)

    assert [transport] == connection.heard


def test_a_client_that_has_gone() -> None:
    """The server can see that there is nobody to hand over to."""
    early = server.Early()
    assert not early.lost
    early.connection_lost(ConnectionResetError())

    assert early.lost


def test_nothing_is_read_before_the_handshake() -> None:
    """Reading stops before anybody is greeted: TLS will read."""
    seen: list[bool] = []
    transport = Transport()
    server.Arrival(
        lambda connection: seen.append(connection is transport and transport.paused)
    ).connection_made(transport)

    assert seen == [True]
