"""The errors of a store of objects.

Covers: the errors of the port ``objects``, the same from every adapter.
Does not cover: what to do about them (``informer``, the writers); HTTP statuses (``kube.answers``).

Rules:
1. ``Refused``: the store understood and says no. The same request again is in vain, unless the
   class says otherwise (``Conflict``: read again first; ``TooMany``: wait first).
2. ``Unavailable``: nobody knows whether the request was carried out. Reads may be repeated; a write
   is repeated only where it is idempotent.
3. ``culprit`` is the object, the kind or the server; ``reason`` the store's own word for it.
"""

from __future__ import annotations

from koordlet.model import errors
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a refusal."""

    #: ``FieldValueRequired``, ``DisruptionBudget``, ``FieldManagerConflict``, …
    reason: str
    message: str
    #: Path inside the object; may be empty.
    field: str = ""


class ObjectsError(errors.KoordletError):
    """The base of all errors of a store."""

    code = "objects"

    def __init__(
        self,
        message: str,
        *,
        culprit: str = "",
        fix: str = "",
        reason: str = "",
        retry_after: float | None = None,
        causes: tuple[Cause, ...] = (),
    ) -> None:
        super().__init__(message, culprit=culprit, fix=fix)
        #: ``AlreadyExists``, ``Expired``, …: in the words of the API machinery, may be empty.
        self.reason = reason
        #: Seconds that the store asked for before the next attempt.
        self.retry_after = retry_after
        #: Why, of a ``Conflict``, an ``Invalid`` or a ``TooMany``.
        self.causes = causes


class Unavailable(ObjectsError):  # noqa: N818 - a state of the store, as operators call it
    """The store is unreachable, silent, garbled, or over its own deadline."""

    code = "unavailable"


class Garbled(Unavailable):
    """The answer makes no sense; the same request may get the same answer."""


class Failed(Unavailable):
    """The store failed at this request (500), often because of what was asked."""

    code = "failed"


class Refused(ObjectsError):  # noqa: N818 - what happened to the request
    """The store understood the request and refused it."""

    code = "refused"


class Malformed(Refused):
    """The store does not support the request, such as a selector (400)."""

    code = "malformed"


class Unauthorized(Refused):
    """The credentials are missing, wrong or expired (401)."""

    code = "unauthorized"


class Forbidden(Refused):
    """The credentials do not permit the request (403)."""

    code = "forbidden"


class NotFound(Refused):
    """There is no such object (404)."""

    code = "not_found"


class NotServed(NotFound):
    """There is no such kind: its CRD is not installed, or in another version."""

    code = "not_served"


class Gone(Refused):
    """The revision is too old to go on from: list again (410)."""

    code = "gone"


class Conflict(Refused):
    """The revision, the UID or a field's owner has changed (409)."""

    code = "conflict"


class AlreadyExists(Conflict):
    """There is an object of that name already (409)."""

    code = "already_exists"


class Invalid(Refused):
    """The object breaks a rule of its kind (422)."""

    code = "invalid"


class TooMany(Refused):
    """Too many requests, or a disruption budget that is used up (429)."""

    code = "too_many"


def code(error: Exception) -> str:
    """As failures are counted: what the server said, or that it was not the server."""
    return error.code if isinstance(error, ObjectsError) else "error"
