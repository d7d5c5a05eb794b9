"""Limit of best-effort work, and the offer of batch and mid resources.

Covers: the limit that a policy set and why, batch and mid resources.
Does not cover: computing them (``policy.best_effort.cpu_suppress``,
``policy.best_effort.adaptive``, ``policy.best_effort.batch_resources``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from koordlet.model import cpuset
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """CPU limit of best-effort work, in thousandths of a core."""

    #: Who said it: the stem of the policy.
    policy: str
    #: What holds it: ``cpuset``, ``cfsQuota``, ``weights``; empty: nothing does.
    actuator: str
    #: ``None``: no limit.
    milli: int | None
    #: Where the actuator is a set of CPUs.
    cpus: cpuset.CPUSet | None = None
    #: What latency-sensitive, system and best-effort work used; ``None`` where that is not known.
    ls_milli: int | None = None
    system_milli: int | None = None
    be_milli: int | None = None
    #: In the operator's words: the sum, the signal, or why the limit is held.
    reason: str = ""
    #: Why nobody is held to it: it is only what would be. Empty: it is in force.
    idle: str = ""


def idle(limit: Limit | None, why: str) -> Limit | None:
    """A copy that is not in force; the first reason stays."""
    return limit if limit is None or limit.idle else replace(limit, idle=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Batch and mid resources of this node, as a scheduler may hand them out.

    Names are those of ``model.resources``; a name is missing where nothing can be said, which is
    also what takes it away from the node: after stale metrics, and while co-location is off.
    """

    amounts: Mapping[str, int] = field(default_factory=dict)
    #: Before third parties took their part; what the peer's origin annotation holds.
    original: Mapping[str, int] = field(default_factory=dict)
    #: By NUMA node number.
    zones: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    #: Unix time of the metrics that it was computed from.
    wall: float = 0.0
    #: Why amounts are missing; empty where none is.
    degraded: str = ""
    #: One sentence for each name.
    reasons: Mapping[str, str] = field(default_factory=dict)
