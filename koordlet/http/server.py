"""The listening side: one address, a bounded number of connections, a clean stop.

Covers: what to say when binding fails, TLS handshakes, stopping.
Does not cover: who is let in (``listener``), one connection (``connection``), who gives way
(``places``), certificates (``certificates``), what is served (``routes``).

Rules:
1. Connections are bounded, and so are those that come in one go: the descriptors of the control
   loop stay free.
2. A handshake is bounded like everything else: so many at once, so many seconds each; a newcomer
   has the place of the oldest. asyncio's own TLS listener would count a connection only after it.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping

from koordlet import log
from koordlet.http import authorisation, connection, listener, message, pace, places, routes
from koordlet.http import limits as bounds
from koordlet.model import errors

_PROBE_SECONDS = 0.5


class HttpServer:
    """One HTTP server in the running loop."""

    def __init__(
        self,
        address: str,
        table: routes.Routes,
        authorise: authorisation.Authorise = authorisation.local_readers,
        *,
        limits: bounds.ServerLimits | None = None,
        tls: ssl.SSLContext | None = None,
        setting: str = "report.http.address",
    ) -> None:
        self.address = address
        self._setting = setting
        self.routes = table
        self.limits = bounds.ServerLimits() if limits is None else limits
        self._authorise = authorise
        self._tls = tls
        self._listener: listener.Listener | None = None
        self._arriving: set[asyncio.Task[object]] = set()
        self._counts: dict[str, int] = {}
        self.places = places.ConnectionSlots(self.limits, lambda: self.count("displaced"))
        self.pace = pace.RequestPace(
            self.limits.repeat_share,
            self.limits.repeat_burst_seconds,
            lambda: self.count("delayed"),
        )
        #: The oldest first.
        self._handshakes: dict[asyncio.Task[None], asyncio.Transport] = {}
        self._empty = asyncio.Event()
        self._repeats: log.Repeats | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Event to how often: requests, refused, malformed, timeouts, busy, displaced, delayed.

        ``queued``: new connections that waited for credit.
        """
        return dict(self._counts)

    async def start(self) -> str:
        """Listen; the address with the port that it became."""
        host, port = split(self.address)
        self._repeats = log.Repeats(asyncio.get_running_loop().time)
        made = listener.Listener(
            self.limits, self._admit, self.count, self.failed, secure=self._tls is not None
        )
        try:
            bound = await made.open(host, port)
        except OSError as error:
            refusal = await _why_not(self.address, self._setting, error)
            raise refusal from error
        self._listener = made
        return join(*bound)

    async def stop(self) -> None:
        """Accept nothing more, let running responses end, then cut."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        for arriving in self._arriving:
            arriving.cancel()
        for task in tuple(self._handshakes):
            self._break_off(task)
        for each in self.places:
            each.close()
        for patience in (self.limits.stop_seconds, self.limits.stop_seconds):
            if not self.places:
                break
            self._empty.clear()
            try:
                await asyncio.wait_for(self._empty.wait(), patience)
            except TimeoutError:
                for each in self.places:
                    each.abort()

    def _admit(self, client: socket.socket, pays: pace.RequestPace) -> None:
        """Make a connection of a client that was let in."""
        loop = asyncio.get_running_loop()

        def protocol() -> asyncio.BaseProtocol:
            if self._tls is None:
                return connection.HttpConnection(self, pays)
            return Arrival(lambda transport: self._greet(transport, pays))

        task: asyncio.Task[object] = loop.create_task(
            loop.connect_accepted_socket(protocol, client)
        )
        self._arriving.add(task)

        def arrived(task: asyncio.Task[object]) -> None:
            self._arriving.discard(task)
            if task.cancelled() or task.exception() is not None:
                client.close()

        task.add_done_callback(arrived)

    # TLS.

    def _greet(self, transport: asyncio.Transport, pays: pace.RequestPace) -> None:
        if len(self._handshakes) >= self.limits.handshakes:
            self.count("displaced")
            self._break_off(next(iter(self._handshakes)))
        task = asyncio.ensure_future(self._secure(transport, pays))
        self._handshakes[task] = transport
        task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    def _break_off(self, task: asyncio.Task[None]) -> None:
        """End a handshake; its task may not have begun, and would not close anything then."""
        self._handshakes.pop(task).abort()
        task.cancel()

    async def _secure(self, transport: asyncio.Transport, pays: pace.RequestPace) -> None:
        """The handshake, then a connection like any other."""
        assert self._tls is not None  # noqa: S101 - there is no handshake without
        early = Early()
        try:
            made = await asyncio.get_running_loop().start_tls(
                transport,
                early,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=self.limits.handshake_seconds,
                ssl_shutdown_timeout=self.limits.linger_seconds,
            )
        except (OSError, asyncio.CancelledError):
            # ssl.SSLError and a handshake that took too long are among them.
            self.count("handshakes_failed")
            transport.abort()
            return
        if made is None or early.lost:
            transport.abort()
            return
        early.hand_over(made, connection.HttpConnection(self, pays))

    # What connections ask of it.

    def authorise(
        self, request: message.HttpRequest, peer: message.Peer
    ) -> authorisation.AccessVerdict | Awaitable[authorisation.AccessVerdict]:
        """The seam."""
        return self._authorise(request, peer)

    def opened(self, client: places.Seat) -> None:
        """Count a connection in."""
        self.places.enter(client)

    def admitted(self, client: places.Seat) -> bool:
        """True if there is a free slot for the connection's request."""
        if self.places.admit(client, asyncio.get_running_loop().time()):
            return True
        self.count("busy")
        return False

    def closed(self, client: places.Seat) -> None:
        """Count it out."""
        self.places.leave(client)
        if not self.places:
            self._empty.set()

    def count(self, event: str) -> None:
        """Count an event."""
        self._counts[event] = self._counts.get(event, 0) + 1

    def failed(self, where: str, error: BaseException) -> None:
        """Say an exception of ours, each kind once."""
        self.count("failed")
        if self._repeats is not None:
            self._repeats.say(
                log.get().error,
                "http.failed",
                (where, type(error)),
                where=where,
                error=f"{type(error).__name__}: {error}",
            )


