"""Answers of an API server as the port's errors.

Covers: HTTP status and ``Status`` object to ``refusals``. Does not cover: sending requests.

A ``Status`` is believed as far as it is one. Any other answer, such as the page of a proxy in
between, is judged by its HTTP status alone; that a kind is not served, it cannot say: whoever
believed the page of a gateway that lost its backend would forget all pods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from koordlet.http import client
from koordlet.kubeapi import objects, refusals

_SHOWN = 300

_BY_STATUS: Mapping[int, type[refusals.ObjectsError]] = {
    400: refusals.Malformed,
    401: refusals.Unauthorized,
    403: refusals.Forbidden,
    404: refusals.NotFound,
    409: refusals.Conflict,
    410: refusals.Gone,
    422: refusals.Invalid,
    429: refusals.TooMany,
    500: refusals.Failed,
}

_FIXES = {
    401: "check the token or client certificate",
    403: "grant the permission in RBAC",
    410: "list again",
    429: "",  # the API server says it in plain text
}
_BETWEEN = "check the server's address, and whether a proxy is in between"
_TAG = re.compile(r"<[^>]*>")
#: What an API server says of a path that it does not have: the words of Go's library.
_NO_PATH = "404 page not found"
#: Nobody is kept away for longer: who maintains a gateway may say a day.
_LONGEST_SECONDS = 300.0


def refusal(answer: client.ClientResponse, culprit: str) -> refusals.ObjectsError:
    """The error that an answer is which is none of those wanted."""
    code, wait = answer.status, _seconds(answer.headers.get("retry-after"))
    status = _status(answer.body)
    if status is not None:
        return from_status(status, code, culprit, retry_after=wait)
    words = _words(answer.body)
    error_class = _class(code, "", {})
    if error_class is refusals.NotServed and answer.body and words != _NO_PATH:
        error_class = refusals.Unavailable
    return error_class(
        f"HTTP {code}: {words}" if words else f"HTTP {code}",
        culprit=culprit,
        fix=_FIXES.get(code, _BETWEEN),
        retry_after=wait,
    )


def _status(raw: bytes) -> Mapping[str, Any] | None:
    """A ``Status`` object; ``None`` for everything else."""
    try:
        status = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return status if isinstance(status, Mapping) and status.get("kind") == "Status" else None


def _words(raw: bytes) -> str:
    """The first line of a text, or of a page without its tags."""
    text = raw[:_SHOWN].decode("utf-8", "replace").strip()
    if text.startswith("<"):
        text = _TAG.sub("\n", text).strip()
    return text.partition("\n")[0].strip()


def from_status(
    status: Mapping[str, Any], code: int, culprit: str, *, retry_after: float | None = None
) -> refusals.ObjectsError:
    """The error that a ``Status`` object is."""
    details = objects.part(status, "details")
    reason = _text(status.get("reason"))
    error_class = _class(code, reason, details)
    wait = _seconds(details.get("retryAfterSeconds"))
    explained = issubclass(error_class, refusals.Conflict | refusals.Invalid | refusals.TooMany)
    causes = tuple(map(_cause, objects.parts(details, "causes"))) if explained else ()
    return error_class(
        _text(status.get("message")) or f"the API server returned {code}",
        culprit=culprit,
        fix=causes[0].message if causes and code == 429 else _FIXES.get(code, ""),
        reason=reason,
        retry_after=retry_after if wait is None else wait,
        causes=causes,
    )


def _class(code: int, reason: str, details: Mapping[str, Any]) -> type[refusals.ObjectsError]:
    if code == 404 and not details.get("name"):
        # The path is unknown: no such kind. For a missing object the details name it.
        return refusals.NotServed
    if code == 409 and reason == "AlreadyExists":
        return refusals.AlreadyExists
    known = _BY_STATUS.get(code)
    if known is not None:
        return known
    return refusals.Refused if 400 <= code < 500 else refusals.Unavailable


def _cause(raw: Mapping[str, Any]) -> refusals.Cause:
    return refusals.Cause(*(_text(raw.get(name)) for name in ("reason", "message", "field")))


def _text(raw: Any) -> str:
    return raw if isinstance(raw, str) else ""


def _seconds(raw: Any) -> float | None:
    """Seconds to wait; ``None`` for none, for zero (as the API machinery means it) and nonsense."""
    try:
        seconds = float(raw)
    except (TypeError, ValueError):
        return None
    return min(seconds, _LONGEST_SECONDS) if seconds > 0 else None
