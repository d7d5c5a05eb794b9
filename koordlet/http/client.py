"""An HTTP/1.1 client on asyncio and h11: one server, few connections, nothing unbounded.

Covers: connecting (TLS, a CONNECT proxy), requests with a bounded answer, streams, deadlines.
Does not cover: who we are (headers come from the caller), what the answers mean.

Rules:
1. Everything has a deadline: connecting, an answer as a whole, and the silence within a stream.
2. A response has at most ``ClientLimits.body_bytes``, its head at most ``ClientLimits.head_bytes``.
   The client requests no compression, so a small response cannot become a large one.
3. A request is repeated only if it is a GET whose kept connection the server had closed before.
4. Where connecting fails, the error holds no frames: asyncio's keep 256 KB of a TLS handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import field
from typing import NamedTuple

import h11

from koordlet.http import exchange
from koordlet.model import errors
from koordlet.model.record import dataclass

_READ_BYTES = 64 << 10

Headers = exchange.Headers


class TransportError(errors.HostError):
    """No answer, or none that HTTP allows."""

    code = "transport"


class CertificateError(TransportError):
    """The two ends do not trust each other."""

    code = "certificate"


@dataclass(frozen=True, slots=True)
class HttpEndpoint:
    """Address of a server."""

    host: str
    port: int
    #: ``None``: no TLS.
    tls: ssl.SSLContext | None = None
    #: What the certificate must say; empty: ``host``.
    server_name: str = ""
    #: A proxy that connects us, as host and port.
    proxy: tuple[str, int] | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls is None else 'https'}://{host}:{self.port}"

    @property
    def authority(self) -> str:
        """For the ``Host`` header."""
        return str(self).partition("//")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """Resource limits of the client for one server."""

    #: For requests; streams have connections of their own.
    connections: int = 8
    connect_seconds: float = 10.0
    #: From the request to the last byte of its answer, or to the head of a stream.
    answer_seconds: float = 30.0
    head_bytes: int = 64 << 10
    body_bytes: int = 32 << 20
    #: A kept connection that idles for longer is not used again.
    idle_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class ClientResponse:
    """An answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class _Request(NamedTuple):
    method: str
    target: str
    headers: Headers
    body: bytes = b""


class _Connection:
    """One connection: a request and its answer at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: ClientLimits
    ) -> None:
        self._reader, self._writer = reader, writer
        self._limits = limits
        #: Of the present answer; ``None``: it is plain.
        self._http: h11.Connection | None = None
        #: Of a plain stream: its request, its head, and what was read and not yet handed on.
        self._begun, self._rest = (_Request("", "", ()), b""), b""
        self.idle_since = 0.0
        #: Any byte of the present answer was seen.
        self.answered = False

    @property
    def usable(self) -> bool:
        """True if the server keeps the connection open."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def whole(self, request: _Request) -> ClientResponse:
        """Send a request; the whole of its answer."""
        data = await self._send(request)
        plain = exchange.answer(data)
        if plain is not None:
            return ClientResponse(*plain)
        head = await self._head(request, data)
        read = bytearray()
        while piece := await self.data():
            read += piece
            if len(read) > self._limits.body_bytes:
                break
        return ClientResponse(head.status, head.headers, bytes(read))

    async def ask(self, request: _Request) -> ClientResponse:
        """Send a request; the head of its answer."""
        data = await self._send(request)
        streamed = exchange.streamed(data)
        if streamed is None:
            return await self._head(request, data)
        status, names, end = streamed
        self._begun, self._rest = (request, data[:end]), data[end:]
        return ClientResponse(status, names)

    async def _send(self, request: _Request) -> bytes:
        """Send a request; the first bytes of its answer."""
        self.answered, self._http = False, None
        self._writer.write(exchange.request(*request))
        await self._writer.drain()
        return await self._read()

    async def _head(self, request: _Request, data: bytes) -> ClientResponse:
        """Have h11 read the answer, of which these are the first bytes."""
        self._http, _ = exchange.begun(*request, self._limits.head_bytes)
        self._http.receive_data(data)
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                pairs = [(name.decode(), value.decode("latin-1")) for name, value in event.headers]
                return ClientResponse(event.status_code, dict(pairs))
            if not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("the response has no header")

    async def data(self) -> bytes:
        """The next piece of the body; empty at its end."""
        while self._http is None:
            content, self._rest, more = exchange.chunks(self._rest)
            if content:
                return content
            read = await self._read() if more else b""
            self._rest += read
            if not read:
                await self._head(self._begun[0], self._begun[1] + self._rest)
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if isinstance(event, h11.EndOfMessage):
                return b""
            raise h11.RemoteProtocolError("the response body is malformed")

    async def _next(self) -> h11.Event | type[h11.PAUSED]:
        http = self._http
        assert http is not None  # noqa: S101 - whoever asks for more has looked
        while True:
            event = http.next_event()
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value] # the class NEED_DATA is no answer
            http.receive_data(await self._read())

    async def _read(self) -> bytes:
        data = await self._reader.read(_READ_BYTES)
        self.answered = self.answered or bool(data)
        return data

    def reuse(self) -> bool:
        """True if the connection is free again: the response ended and nothing follows it."""
        http, self._http = self._http, None
        if http is not None:
            over = http.our_state is h11.DONE and http.their_state is h11.DONE
            if not over or any(http.trailing_data):
                return False
        return self.usable

    def close(self) -> None:
        """Give the descriptor back, now."""
        self._writer.transport.abort()


