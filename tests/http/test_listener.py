"""Clients that open a connection for each request: bounded, and probes are answered beside them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from koordlet.http import message
from tests.http import conftest

PROBES = [("GET", path, lambda _: message.text("ok\n")) for path in ("/livez", "/readyz")]
#: Small ones: what the server gets on a busy machine is more than that.
BOUNDS = {
    "newcomer_share": 0.05,
    "probe_share": 0.05,
    "accept_share": 0.05,
    "newcomer_burst_seconds": 0.05,
    "probe_burst_seconds": 0.05,
}
#: All three, and as much for what nobody can measure.
SHARE = 0.3
SECONDS = 3.0
#: Connects, asks and leaves as fast as it can, with or without taking the answer; says how often.
HOSTILE = """
import socket, struct, sys, threading
host, port, path, reads = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "reads"
ask = f"GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n".encode()
done = [0]
def attack():
    while True:
        with socket.socket() as one:
            one.settimeout(5)
            if not reads:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            try:
                one.connect((host, port))
                one.sendall(ask)
                if reads:
                    one.recv(4096)
            except OSError:
                pass
            done[0] += 1
for _ in range(int(sys.argv[5])):
    threading.Thread(target=attack, daemon=True).start()
sys.stdin.read()
print(done[0], flush=True)
"""


@pytest.fixture
def attacked(
    serve: conftest.Serve, request: pytest.FixtureRequest
) -> Iterator[tuple[conftest.Served, list[subprocess.Popen[str]]]]:
    """A server under attack by two processes, which end with the test."""
    served = serve(*PROBES, **BOUNDS)
    path, manner = request.param
    words = [sys.executable, "-c", HOSTILE, served.host, str(served.port), path, manner, "8"]
    clients = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        yield served, clients
    finally:
        for client in clients:
            with client:
                client.kill()


@pytest.mark.parametrize(
    "attacked",
    [("/", "leaves"), ("/", "reads"), ("/livez", "reads"), ("/nothing", "leaves")],
    indirect=True,
    ids=["leaves", "reads", "probes", "missing"],
)
def test_one_connection_for_each_request_costs_a_share(
    attacked: tuple[conftest.Served, list[subprocess.Popen[str]]],
) -> None:
    """Whatever is asked and however: the loop's processor time stays bounded, /livez answers."""
    served, clients = attacked
    served.wait_for(lambda: served.server.counts.get("queued", 0) > 20)
    began, spent = time.monotonic(), served.loop.call(time.thread_time)
    answers = []
    while time.monotonic() - began < SECONDS:
        answers.append(served.get("/livez")[0])
    share = (served.loop.call(time.thread_time) - spent) / (time.monotonic() - began)
    attacks = sum(int(client.communicate(timeout=10)[0]) for client in clients)

    assert set(answers) == {200}
    assert share < SHARE
    assert attacks > 100


def test_a_probe_that_is_slow_to_ask_keeps_its_place(serve: conftest.Serve) -> None:
    """Beyond the bound those go that have asked for something else, not who is still silent."""
    waiting = 4
    no_credit = {"newcomer_share": 1e-9, "newcomer_burst_seconds": 1e-9}
    served = serve(*PROBES, **{**BOUNDS, **no_credit}, waiting=waiting)
    served.get("/nothing")
    ask = b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with contextlib.ExitStack() as clients:
        silent = clients.enter_context(served.connect())
        for _ in range(2 * waiting):
            clients.enter_context(served.connect()).sendall(ask % b"/")
        served.wait_for(lambda: served.server.counts.get("displaced", 0) >= waiting)

        silent.sendall(ask % b"/livez")

        assert conftest.parsed(conftest.read_all(silent))[0] == 200
