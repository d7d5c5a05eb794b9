"""The client against servers that do as they like, byte by byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import pytest

from koordlet.http import client

PATIENCE = 30.0

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SMALL = client.ClientLimits(answer_seconds=5.0, head_bytes=2048, body_bytes=4096)


def with_server(
    serve: Serve,
    body: Callable[[client.HttpClient], Awaitable[None]],
    limits: client.ClientLimits = SMALL,
) -> int:
    """Run a test's body with a client; how many connections the server saw."""
    connections = 0

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    async def run() -> None:
        listening = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        asking = client.HttpClient(client.HttpEndpoint("127.0.0.1", port), limits)
        async with asyncio.timeout(PATIENCE):
            await body(asking)
        asking.close()
        listening.close()

    asyncio.run(run())
    return connections


def answers(*pieces: bytes) -> Serve:
    """To each request on a connection, the next piece; then the end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(piece)
            await writer.drain()

    return serve


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_bodies_of_every_framing() -> None:
    """By length, in chunks, and until the end of the connection."""
    chunks = b"1\r\no\r\n1;x=y\r\nk\r\n0\r\nT: t\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    until_end = b"HTTP/1.1 200 OK\r\n\r\nok"

    async def body(asking: client.HttpClient) -> None:
        for _ in range(3):
            assert (await asking.request("GET", "/")).body == b"ok"

    assert with_server(answers(OK, chunked, until_end), body) == 1


def test_a_stream_in_drops() -> None:
    """Byte by byte, with chunks of every kind, its content comes whole and its end is told."""
    chunks = b"1\r\no\r\n2\r\nk,\r\n3;x=y\r\n or\r\n4\r\n not\r\n0\r\nT: t\r\n\r\n"

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in chunks:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read()

    async def body(asking: client.HttpClient) -> None:
        async with asking.stream("GET", "/") as stream:
            assert stream.response.status == 200
            assert await _rest(stream) == b"ok, or not"

    with_server(drip, body)


@pytest.mark.parametrize("cut", [b"", b"1\r\no\r\n", b"1\r\no\r\n5\r\nk", b"1\r\no\r\nz"])
def test_a_stream_that_is_cut(cut: bytes) -> None:
    """A connection that ends before the stream does is an error, wherever that was."""

    async def body(asking: client.HttpClient) -> None:
        async with asking.stream("GET", "/") as stream:
            with pytest.raises(client.TransportError):
                await _rest(stream)

    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with_server(answers(head + cut), body)


@pytest.mark.parametrize(
    ("sent", "fix"),
    [(b"", "does the server want https, or a client certificate?"), (OK[:-1], ""), (OK[:9], "")],
)
def test_a_connection_that_ends_early_is_called_so(sent: bytes, fix: str) -> None:
    """However far the answer had come, in a request and in a stream: no word of a state machine."""
    ended = "the connection was closed before the answer ended"

    async def body(asking: client.HttpClient) -> None:
        with pytest.raises(client.TransportError) as request:
            await asking.request("GET", "/")
        with pytest.raises(client.TransportError) as stream:
            async with asking.stream("GET", "/") as begun:
                await _rest(begun)
        assert {(error.value.message, error.value.fix) for error in (request, stream)} == {
            (ended, fix)
        }

    with_server(answers(sent), body)


async def _rest(stream: client.ResponseStream) -> bytes:
    content = b""
    while piece := await stream.read(PATIENCE):
        content += piece
    return content


def test_more_than_was_asked_for() -> None:
    """What follows an answer is no answer to the next request: the connection is not used again."""
    unasked = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"

    async def body(asking: client.HttpClient) -> None:
        for _ in range(2):
            assert (await asking.request("GET", "/")).body == b"ok"

    assert with_server(answers(OK + unasked), body) == 2


def test_news_before_the_answer() -> None:
    """An interim answer is passed over."""

    async def body(asking: client.HttpClient) -> None:
        response = await asking.request("POST", "/", (), b"x")
        assert (response.status, response.body) == (200, b"ok")

    with_server(answers(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK), body)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 4096,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"",
    ],
)
def test_what_is_no_answer(nonsense: bytes) -> None:
    """One error that names the server, and the connection is not used again."""

    async def body(asking: client.HttpClient) -> None:
        for _ in range(2):
            with pytest.raises(client.TransportError) as caught:
                await asking.request("GET", "/")
            assert caught.value.culprit == str(asking.endpoint)

    assert with_server(answers(nonsense), body) == 2


def test_too_much() -> None:
    """An endless body ends at the bound."""

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 1024)
            await writer.drain()

    async def body(asking: client.HttpClient) -> None:
        with pytest.raises(client.TransportError, match="exceeds"):
            await asking.request("GET", "/")

    with_server(endless, body)


def test_an_answer_in_drops() -> None:
    """A server that sends a byte now and then does not get round the deadline."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.02)

    async def body(asking: client.HttpClient) -> None:
        with pytest.raises(client.TransportError, match="within"):
            await asking.request("GET", "/")

    with_server(drip, body, client.ClientLimits(answer_seconds=0.2))


