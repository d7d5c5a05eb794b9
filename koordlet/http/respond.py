"""Turns a handler's response into bytes: 304, gzip, length, common headers.

Covers: content negotiation that is the same for all endpoints. Pure but for the clock passed in.
Does not cover: sending it (``connection``).
"""

from __future__ import annotations

import http
import time

from koordlet.http import message

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
    request: message.HttpRequest | None, response: message.HttpResponse, *, now: float
) -> tuple[int, Headers, bytes]:
    """Status, headers and the bytes to send. ``request`` is ``None`` where it was not understood.

    A length is given for HEAD and 304, too, as if there were a body; the bytes are then empty.
    """
    headers: Headers = [("date", date(now)), *_ALWAYS, *response.headers.items()]
    if "cache-control" not in response.headers:
        headers.append(("cache-control", "no-cache"))
    if request is None:
        return (
            response.status,
            [*headers, ("content-length", str(len(response.body)))],
            (response.body),
        )
    if message.same_tag(request, response):
        return 304, [pair for pair in headers if pair[0] != "content-type"], b""
    if isinstance(response, message.EventStream):
        # No length: it ends when the connection does.
        return response.status, headers, b""
    body = response.body
    if PACK_FROM <= len(body) <= PACK_TO and message.takes_gzip(request):
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
