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

import functools
from typing import Any

from koordlet.model import decision, snapshot, strategies, strategy_field

SECTION = "resourceUsedThresholdWithBE"
_ENABLE = "enable"


def in_force(now: snapshot.Snapshot, settings: strategies.Threshold) -> strategies.Threshold:
    """Rule 1."""
    return settings if now.slo is None else now.slo.threshold


@functools.cache
def keys(stem: str) -> frozenset[str]:
    """The keys of the section that a policy reads."""
    known = strategy_field.rows(strategies.Threshold).items()
    own = (name for name, row in known if stem in row.file)
    return frozenset(strategy_field.key(strategies.Threshold, name) for name in own)


def idle(
    now: snapshot.Snapshot,
    force: strategies.Threshold,
    stem: str,
    *,
    asked: bool = True,
) -> decision.Decision[Any] | None:
    """The decision to do nothing; ``None`` where the strategy of a policy runs.

    ``asked`` is whether any key asks for it.
    """
    if force.enable and now.slo is not None:
        unread = now.slo.unread_of(SECTION, {_ENABLE, *keys(stem)})
        if unread:
            why = f"not evicting: {', '.join(unread)} of {now.slo.source} cannot be read"
            condition = decision.Condition(type="EvictionNotRun", reason=stem, message=why)
            return decision.Decision(
                next_state=None, conditions=(condition,), explanation={stem: why}
            )
    if force.enable and asked:
        return None
    return decision.Decision(next_state=None, explanation={stem.partition("_")[0]: "not enabled"})