class ResponseStream:
    """The body of an answer, as it comes."""

    def __init__(self, response: ClientResponse, connection: _Connection, name: str) -> None:
        self.response = response
        self._connection = connection
        self._name = name

    async def read(self, seconds: float) -> bytes:
        """The next piece, empty at the end; ``TransportError`` after so many seconds of silence."""
        try:
            async with asyncio.timeout(seconds):
                return await self._connection.data()
        except TimeoutError:
            raise TransportError(f"no data for {seconds:.0f} s", culprit=self._name) from None
        except (OSError, h11.ProtocolError) as error:
            raise _broken(self._name, error) from error


class HttpClient:
    """One server."""

    def __init__(self, endpoint: HttpEndpoint, limits: ClientLimits | None = None) -> None:
        self.endpoint = endpoint
        self._host = "host", endpoint.authority
        self.limits = ClientLimits() if limits is None else limits
        self._kept: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._places = asyncio.Semaphore(self.limits.connections)
        self._closed = self._retired = False

    async def request(
        self, method: str, target: str, headers: Headers = (), body: bytes = b""
    ) -> ClientResponse:
        """The whole answer."""
        asked = _Request(method, target, self._headers(headers, body), body)
        try:
            async with asyncio.timeout(self.limits.answer_seconds), self._places:
                while True:
                    connection, kept = await self._connection()
                    try:
                        return await self._whole(connection, asked)
                    except (OSError, h11.ProtocolError) as error:
                        if not kept or method != "GET" or connection.answered:
                            raise _broken(str(self.endpoint), error, connection) from error
        except TimeoutError:
            raise self._late("answer", self.limits.answer_seconds) from None

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, target: str, headers: Headers = ()
    ) -> AsyncGenerator[ResponseStream, None]:
        """An answer piece by piece, on a connection of its own."""
        asked = _Request(method, target, self._headers(headers, b""))
        try:
            async with asyncio.timeout(self.limits.answer_seconds):
                connection = await self._connect()
                try:
                    head = await connection.ask(asked)
                except BaseException as error:
                    self._drop(connection)
                    if isinstance(error, OSError | h11.ProtocolError):
                        raise _broken(str(self.endpoint), error, connection) from error
                    raise
        except TimeoutError:
            raise self._late("answer", self.limits.answer_seconds) from None
        try:
            yield ResponseStream(head, connection, str(self.endpoint))
        finally:
            self._drop(connection)

    @property
    def idle(self) -> bool:
        """True if no request is in progress."""
        return len(self._open) == len(self._kept)

    def retire(self) -> None:
        """Keep no connection any more: what is under way may end, nothing is used again."""
        self._retired = True
        for connection in self._kept:
            self._drop(connection)
        self._kept.clear()

    def close(self) -> None:
        """Cut every connection; what waits for one ends with ``TransportError``."""
        self._closed = True
        for connection in list(self._open):
            self._drop(connection)
        self._kept.clear()

    async def _whole(self, connection: _Connection, request: _Request) -> ClientResponse:
        done = False
        try:
            whole = await connection.whole(request)
            if len(whole.body) > self.limits.body_bytes:
                text = f"the response exceeds {self.limits.body_bytes >> 20} MiB"
                raise TransportError(text, culprit=str(self.endpoint), fix="check its address")
            done = connection.reuse() and not (self._closed or self._retired)
            return whole
        finally:
            if done:
                connection.idle_since = asyncio.get_running_loop().time()
                self._kept.append(connection)
            else:
                self._drop(connection)

    def _headers(self, headers: Headers, body: bytes) -> Headers:
        length = (("content-length", str(len(body))),) if body else ()
        return (self._host, *headers, *length)

    def _late(self, what: str, seconds: float) -> TransportError:
        return TransportError(f"no {what} within {seconds:.0f} s", culprit=str(self.endpoint))

    async def _connection(self) -> tuple[_Connection, bool]:
        """A kept connection, or a new one."""
        late = asyncio.get_running_loop().time() - self.limits.idle_seconds
        while self._kept:
            connection = self._kept.pop()
            if connection.usable and late < connection.idle_since:
                return connection, True
            self._drop(connection)
        return await self._connect(), False

    async def _connect(self) -> _Connection:
        where = self.endpoint
        self._check_open()
        opened, seconds = None, self.limits.connect_seconds
        try:
            async with asyncio.timeout(seconds):
                opened = await _opened(where)
        except ssl.SSLError as error:
            why = getattr(error, "verify_message", "") or error.reason or str(error)
            why, fix = f"TLS verification failed: {why}", "check CA and certificates"
            raise CertificateError(why, culprit=str(where), fix=fix) from error.with_traceback(None)
        except TimeoutError:
            pass  # raised below: here the frames would be the error's context
        except OSError as error:
            raise _broken(str(where), error) from error.with_traceback(None)
        if opened is None:
            raise self._late("connection", seconds)
        connection = _Connection(*opened, self.limits)
        self._open.add(connection)
        try:
            self._check_open()  # it may have been closed while this one was being opened
        except TransportError:
            self._drop(connection)
            raise
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise TransportError("the connection is closed", culprit=str(self.endpoint))

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.close()


