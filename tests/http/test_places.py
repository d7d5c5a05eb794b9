"""Who keeps a place: real sockets against a server that has few of them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from koordlet.http import message
from tests.http import conftest

ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: loc"
BODILESS = b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
UNREAD = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
PROBES = [
    ("GET", path, lambda _: message.text("ok\n")) for path in ("/livez", "/readyz", "/healthz")
]


@contextlib.contextmanager
def crowd(served: conftest.Served, size: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """So many clients that say this and nothing more."""
    several = []
    with contextlib.ExitStack() as stack:
        for _ in range(size):
            several.append(stack.enter_context(served.connect()))
            with contextlib.suppress(ConnectionError):
                several[-1].sendall(sent)
        yield several


def answered(client: socket.socket) -> bool:
    """Whether it gets an answer now."""
    with contextlib.suppress(ConnectionError):
        client.sendall(ASK)
        return client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    return False


@pytest.mark.parametrize("sent", [b"", HALF, BODILESS, UNREAD], ids=["", "half", "body", "unread"])
def test_probes_are_answered_during_an_attack(serve: conftest.Serve, sent: bytes) -> None:
    """Two hundred clients that say nothing, half a request, no body, or never read cost nothing."""
    served = serve(*PROBES)

    with crowd(served, 200, sent):
        answers = [served.get(path)[0] for path in ("/livez", "/readyz", "/healthz") * 20]

    assert set(answers) == {200}


@pytest.mark.parametrize("sent", [b"", HALF, BODILESS], ids=["", "half", "body"])
def test_whole_requests_are_answered_during_an_attack(serve: conftest.Serve, sent: bytes) -> None:
    """Who has not sent a whole request gives its place to one that has."""
    served = serve()

    with crowd(served, 200, sent):
        answers = [served.get("/")[0] for _ in range(20)]

    assert set(answers) == {200}


def test_the_oldest_without_a_whole_head_goes_first(serve: conftest.Serve) -> None:
    """Of those that have sent half a head the oldest goes, whatever it drips; the newest stays."""
    served = serve(heads=2, connections=2, probes=1)
    with crowd(served, 5, HALF) as (oldest, *others):
        served.wait_for(lambda: served.open_connections() == 5)
        oldest.sendall(b"al")

        with served.connect():
            assert conftest.read_all(oldest) == b""
            others[-1].sendall(b"alhost\r\n\r\n")
            assert others[-1].recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_a_whole_request_keeps_its_place(serve: conftest.Serve) -> None:
    """An answer that is being taken outlives a flood of half requests."""
    served = serve()
    with served.connect() as reader:
        reader.sendall(UNREAD)
        taken = len(reader.recv(1000))

        with crowd(served, 200, HALF):
            served.wait_for(lambda: served.server.counts.get("displaced", 0) > 0)
            taken += len(conftest.read_all_of(reader, conftest.LARGE - taken))

    assert taken >= conftest.LARGE


def test_who_takes_nothing_goes_for_a_whole_request(serve: conftest.Serve) -> None:
    """A client that has taken nothing of its answer for a while gives its place to a newcomer."""
    served = serve(connections=2, stall_seconds=0.0)
    with crowd(served, 2, UNREAD):
        served.wait_for(lambda: served.stalled() == 2)

        assert served.get("/")[0] == 200


def test_places_that_are_all_at_work_are_said(serve: conftest.Serve) -> None:
    """Where whole requests hold every place the next one is told so, and a probe is answered."""
    served = serve(*PROBES, connections=2, stall_seconds=60.0)
    with crowd(served, 2, UNREAD):
        served.wait_for(lambda: served.stalled() == 2)

        assert served.get("/")[0] == 429
        assert served.get("/healthz")[0] == 200
    served.wait_for(lambda: served.open_connections() == 0)
    assert served.get("/")[0] == 200
    assert served.server.counts["busy"] == 1


def test_probes_do_not_take_the_places_of_others(serve: conftest.Serve) -> None:
    """Probes whose bodies never come hold the places of probes alone, and the oldest goes."""
    served = serve(*PROBES, connections=2, probes=2)
    with crowd(served, 50, BODILESS.replace(b"/ ", b"/livez ", 1)):
        assert served.get("/")[0] == 200
        assert served.get("/livez")[0] == 200
        assert served.open_connections() <= 2 + 2 + served.server.limits.heads


def test_an_idle_connection_makes_room(serve: conftest.Serve) -> None:
    """Connections between two requests wait for a head, too: the longest idle goes."""
    served = serve(heads=1, connections=1, probes=1)
    with crowd(served, 3, ASK) as (first, _, third):
        for client in (first, third):
            assert client.recv(1 << 16).endswith(b"hello\n")

        with served.connect():
            assert conftest.read_all(first) == b""
            assert answered(third)
