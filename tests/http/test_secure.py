"""HTTP over TLS: handshakes are bounded, certificates are replaced, the rest is as in the clear."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.http import authorisation, certificates, limits, message, routes, server
from koordlet.model import errors
from tests.http import conftest
from tests.kit import loops
from tests.kit.apiserver import pki

_LARGE = message.HttpResponse(200, {"content-type": "text/plain"}, b"x" * (1 << 20))


class Hall:
    """An authority, the server's files, and a server."""

    def __init__(self, loop: loops.LoopThread, folder: Path) -> None:
        self.loop = loop
        self.folder = folder
        self.authority = pki.Authority(folder)
        self.certificate, self.key = self.authority.sign("server")
        self.tls = certificates.context(self.certificate, self.key)
        self.client = ssl.create_default_context(cafile=self.authority.certificate)
        self.running: list[server.HttpServer] = []

    def serve(self, **bounds: Any) -> conftest.Served:
        """Listen."""
        table = routes.Routes([*conftest.STANDARD, ("GET", "/text", lambda _: _LARGE)])
        chosen = limits.ServerLimits(**bounds)
        it = server.HttpServer(
            "127.0.0.1:0",
            table,
            authorisation.local_readers,
            limits=chosen,
            tls=self.tls,
        )
        self.running.append(it)
        return conftest.Served(self.loop, it, self.loop.run(it.start()))

    def get(self, served: conftest.Served, path: str = "/document") -> tuple[int, int, str]:
        """Status, bytes, and the serial number of the certificate."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", served.port, context=self.client, timeout=10
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            assert isinstance(connection.sock, ssl.SSLSocket)
            serial = dict(connection.sock.getpeercert() or {})["serialNumber"]
            return answer.status, len(answer.read()), str(serial)
        finally:
            connection.close()


@pytest.fixture
def hall(loop: loops.LoopThread, ram: Path) -> Iterator[Hall]:
    """Everything; nothing may have reached the loop."""
    loop.complaints.clear()
    made = Hall(loop, ram)
    yield made
    for running in made.running:
        loop.run(running.stop())
    assert loop.complaints == []


def test_a_verified_client_is_answered(hall: Hall) -> None:
    """Small and large answers, over one connection and over several."""
    served = hall.serve()

    assert hall.get(served, "/text")[:2] == (200, 1 << 20)
    assert hall.get(served)[0] == 200
    assert hall.get(served, "/nothing")[0] == 404


def test_a_body_of_several_records_arrives_whole(loop: loops.LoopThread, hall: Hall) -> None:
    """Records that are read in one go lie one behind the other; sent at once, they mostly are."""
    echo = ("POST", "/echo", lambda request: message.HttpResponse(200, body=request.body))
    serving = server.HttpServer(
        "127.0.0.1:0",
        routes.Routes([echo]),
        lambda _request, _peer: authorisation.ALLOWED,
        tls=hall.tls,
    )
    hall.running.append(serving)
    connection = http.client.HTTPSConnection(
        loop.run(serving.start()), context=hall.client, timeout=10
    )
    try:
        for turn in range(20):
            body = bytes([turn + 1]) * 40_000
            connection.request("POST", "/echo", body)
            assert connection.getresponse().read() == body
    finally:
        connection.close()


def test_a_rotated_certificate_is_shown(hall: Hall) -> None:
    """New files serve the next handshake; half a rotation leaves the old pair in force."""
    served = hall.serve()
    before = hall.get(served)[2]
    kept, key = hall.certificate.read_bytes(), hall.key.read_bytes()
    hall.authority.sign("server")
    fresh = hall.certificate.read_bytes()
    hall.key.write_bytes(key)

    assert before == hall.get(served)[2], "the certificate of another key"
    hall.certificate.unlink()
    assert before == hall.get(served)[2], "no file"
    hall.certificate.write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA")
    assert before == hall.get(served)[2], "half a file"
    hall.authority.sign("server")
    after = hall.get(served)[2]
    assert before != after
    assert kept != fresh


def test_a_client_in_the_clear(hall: Hall) -> None:
    """It gets nothing and costs nothing; TLS 1.2 is the oldest that is spoken."""
    served = hall.serve()
    answer = served.ask(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert b"200" not in answer
    assert ssl.TLSVersion.TLSv1_2 == hall.tls.minimum_version
    assert hall.get(served)[0] == 200


def test_handshakes_are_bounded(hall: Hall) -> None:
    """Clients that never shake hands: a few are waited for, a newcomer has the oldest's place."""
    served = hall.serve(handshakes=4, handshake_seconds=60)
    silent = [served.connect() for _ in range(30)]
    try:
        served.wait_for(lambda: served.server.counts.get("displaced", 0) >= 26)
        assert len(served.server._handshakes) <= 4
        assert hall.get(served)[0] == 200
        assert _rest(silent[0]) == b""
    finally:
        for client in silent:
            client.close()


def test_a_handshake_takes_its_time_at_most(hall: Hall) -> None:
    """Who never shakes hands is sent away."""
    served = hall.serve(handshake_seconds=0.2)
    with served.connect() as silent:
        assert _rest(silent) == b""
    served.wait_for(lambda: not served.server._handshakes)


def _rest(client: socket.socket) -> bytes:
    try:
        return client.recv(1)
    except ConnectionError:
        return b""


def test_a_stop_ends_handshakes(hall: Hall) -> None:
    """A client in the middle of one does not keep the server."""
    served = hall.serve(handshake_seconds=60)
    with served.connect() as silent:
        served.wait_for(lambda: len(served.server._handshakes) == 1)
        hall.loop.run(served.server.stop())
        assert _rest(silent) == b""


def test_files_that_are_no_pair(hall: Hall, ram: Path) -> None:
    """At the start it is an error that names them."""
    _, other = hall.authority.sign("other")

    for certificate, key in ((hall.certificate, other), (hall.certificate, ram / "none")):
        with pytest.raises(errors.HostError, match="cannot load the certificate") as caught:
            certificates.context(certificate, key)
        assert str(key) in caught.value.culprit
