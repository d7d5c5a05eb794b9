"""A feed on a Unix socket, in a loop of its own thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.http import limits
from koordlet.report import view
from koordlet.rpc import node_feed
from tests.kit import loops

#: One for the session.
loop = loops.loop


class Served:
    """A running feed."""

    def __init__(self, loop: loops.LoopThread, it: node_feed.AgentServer, path: Path) -> None:
        self.loop = loop
        self.server = it
        self.path = path

    def publish(self, now: view.ReportView) -> None:
        """Publish, in the loop."""
        self.loop.call(lambda: self.server.publish(now))

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until something is so, or the test fails."""
        end = time.monotonic() + 10
        while not self.loop.call(condition):
            assert time.monotonic() < end, "it never came to be"
            time.sleep(0.001)


Serve = Callable[..., Served]


@pytest.fixture
def serve(loop: loops.LoopThread, tmp_path: Path) -> Iterator[Serve]:
    """Start feeds; they are stopped, and nothing may have reached the loop."""
    running: list[node_feed.AgentServer] = []
    loop.complaints.clear()

    def start(path: Path | None = None, **bounds: Any) -> Served:
        where = path or tmp_path / "run" / "koordlet.sock"
        it = node_feed.AgentServer(where, "1.2.3", limits=limits.CallLimits(**bounds))
        loop.run(it.start())
        running.append(it)
        return Served(loop, it, where)

    yield start
    for served in running:
        loop.run(served.stop())
    assert loop.complaints == []
