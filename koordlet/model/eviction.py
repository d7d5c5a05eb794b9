"""Evictions: the victim, the reason, and the other candidates.

Covers: the values. Does not cover: deciding (``policy``), doing (``apply.evictor``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One pod in a ranking, with its sort keys."""

    pod: str
    #: Name of the key to its value, in the order of comparison.
    keys: tuple[tuple[str, str], ...] = ()
    #: Why it is passed over; empty: it may go.
    spared: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """One pod to evict."""

    pod: str
    uid: str
    policy: str
    #: What it is evicted for: one at a time is under way for each.
    signal: str
    #: ``Evicted``, or the peer's ``trigger by koordlet feature …``.
    reason: str
    #: In full sentences, for the pod's status and its event.
    message: str
    observed: str = ""
    threshold: str = ""
    #: Seconds that its processes have; ``None``: as long as the pod asks for.
    grace_seconds: int | None = None
    #: Unix time since when the threshold is met.
    since: float | None = None
    #: The pod's group, for machines without a cluster; ``None`` while unknown.
    group: str | None = None
    #: ``unit=nginx.service``, for those that systemd runs.
    match: str = ""
    #: Why it is only said and not done; empty: it is done.
    held: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    ranking: tuple[Candidate, ...] = ()
    #: What it gives back, in the unit of the signal; ``None``: not counted.
    release: int | None = None
