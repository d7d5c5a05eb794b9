"""What a client says with the end of its handshake reaches the connection, in order and once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koordlet.http import server


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
    server.Arrival(lambda one: seen.append(one is transport and transport.paused)).connection_made(
        transport
    )

    assert seen == [True]
