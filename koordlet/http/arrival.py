"""A connection before it is one: until its TLS handshake is done, and the instant after that.

Covers: holding back what comes too early. Does not cover: the handshake (``server``), the
connection (``connection``).

``start_tls`` hands what the client sent with the end of its handshake to the protocol before the
caller gets the transport, so somebody has to keep it: at most what one read of the socket brought.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Arrival(asyncio.Protocol):
    """A plain connection of which nothing is read until TLS reads it."""

    def __init__(self, greet: Callable[[asyncio.Transport], None]) -> None:
        self._greet = greet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - narrows the type
        transport.pause_reading()
        self._greet(transport)


class Early(asyncio.Protocol):
    """Buffers events until the connection object exists."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._ended = False
        #: The client has gone already.
        self.lost = False

    def data_received(self, data: bytes) -> None:
        """Buffer data that arrived with the handshake."""
        self._held += data

    def eof_received(self) -> bool:
        """Buffer the end of the client's data; the client may still read."""
        self._ended = True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Buffer the disconnection."""
        del exc
        self.lost = True

    def hand_over(self, transport: asyncio.Transport, to: asyncio.BufferedProtocol) -> None:
        """Replay the buffered events and give the transport to the connection."""
        transport.set_protocol(to)
        to.connection_made(transport)
        while self._held:
            buffer = memoryview(to.get_buffer(-1))
            size = min(len(buffer), len(self._held))
            buffer[:size] = self._held[:size]
            del self._held[:size]
            to.buffer_updated(size)
        if self._ended:
            to.eof_received()
