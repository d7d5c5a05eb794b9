"""One connection: what clients get, and what hostile ones cost."""

from __future__ import annotations

import asyncio
import http.client
import resource
import socket

import pytest

from koordlet.http import authorisation, message
from tests.http import conftest

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
TWO_LENGTHS = (
    b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
)
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def anybody(_request: message.HttpRequest, _peer: message.Peer) -> authorisation.AccessVerdict:
    """Everything is allowed."""
    return authorisation.ALLOWED


def test_keep_alive(serve: conftest.Serve) -> None:
    """Several requests of an ordinary client use one connection."""
    served = serve()
    client = http.client.HTTPConnection(served.host, served.port, timeout=10)

    bodies = []
    for _ in range(3):
        client.request("GET", "/")
        bodies.append(client.getresponse().read())
        local = client.sock.getsockname() if client.sock else None
        assert local is not None
    client.close()

    assert bodies == [b"hello\n"] * 3
    assert served.server.counts["requests"] == 3


def test_pipelined_requests_are_all_answered_in_order(serve: conftest.Serve) -> None:
    """A thousand requests sent at once are answered one after the other."""
    served = serve()

    answers = served.ask(GET * 999 + LAST)

    assert answers.count(b"hello\n") == 1000


def test_pipelined_requests_leave_turns_to_others(serve: conftest.Serve) -> None:
    """While one client's many requests are answered, the loop does other work in between."""
    turns: list[int] = []
    served = serve(("GET", "/turn", lambda _: message.text(str(len(turns)))))

    async def spin() -> None:
        while len(turns) < 100_000 and served.server.counts.get("requests", 0) < 200:
            turns.append(1)
            await asyncio.sleep(0)

    spinning = asyncio.run_coroutine_threadsafe(spin(), served.loop.loop)
    request = GET.replace(b"/ ", b"/turn ")
    bodies = [part.partition(b"\r\n")[0] for part in served.ask(request * 200).split(b"\r\n\r\n")]
    spinning.result(10)

    seen = {int(body.split(b"HTTP")[0]) for body in bodies[1:]}
    assert len(seen) > 100


def test_head_has_the_headers_of_get_and_no_body(serve: conftest.Serve) -> None:
    """HEAD gives the length that GET would have."""
    status, headers, body = serve().get("/", method="HEAD")

    assert (status, headers["content-length"], body) == (200, "6", b"")


def test_half_closed_client_gets_its_answer(serve: conftest.Serve) -> None:
    """A client that has said all it has to say is still answered."""
    assert b"hello" in serve().ask(GET)


def test_http_1_0_without_host(serve: conftest.Serve) -> None:
    """The simplest of all requests is answered, and the connection closed."""
    assert serve().ask(b"GET / HTTP/1.0\r\n\r\n").endswith(b"hello\n")


def test_absolute_target(serve: conftest.Serve) -> None:
    """The host of an absolute target is the one that counts."""
    served = serve()

    good = served.ask(b"GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    bad = served.ask(b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert (conftest.parsed(good)[0], conftest.parsed(bad)[0]) == (200, 421)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"garbage\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /%ff?x=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /?" + b"a=1&" * 100 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 10_000 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 101 + b"\r\n", 431),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 400),
        (TWO_LENGTHS, 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: +3\r\n\r\nabc", 400),
    ],
)
def test_malformed_requests(serve: conftest.Serve, raw: bytes, status: int) -> None:
    """What is no request is refused with the right status, and the next client is served."""
    served = serve(authorise=anybody)

    answer = conftest.parsed(served.ask(raw))

    assert status == answer[0]
    assert b'"version"' in answer[2]
    assert served.get("/")[0] == 200


def test_smuggled_request_is_not_answered(serve: conftest.Serve) -> None:
    """With both a length and chunks there is one answer, and the connection ends."""
    assert serve(authorise=anybody).ask(TWO_LENGTHS + GET).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("size", [65_537, 512 << 10])
def test_body_too_large(serve: conftest.Serve, size: int) -> None:
    """A body over the bound is 413, also for a client that sends all of it before it reads."""
    served = serve(authorise=anybody)
    head = f"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"

    answer = served.ask(head.encode() + bytes(size))

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_endless_body_is_cut(serve: conftest.Serve) -> None:
    """A client that goes on sending after its refusal is cut after some bytes."""
    served = serve(authorise=anybody)
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"

    with served.connect() as client:
        client.sendall(head)
        with pytest.raises(ConnectionError):
            client.sendall(bytes(64 << 20))


def test_body_within_the_bound(serve: conftest.Serve) -> None:
    """A body at the bound arrives whole, with and without a question before."""
    served = serve(authorise=anybody)
    body = b"z" * 65_536
    client = http.client.HTTPConnection(served.host, served.port, timeout=10)

    client.request("POST", "/echo", body, {"Expect": "100-continue"})

    assert client.getresponse().read() == body
    client.close()


def test_refused_before_the_body(serve: conftest.Serve) -> None:
    """A client that may not is told so before it has sent its body."""
    served = serve()

    with served.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n")
        answer = client.recv(1 << 16)

    assert answer.startswith(b"HTTP/1.1 405 ")


