"""Absence as a value: what is not there any more, and what this kernel never had."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gone:
    """A file or group that vanished between being listed and being read: normal, not an error."""

    path: str


@dataclass(frozen=True, slots=True, order=True)
class Unsupported:
    """A feature that this machine does not offer, found once at start and shown to the operator."""

    feature: str
    why: str
