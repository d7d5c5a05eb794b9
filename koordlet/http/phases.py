"""Phases of a connection, and the interface of its server.

Covers: the names. Does not cover: going from one to the next (``connection``).
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Awaitable
from typing import Protocol

from koordlet.http import authorisation, limits, message, pace, routes

if typing.TYPE_CHECKING:
    from koordlet.http.connection import HttpConnection


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


class ConnectionOwner(Protocol):
    """Interface of the server for its connections."""

    limits: limits.ServerLimits
    routes: routes.Routes
    pace: pace.RequestPace

    def authorise(
        self, request: message.HttpRequest, peer: message.Peer
    ) -> authorisation.AccessVerdict | Awaitable[authorisation.AccessVerdict]:
        """Authorize a request."""

    def opened(self, client: HttpConnection) -> None:
        """Count it in."""

    def admitted(self, client: HttpConnection) -> bool:
        """True if there is a free slot for the connection's request."""

    def closed(self, client: HttpConnection) -> None:
        """Count it out."""

    def count(self, event: str) -> None:
        """Something happened that an operator may want to see."""

    def failed(self, where: str, error: BaseException) -> None:
        """An exception of ours."""