def split(address: str) -> tuple[str, int]:
    """``host:port``, ``[v6]:port``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise errors.ConfigError(
            "not an address", culprit=address, fix="write it like 127.0.0.1:9316 or [::1]:9316"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def join(host: str, port: int) -> str:
    """The address as one writes it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def _why_not(address: str, setting: str, error: OSError) -> errors.HostError:
    """The failure to listen, with its culprit and what to do about it."""
    host, port = split(address)
    if isinstance(error, socket.gaierror):
        why, fix = f"the host has no address: {error.strerror}", "use an IP address of this machine"
    elif error.errno == errno.EADDRINUSE:
        who = await _who(host, port)
        why = f"{who} already listens there"
        fix = f"stop it (`ss -ltnp 'sport = :{port}'` names the process), or set another {setting}"
    elif error.errno == errno.EADDRNOTAVAIL:
        why, fix = "not an address of this machine", f"set {setting} to an address of this machine"
    elif error.errno in {errno.EACCES, errno.EPERM}:
        why, fix = "no permission to listen there", f"set {setting} to a port above 1023"
    else:
        why = f"cannot listen: {error.strerror or error}"
        fix = f"set another {setting}"
    return errors.HostError(why, culprit=address, fix=fix, errno=error.errno)


async def _who(host: str, port: int) -> str:
    """Identify the program on a used address: koordlet names itself in its headers."""
    where = host
    address = authorisation.address(host)
    if address is not None and address.is_unspecified:
        where = "127.0.0.1" if isinstance(address, ipaddress.IPv4Address) else "::1"
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(where, port)
            try:
                writer.write(b"HEAD / HTTP/1.0\r\n\r\n")
                head = await reader.read(4096)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return "another program"
    return "another koordlet" if b"\nserver: koordlet" in head.lower() else "another program"


# Arrival ------------------------------------------------------------------------------------------


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