async def _opened(where: HttpEndpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    name = (where.server_name or where.host) if where.tls is not None else None
    if where.proxy is None:
        return await asyncio.open_connection(
            where.host, where.port, ssl=where.tls, server_hostname=name
        )
    reader, writer = await asyncio.open_connection(*where.proxy)
    try:
        asks = f"CONNECT {where.authority} HTTP/1.1\r\nHost: {where.authority}\r\n\r\n"
        writer.write(asks.encode("ascii"))
        answer = await reader.readuntil(b"\r\n\r\n")
        if answer.split(b" ", 2)[1:2] != [b"200"]:
            words = answer.partition(b"\r\n")[0].decode("latin-1")
            raise TransportError(f"the proxy refused: {words[:200]}", culprit=str(where))  # noqa: TRY301
        if where.tls is not None:
            await writer.start_tls(where.tls, server_hostname=name)
    except BaseException as error:
        writer.transport.abort()
        if isinstance(error, asyncio.IncompleteReadError | asyncio.LimitOverrunError):
            raise _broken(f"proxy {where.proxy[0]}:{where.proxy[1]}", error) from error
        raise
    return reader, writer


def _broken(name: str, error: Exception, asked: _Connection | None = None) -> TransportError:
    if isinstance(error, TransportError):
        return error
    refused, fix = isinstance(error, ConnectionRefusedError), ""
    words = "Connection refused" if refused else getattr(error, "strerror", None) or str(error)
    if not words or (isinstance(error, h11.RemoteProtocolError) and "closed" in words.lower()):
        words = "the connection was closed before the answer ended"  # h11 has many words for it
        if asked is not None and not asked.answered:
            fix = "does the server want https, or a client certificate?"
    return TransportError(words, culprit=name, fix=fix)
