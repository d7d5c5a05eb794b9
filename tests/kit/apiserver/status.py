"""The port's errors as an API server answers them: the other direction of ``kube.answers``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import kinds, refusals

#: The first that fits.
_CODES: tuple[tuple[type[refusals.ObjectsError], int, str], ...] = (
    (refusals.Malformed, 400, "BadRequest"),
    (refusals.Unauthorized, 401, "Unauthorized"),
    (refusals.Forbidden, 403, "Forbidden"),
    (refusals.NotFound, 404, "NotFound"),
    (refusals.AlreadyExists, 409, "AlreadyExists"),
    (refusals.Conflict, 409, "Conflict"),
    (refusals.Gone, 410, "Expired"),
    (refusals.Invalid, 422, "Invalid"),
    (refusals.TooMany, 429, "TooManyRequests"),
    (refusals.Refused, 415, "UnsupportedMediaType"),
    (refusals.Failed, 500, "InternalError"),
    (refusals.ObjectsError, 503, "ServiceUnavailable"),
)


def failure(
    error: refusals.ObjectsError, kind: kinds.Kind | None = None, name: str = ""
) -> dict[str, Any]:
    """The ``Status`` of an error."""
    code, reason = next((code, word) for each, code, word in _CODES if isinstance(error, each))
    details: dict[str, Any] = {}
    if kind is not None:
        details = {"kind": kind.plural, "group": kind.group}
        details |= {"name": name} if name else {}
    causes: tuple[refusals.Cause, ...] = getattr(error, "causes", ())
    if causes:
        details["causes"] = [
            {"reason": cause.reason, "message": cause.message, "field": cause.field}
            for cause in causes
        ]
    if error.retry_after is not None:
        details["retryAfterSeconds"] = int(error.retry_after)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{error.message} ({error.culprit})" if error.culprit else error.message,
        "reason": reason,
        "details": details,
        "code": code,
    }


def success(code: int = 200, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The ``Status`` of what worked."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": code,
        **({"details": dict(details)} if details else {}),
    }
