"""Requests and responses as values, and a response as the bytes to send.

Covers: what a handler gets and gives, JSON and error bodies, conditional requests; 304, gzip,
length and common headers, which are the same for all endpoints; channels of states.
Does not cover: sending it (``connection``).

Rules:
1. An event of a channel is a whole state: a slow listener misses some and gets the newest.
2. The number of listeners is bounded; nothing is rendered while there are none.
"""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import http
import json
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Protocol

from koordlet.model.record import dataclass

MAX_QUERY_FIELDS = 32

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Identity of the client."""

    host: str
    port: int
    loopback: bool
    #: True on TLS.
    secure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request. Header names are in lower case; repeated headers are joined with a comma."""

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def one(self, name: str) -> str | None:
        """The last value of a query field."""
        values = self.query.get(name)
        return values[-1] if values else None

    def prefers(self, *offers: str) -> str:
        """The first offer of the best quality that ``Accept`` allows; the first one for none."""
        ranges = _accepted(self.headers.get("accept", ""))
        return max(offers, key=lambda offer: _quality(offer, ranges))


class HttpResponse:
    """One response. The same object may be sent many times: it is packed once."""

    __slots__ = ("_packed", "body", "headers", "status")

    def __init__(
        self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {} if headers is None else headers
        self.body = body
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """The body, compressed; made on first use and kept."""
        if self._packed is None:
            self._packed = gzip.compress(self.body, compresslevel=1, mtime=0)
        return self._packed


class EventStream(HttpResponse):
    """A response without end: what is published from now on, as server-sent events."""

    __slots__ = ("channel",)

    def __init__(self, channel: Channel) -> None:
        super().__init__(200, {"content-type": EVENTS, "cache-control": "no-store"})
        self.channel = channel


def text(body: str, *, status: int = 200, kind: str = TEXT) -> HttpResponse:
    """A text response; bytes of a name that are no text are written out."""
    return HttpResponse(status, {"content-type": kind}, body.encode(errors="backslashreplace"))


def document(content: Mapping[str, object], *, status: int = 200) -> HttpResponse:
    """A JSON response with an entity tag of its content."""
    body = json.dumps(content, separators=(",", ":")).encode() + b"\n"
    tag = hashlib.blake2b(body, digest_size=12, usedforsecurity=False).hexdigest()
    return HttpResponse(status, {"content-type": JSON, "etag": f'W/"{tag}"'}, body)


def error(
    status: int,
    code: str,
    problem: str,
    *,
    culprit: str = "",
    fix: str = "",
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """An error in the contract's form."""
    inner = {"code": code, "message": problem, "culprit": culprit, "fix": fix}
    body = json.dumps({"version": "v1", "error": inner}).encode() + b"\n"
    return HttpResponse(status, {"content-type": JSON, **(headers or {})}, body)


def parse(
    method: bytes, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes = b""
) -> HttpRequest:
    """A request from what came over the wire; ``ValueError`` where it makes no sense.

    A target with a host (``http://host/path``) replaces the ``Host`` header, as RFC 9112 3.2.2
    demands. Paths are compared as they are: no route needs an escape.
    """
    merged: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
        merged[name] = f"{merged[name]}, {value}" if name in merged else value
    if "content-length" in merged and "transfer-encoding" in merged:
        # A proxy before us may have taken the other one, and what follows for another request.
        raise ValueError("the request has both Content-Length and Transfer-Encoding")
    where = target.decode("ascii")
    if not where.startswith("/") and where != "*":
        parts = urllib.parse.urlsplit(where)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ValueError("the request target is neither a path nor an http URL")
        merged["host"] = parts.netloc
        where = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    path, _, query = where.partition("?")
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in urllib.parse.parse_qsl(
        query, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS, errors="strict"
    ):
        fields[name] = (*fields.get(name, ()), value)
    return HttpRequest(
        method=method.decode("ascii"), path=path, query=fields, headers=merged, body=body
    )


def same_tag(request: HttpRequest, response: HttpResponse) -> bool:
    """True if the client already has this response (weak comparison, RFC 9110 13.1.2)."""
    tag = response.headers.get("etag")
    known = request.headers.get("if-none-match")
    if tag is None or known is None or response.status != 200:
        return False
    tags = [candidate.strip().removeprefix("W/") for candidate in known.split(",")]
    return "*" in tags or tag.removeprefix("W/") in tags


def takes_gzip(request: HttpRequest) -> bool:
    """True if ``Accept-Encoding`` allows gzip."""
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, rest = part.partition(";")
        if name.strip() in {"gzip", "*"}:
            return _weight(rest) > 0
    return False


def _accepted(header: str) -> list[tuple[str, float]]:
    ranges = []
    for part in header.split(",")[:MAX_QUERY_FIELDS]:
        kind, _, rest = part.partition(";")
        if kind.strip():
            ranges.append((kind.strip().lower(), _weight(rest)))
    return ranges


def _quality(offer: str, ranges: list[tuple[str, float]]) -> float:
    """The most exact range that covers the offer decides."""
    for wanted in (offer, offer.partition("/")[0] + "/*", "*/*"):
        for kind, weight in ranges:
            if kind == wanted:
                return weight
    return 0.0


def _weight(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return max(0.0, min(1.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


# Channels -----------------------------------------------------------------------------------------


class ChannelListener(Protocol):
    """One that wants every event, or the newest."""

    def event(self, data: bytes) -> None:
        """There is a newer one."""


class Channel:
    """One stream of states."""

    def __init__(self, newest: Callable[[], bytes], most: int = 16) -> None:
        self._newest = newest
        self._most = most
        self._listeners: set[ChannelListener] = set()

    @property
    def full(self) -> bool:
        """True if the limit of listeners is reached."""
        return len(self._listeners) >= self._most

    @property
    def listeners(self) -> int:
        """Number of listeners."""
        return len(self._listeners)

    def listen(self, channel_listener: ChannelListener) -> None:
        """Add a listener, which receives the newest state at once."""
        self._listeners.add(channel_listener)
        channel_listener.event(self._newest())

    def leave(self, channel_listener: ChannelListener) -> None:
        """No more."""
        self._listeners.discard(channel_listener)

    def publish(self) -> None:
        """There is a new state: made once, handed to all."""
        if not self._listeners:
            return
        data = self._newest()
        for listener in tuple(self._listeners):
            listener.event(data)


# Bytes --------------------------------------------------------------------------------------------


#: Smaller bodies fit one packet anyway; larger ones would hold the loop for too long.
PACK_FROM = 1 << 10
PACK_TO = 4 << 20

REASONS = {int(status): status.phrase for status in http.HTTPStatus}

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_ALWAYS = (
    ("server", "koordlet"),
    ("x-content-type-options", "nosniff"),
    ("vary", "accept, accept-encoding"),
)

Headers = list[tuple[str, str]]


def finish(
    request: HttpRequest | None, response: HttpResponse, *, now: float
) -> tuple[int, Headers, bytes]:
    """Status, headers and the bytes to send. ``request`` is ``None`` where it was not understood.

    A length is given for HEAD and 304, too, as if there were a body; the bytes are then empty.
    """
    headers: Headers = [("date", date(now)), *_ALWAYS, *response.headers.items()]
    if "cache-control" not in response.headers:
        headers.append(("cache-control", "no-cache"))
    if request is None:
        headers.append(("content-length", str(len(response.body))))
        return response.status, headers, response.body
    if same_tag(request, response):
        return 304, [pair for pair in headers if pair[0] != "content-type"], b""
    if isinstance(response, EventStream):
        # No length: it ends when the connection does.
        return response.status, headers, b""
    body = response.body
    if PACK_FROM <= len(body) <= PACK_TO and takes_gzip(request):
        body = response.packed()
        headers.append(("content-encoding", "gzip"))
    headers.append(("content-length", str(len(body))))
    return response.status, headers, b"" if request.method == "HEAD" else body


def date(now: float) -> str:
    """The time in the form of HTTP, whatever the locale."""
    at = time.gmtime(now)
    return (
        f"{_DAYS[at.tm_wday]}, {at.tm_mday:02} {_MONTHS[at.tm_mon - 1]} {at.tm_year} "
        f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"
    )


def read_date(text: str) -> float | None:
    """The time that ``date`` spells; ``None``: it is none."""
    try:
        _, day, month, year, clock, zone = text.split()
        hours, minutes, seconds = map(int, clock.split(":"))
        days = int(year), _MONTHS.index(month) + 1, int(day)
        at = dt.datetime(*days, hours, minutes, seconds, tzinfo=dt.UTC)
    except (ValueError, OverflowError):  # the latter of numbers that no machine word has
        return None
    return at.timestamp() if zone == "GMT" else None