def test_requests_wait_for_a_place() -> None:
    """Never more connections than allowed, and everybody is answered."""

    async def body(asking: client.HttpClient) -> None:
        responses = await asyncio.gather(*(asking.request("GET", "/") for _ in range(20)))
        assert {answer.body for answer in responses} == {b"ok"}

    assert with_server(answers(*[OK] * 20), body, client.ClientLimits(connections=2)) == 2


def test_a_caller_that_goes_away() -> None:
    """Its connection is cut: what was half read can never be another's answer."""

    async def body(asking: client.HttpClient) -> None:
        waiting = asyncio.create_task(asking.request("GET", "/slow"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await asking.request("GET", "/")).body == b"ok"

    with_server(answers(OK), body)


def test_closing() -> None:
    """What runs ends, what comes later is refused."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del writer
        await reader.read()

    async def body(asking: client.HttpClient) -> None:
        async with asking.stream("GET", "/") as _:
            pytest.fail("nothing was answered")

    async def closing(asking: client.HttpClient) -> None:
        task = asyncio.ensure_future(body(asking))
        await asyncio.sleep(0)
        asking.close()
        with pytest.raises(client.TransportError):
            await task
        with pytest.raises(client.TransportError, match="closed"):
            await asking.request("GET", "/")

    with_server(silent, closing)


@pytest.mark.parametrize(("host", "text"), [("::1", "http://[::1]:80"), ("a.b", "http://a.b:80")])
def test_addresses(host: str, text: str) -> None:
    """As one writes them."""
    assert str(client.HttpEndpoint(host, 80)) == text


def test_an_error_that_is_kept_keeps_no_handshake() -> None:
    """A server that resets each connection: the error alone is left, without asyncio's frames."""

    async def reset(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def body(plain: client.HttpClient) -> None:
        where = client.HttpEndpoint(
            plain.endpoint.host, plain.endpoint.port, ssl.create_default_context()
        )
        with pytest.raises(client.TransportError) as caught:
            await client.HttpClient(where, SMALL).request("GET", "/")
        cause = caught.value.__cause__
        assert isinstance(cause, OSError)
        assert cause.__traceback__ is None

    assert with_server(reset, body) == 1


def test_a_connection_that_times_out_keeps_no_handshake() -> None:
    """A server that takes each connection and says nothing: the error has no context."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 10):
            pass
        writer.close()

    async def body(plain: client.HttpClient) -> None:
        where = client.HttpEndpoint(
            plain.endpoint.host, plain.endpoint.port, ssl.create_default_context()
        )
        hasty = client.ClientLimits(connect_seconds=0.05)
        with pytest.raises(client.TransportError, match="no connection within") as caught:
            await client.HttpClient(where, hasty).request("GET", "/")
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)

    assert with_server(silent, body) == 1
