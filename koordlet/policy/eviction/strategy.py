"""The eviction strategy in force; an unreadable strategy does not run.

Covers: object or file, keys that could not be read.
Does not cover: what the keys mean (``memory_evict`` and its neighbours), what holds instead of a
limit that cannot be read (``workloads.strategy_holding``).

Rules:
1. A NodeSLO or ``slo-controller-config`` decides alone where there is one; else the configuration.
2. A strategy of which any key could not be read does not run: neither a default nor what it said
   before is what its author wants now, and nobody comes back from an eviction.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from koordlet.model import decision, snapshot, strategies

SECTION = "resourceUsedThresholdWithBE"
_ENABLE = "enable"

_State = TypeVar("_State")


def in_force(now: snapshot.Snapshot, settings: strategies.Threshold) -> strategies.Threshold:
    """Rule 1."""
    return settings if now.slo is None else now.slo.threshold


def unread(now: snapshot.Snapshot, keys: Collection[str]) -> str:
    """The reason that a strategy of these keys does not run (rule 2); empty where it does."""
    if now.slo is None:
        return ""
    listed = now.slo.unread_of(SECTION, {_ENABLE, *keys})
    if not listed:
        return ""
    return f"not evicting: {', '.join(listed)} of {now.slo.source} cannot be read"


def not_run(why: str, stem: str) -> decision.Decision[_State | None]:
    """A decision to do nothing, with the reason."""
    condition = decision.Condition(type="EvictionNotRun", status=True, reason=stem, message=why)
    return decision.Decision(next_state=None, conditions=(condition,), explanation={stem: why})
