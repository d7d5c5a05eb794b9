"""Clients that flood, send garbage, never read or hold 10 000 connections: they cost themselves.

Covers: others are served, memory and descriptors are bounded. Does not cover: how late the loop
gets, which is measured (``tests.bench.crowd``).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.rpc import client
from tests.kit import rogues, views
from tests.rpc import conftest

EVENTS = 30
#: Of 10 000 connections, or of what 200 deaf watchers are sent.
MOST_BYTES = 150 << 20


def resident() -> int:
    """Bytes of this process, which is the server's."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("kind", sorted(rogues.KINDS))
def test_a_rogue_costs_itself(serve: conftest.Serve, kind: str) -> None:
    """A watcher gets every event, a newcomer an answer; memory and descriptors stay bounded."""
    served = serve()
    pods = views.pods(50)
    most = int(resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 0.25)
    served.publish(views.view(pods))
    with client.RpcClient(served.path) as user:
        watch = user.watch_node(timeout=120)
        next(watch)
        events = (event for event in watch if event.WhichOneof("event") == "delta")
        before = resident()
        with rogues.at_work(served.path, kind):
            if kind == "deaf":
                served.wait_for(lambda: served.server.feed.watchers > 100)
            for number in range(EVENTS):
                served.publish(views.view(pods, usage={pods[0].key: 1.0 + number}))
                assert next(events).revision == number + 2
            grown = resident() - before
            taken = len(list(Path("/proc/self/fd").iterdir()))
        assert user.get_node().summary.name == "n1"
    assert grown < MOST_BYTES
    assert taken < most + 200


@pytest.mark.parametrize("module", ["access", "node_feed", "client", "reservations", "reporting"])
def test_the_core_is_loaded_as_we_want_it(module: str) -> None:
    """Whichever module of the room comes first, the C core is silent, its listener the older one.

    It would quote to our standard error what a client sent that speaks no HTTP/2; and its newer
    listener wakes five threads for a message.
    """
    asked = "os.environ['GRPC_VERBOSITY'], os.environ['GRPC_EXPERIMENTS']"
    script = f"from koordlet.rpc import {module}; import os; print({asked})"
    ours = {"GRPC_VERBOSITY", "GRPC_EXPERIMENTS"}
    clean = {key: text for key, text in os.environ.items() if key not in ours}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=clean
    )

    assert done.stdout == "NONE -event_engine_listener\n"