def test_broken_handler(serve: conftest.Serve) -> None:
    """An endpoint that fails is 500 without details, and the connection goes on."""
    served = serve()
    raw = GET.replace(b"/ ", b"/broken ")

    answer = served.ask(raw + raw + LAST)

    assert (answer.count(b"HTTP/1.1 500 "), answer.count(b"HTTP/1.1 200 ")) == (2, 1)
    assert b"a bug" not in answer
    assert served.server.counts["failed"] == 2


@pytest.mark.parametrize("begun", [b"", b"GET /", GET[:-2]])
def test_silent_client_is_sent_away(serve: conftest.Serve, begun: bytes) -> None:
    """A request that does not come to its end is given up after some time."""
    served = serve(head_seconds=0.1)

    with served.connect() as client:
        client.sendall(begun)
        answer = conftest.read_all(client)

    assert answer.startswith(b"HTTP/1.1 408 ") if begun else answer == b""
    served.wait_for(lambda: served.open_connections() == 0)


def test_dripping_client_is_sent_away(serve: conftest.Serve) -> None:
    """Bytes that come one by one do not move the deadline."""
    served = serve(head_seconds=0.3)

    with served.connect() as client:
        client.settimeout(0.02)
        answer, sent = b"", 0
        while not answer and sent < 1000:
            client.sendall(b"G")
            sent += 1
            try:
                answer = client.recv(1 << 16)
            except TimeoutError:
                continue

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_idle_connection_is_closed(serve: conftest.Serve) -> None:
    """Between two requests a connection may idle for some time only."""
    served = serve(idle_seconds=0.1)

    with served.connect() as client:
        client.sendall(GET)
        answer = conftest.read_all(client)

    assert answer.endswith(b"hello\n")


def test_slow_body_is_given_up(serve: conftest.Serve) -> None:
    """A body that does not come is 408."""
    served = serve(authorise=anybody, body_seconds=0.1)

    with served.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc")
        answer = conftest.read_all(client)

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_client_that_never_reads(serve: conftest.Serve) -> None:
    """It is cut after some time; others are served meanwhile."""
    served = serve(write_seconds=1.0)

    with served.connect() as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        served.wait_for(lambda: served.server.counts.get("requests", 0) == 1)
        assert served.get("/")[0] == 200
        served.wait_for(lambda: served.open_connections() == 0)

    assert served.server.counts["timeouts"] == 1


def test_slow_readers_share_the_body(serve: conftest.Serve) -> None:
    """Ten clients that take a large body slowly do not hold ten copies of it."""
    served = serve()
    served.get("/")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    clients = [served.connect() for _ in range(10)]
    for client in clients:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for client in clients:
        client.recv(1000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    for client in clients:
        client.close()

    assert grown * 1024 < conftest.LARGE


def test_large_body_arrives(serve: conftest.Serve) -> None:
    """A body far beyond all buffers arrives whole."""
    assert len(serve().get("/large")[2]) == conftest.LARGE


def test_client_that_goes_while_it_is_answered(serve: conftest.Serve) -> None:
    """A connection that is reset in the middle of a response costs itself only."""
    served = serve()

    for _ in range(20):
        client = served.connect()
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(100)
        linger = b"\x01\0\0\0\0\0\0\0"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.close()

    served.wait_for(lambda: served.open_connections() == 0)
    assert served.get("/")[0] == 200


def test_authorisation_that_takes_its_time(serve: conftest.Serve) -> None:
    """A verdict may come later; the request then goes on as if it had come at once."""

    async def later(
        request: message.HttpRequest, _peer: message.Peer
    ) -> authorisation.AccessVerdict:
        await asyncio.sleep(0)
        if request.path == "/":
            return authorisation.ALLOWED
        return authorisation.AccessVerdict(message.error(401, "unauthenticated", "who are you?"))

    served = serve(authorise=later)

    answer = served.ask(GET + GET.replace(b"/ ", b"/document "))

    assert (answer.count(b"hello\n"), answer.count(b"HTTP/1.1 401 ")) == (1, 1)


def test_authorisation_that_never_ends(serve: conftest.Serve) -> None:
    """Whoever is to decide and does not, costs that request: 503."""

    async def never(
        _request: message.HttpRequest, _peer: message.Peer
    ) -> authorisation.AccessVerdict:
        await asyncio.Event().wait()
        return authorisation.ALLOWED

    assert serve(authorise=never, authorise_seconds=0.1).get("/")[0] == 503


@pytest.mark.parametrize("deferred", [False, True])
def test_authorisation_that_fails(serve: conftest.Serve, deferred: bool) -> None:
    """An exception in the seam never lets a request through."""

    def broken(_request: message.HttpRequest, _peer: message.Peer) -> authorisation.AccessVerdict:
        msg = "a bug"
        raise RuntimeError(msg)

    async def broken_later(
        request: message.HttpRequest, peer: message.Peer
    ) -> authorisation.AccessVerdict:
        return broken(request, peer)

    served = serve(authorise=broken_later if deferred else broken)

    assert b"hello" not in served.ask(GET)
    assert served.server.counts["failed"] == 1
