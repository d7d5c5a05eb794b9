"""Connection slots: which clients stay connected when there are more clients than slots.

Covers: phases of a connection, the connections of one server, whose turn it is to go.
Does not cover: what a connection does (``connection``), handshakes (``server``).

Rules:
1. A newcomer is never asked to wait: it gets a place, and is read. Beyond the bound go those that
   have been answered, then those that have not sent a whole head (between two requests, too), the
   oldest first. They go after a turn of the loop: who came last has been read by then, so what a
   client sent with its connection counts, however many others came with it.
2. A whole head takes one of ``connections`` places. Where they are taken, who has not sent its
   whole body gives way, the oldest first, then who has taken nothing of its answer for
   ``stall_seconds``. A whole request keeps its place otherwise, and the newcomer is told so.
3. Probes (``routes.PROBES``) have places of their own, by the same rule.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

from koordlet.http import authorisation, message, pace, routes
from koordlet.http import limits as bounds


class ConnectionPhase(enum.Enum):
    """Phase of a connection: the event it waits for."""

    #: The first byte of a request.
    IDLE = "idle"
    HEAD = "head"
    AUTHORISE = "authorise"
    BODY = "body"
    #: The client to take the response.
    WRITE = "write"
    #: Events, which go on until one side has enough.
    STREAM = "stream"
    #: The client to see a refusal.
    LINGER = "linger"
    #: What was sent to be taken.
    CLOSING = "closing"
    CLOSED = "closed"


_ANSWERED = frozenset({ConnectionPhase.LINGER, ConnectionPhase.CLOSING})
_HEADLESS = frozenset({ConnectionPhase.IDLE, ConnectionPhase.HEAD})


class Seat(Protocol):
    """Interface of a connection that holds a slot."""

    phase: ConnectionPhase
    #: Loop time at which it began to wait for a head, or for what comes after it.
    since: float
    #: Loop time since which its client takes nothing; ``None`` while it takes what it is sent.
    stalled_since: float | None
    #: Whether its request is a probe.
    probe: bool

    def close(self) -> None:
        """Go when nothing is being sent."""

    def abort(self) -> None:
        """Go now."""


class ConnectionOwner(Protocol):
    """Interface of the server for its connections."""

    limits: bounds.ServerLimits
    routes: routes.Routes
    pace: pace.RequestPace

    def authorise(
        self, request: message.HttpRequest, peer: message.Peer
    ) -> authorisation.AccessVerdict | Awaitable[authorisation.AccessVerdict]:
        """Authorize a request."""

    def opened(self, client: Seat) -> None:
        """Count it in."""

    def admitted(self, client: Seat) -> bool:
        """True if there is a free slot for the connection's request."""

    def closed(self, client: Seat) -> None:
        """Count it out."""

    def count(self, event: str) -> None:
        """Something happened that an operator may want to see."""

    def failed(self, where: str, error: BaseException) -> None:
        """An exception of ours."""


class ConnectionSlots:
    """The connections of one server."""

    def __init__(
        self, limits: bounds.ServerLimits, displaced: Callable[[], None] = lambda: None
    ) -> None:
        self._limits = limits
        self._displaced = displaced
        self._seats: set[Seat] = set()
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._seats)

    def __iter__(self) -> Iterator[Seat]:
        return iter(tuple(self._seats))

    def enter(self, seat: Seat) -> None:
        """Add a connection."""
        self._seats.add(seat)
        if self._excess > 0 and self._looking is None:
            # A timer that is due runs after what the sockets brought; ``call_soon`` runs before.
            self._looking = asyncio.get_running_loop().call_later(0, self._make_room)

    def leave(self, seat: Seat) -> None:
        """Remove a connection."""
        self._seats.discard(seat)

    def admit(self, seat: Seat, now: float) -> bool:
        """True if a request with a complete head may be answered; rule 2."""
        most = self._limits.probes if seat.probe else self._limits.connections
        if len(self._seats) <= most:
            return True
        rivals = [
            each
            for each in self._seats
            if each is not seat
            and each.probe is seat.probe
            and each.phase not in _ANSWERED | _HEADLESS
        ]
        if len(rivals) < most:
            return True
        weakest = min(rivals, key=self._strength)
        bodiless, since = self._strength(weakest)
        if bodiless and now - since < self._limits.stall_seconds:
            return False
        self._displace(weakest)
        return True

    @property
    def _excess(self) -> int:
        limits = self._limits
        return len(self._seats) - (limits.connections + limits.heads + limits.probes)

    def _make_room(self) -> None:
        self._looking = None
        if self._excess <= 0:
            return
        weakest = sorted(
            (each for each in self._seats if each.phase in _ANSWERED | _HEADLESS),
            key=lambda each: (each.phase in _HEADLESS, each.since),
        )
        for each in weakest[: self._excess]:
            self._displace(each)

    @staticmethod
    def _strength(seat: Seat) -> tuple[bool, float]:
        """The least goes first: no whole body, then nothing taken for the longest time."""
        if seat.phase is ConnectionPhase.BODY:
            return False, seat.since
        return True, float("inf") if seat.stalled_since is None else seat.stalled_since

    def _displace(self, seat: Seat) -> None:
        self._seats.discard(seat)
        self._displaced()
        seat.abort()
