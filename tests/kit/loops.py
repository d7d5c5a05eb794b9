"""An event loop in a thread of its own, so that a test may be a plain, blocking client.

Covers: running coroutines and calls in the loop, what the loop complained about, and a fixture,
which a ``conftest.py`` takes to have it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

PATIENCE = 20.0


class LoopThread:
    """A running loop; close it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        #: Exceptions that reached the loop: nothing a client does may cause one.
        self.complaints: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.complaints.append(context))
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def call(self, function: Callable[[], T]) -> T:
        """The result of a call made in the loop, after everything that was due before it."""

        async def called() -> T:
            return function()

        return self.run(called())

    def close(self) -> None:
        """Stop the loop."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()


@pytest.fixture(scope="session")
def loop() -> Iterator[LoopThread]:
    """One loop for the session: gRPC binds its poller to the first one that it sees."""
    running = LoopThread()
    yield running
    running.close()
