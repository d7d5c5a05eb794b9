"""Pacing: when a client may send its next request, within a share of the loop.

Covers: the work that requests may cost together, whose turn it is. Does not cover: how many
connections there are (``places``), clients that are not let in yet (``listener``).

Rules:
1. What requests cost is paid from a credit, which grows by a share of time up to a burst: the first
   one of each connection from that of newcomers or of probes, all others from one of their own.
   Whoever asks now and then never meets its end.
2. Without credit, clients wait for their turn, each of them for one request, first come first
   served: one that asks without end costs the others one request of its own for each of theirs.
3. A connection that waits is not read: its client waits, and nothing is refused. It has the place
   of one that asks for nothing, which a newcomer may take.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Protocol


class PacedClient(Protocol):
    """A client that waits for its turn."""

    def again(self) -> None:
        """Read the next request, not at once: in a turn of the loop of its own."""


class RequestPace:
    """A credit of one server."""

    def __init__(
        self,
        share: float,
        burst: float,
        delayed: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        """``later``: calls back after so many seconds; the loop's where none is given."""
        self._share = share
        self._burst = self._credit = burst
        self._delayed = delayed
        self._clock = clock
        self._later = later
        self._at = clock()
        #: In order.
        self._waiting: dict[PacedClient, None] = {}
        self._called = False

    def __len__(self) -> int:
        return len(self._waiting)

    def turn(self, client: PacedClient) -> None:
        """Schedule the next turn of an answered connection: at once if there is credit."""
        self._waiting[client] = None
        self._grant()
        if client in self._waiting:
            self._delayed()

    def leave(self, client: PacedClient) -> None:
        """Drop a connection."""
        self._waiting.pop(client, None)

    def spend(self, seconds: float) -> None:
        """A request has cost so much of the loop."""
        self._credit -= seconds

    @contextlib.contextmanager
    def paid(self) -> Iterator[None]:
        """Work for a request, which pays for it."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.spend(time.thread_time() - began)

    def _grant(self) -> None:
        now = self._clock()
        self._credit = min(self._burst, self._credit + (now - self._at) * self._share)
        self._at = now
        while self._waiting and self._credit > 0:
            client = next(iter(self._waiting))
            del self._waiting[client]
            client.again()
        if self._waiting and not self._called:
            self._called = True
            later = self._later or asyncio.get_running_loop().call_later
            later(-self._credit / self._share, self._again)

    def _again(self) -> None:
        self._called = False
        self._grant()
