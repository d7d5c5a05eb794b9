"""Absence as a value: what is not there any more, never was on this kernel, or does not answer."""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Gone:
    """A file or group that vanished between being listed and being read: normal, not an error."""

    path: str


@dataclass(frozen=True, slots=True, order=True)
class Unsupported:
    """A feature that this machine does not offer, found once at start and shown to the operator."""

    feature: str
    why: str

    def __str__(self) -> str:
        """As conditions say it."""
        return f"{self.feature}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Something that does not come back: the newest that is known of it is old."""

    item: str
    #: How long it has not come back.
    seconds: float
    #: How much waits behind it.
    waiting: int = 0
