"""Who may ask, as values."""

from __future__ import annotations

import pytest

from koordlet.http import authorisation, message
from tests.http import conftest

LOCAL = authorisation.peer(("127.0.0.1", 1), secure=False)


def asked(method: str = "GET", host: str = "localhost") -> message.HttpRequest:
    """A request for the root."""
    return message.HttpRequest(method=method, path="/", headers={"host": host})


@pytest.mark.parametrize(
    ("name", "loopback"),
    [
        (("127.0.0.1", 1), True),
        (("127.8.9.1", 1), True),
        (("::1", 1, 0, 0), True),
        (("::ffff:127.0.0.1", 1, 0, 0), True),
        (("fe80::1%eth0", 1, 0, 2), False),
        (("10.0.0.1", 1), False),
        (("::ffff:10.0.0.1", 1, 0, 0), False),
        ("", False),
        (None, False),
    ],
)
def test_peer_is_local(name: object, loopback: bool) -> None:
    """Loopback is loopback in every spelling; a peer without a name is a stranger."""
    assert authorisation.peer(name, secure=False).loopback is loopback


def test_strangers_get_nothing() -> None:
    """A peer from elsewhere is refused, whatever it asks."""
    stranger = authorisation.peer(("10.0.0.1", 1), secure=False)

    refusal = authorisation.local_readers(asked(), stranger).refusal

    assert refusal is not None
    assert refusal.status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"])
def test_local_peers_only_read(method: str) -> None:
    """What could change something is 405, with what is allowed."""
    refusal = authorisation.local_readers(asked(method), LOCAL).refusal

    assert refusal is not None
    assert (refusal.status, refusal.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:9316", "a.localhost", "localhost.", "127.0.0.1:9316", "[::1]:9316",
     "[::1]", "10.1.2.3", "127.0.0.1:"],
)  # fmt: skip
def test_local_names(host: str) -> None:
    """IP addresses and loopback names cannot be pointed here by somebody else."""
    assert authorisation.is_local_name(host)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil.example:9316", "127.0.0.1.evil.example", "",
     "localhost@evil.example", "evil-localhost", "[::1", "::1", "127.0.0.1:9316:1", "0x7f000001",
     "127.0.0.1, evil.example", "[evil.example]"],
)  # fmt: skip
def test_foreign_names(host: str) -> None:
    """Any other name may be a web page's."""
    assert not authorisation.is_local_name(host)


def test_rebound_name_is_refused(serve: conftest.Serve) -> None:
    """A page that points its own name at loopback reads nothing, not even that it is an agent."""
    status, _, body = conftest.parsed(serve().ask(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"))

    assert status == 421
    assert b"hello" not in body


def test_refusal_is_the_policys(serve: conftest.Serve) -> None:
    """Every request passes the seam before its handler; what it says is what is answered."""
    seen = []

    def nobody(request: message.HttpRequest, peer: message.Peer) -> authorisation.AccessVerdict:
        seen.append((request.path, peer.loopback))
        return authorisation.AccessVerdict(message.error(401, "unauthenticated", "who are you?"))

    served = serve(authorise=nobody)

    assert [served.get("/")[0], served.get("/nothing")[0]] == [401, 401]
    assert seen == [("/", True), ("/nothing", True)]
