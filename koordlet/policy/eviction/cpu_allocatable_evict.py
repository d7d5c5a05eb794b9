"""cpu_allocatable_evict: evicts pods whose CPU requests exceed what the node offers.

Covers: which keys count, the resources, the cool time. Does not cover: deciding
(``allocatable``).
"""

from __future__ import annotations

import typing

from koordlet.history import series
from koordlet.model import decision, resources, snapshot, strategies
from koordlet.policy.eviction import strategy

if typing.TYPE_CHECKING:
    from koordlet.policy.eviction import release_round

STEM = "cpu_allocatable_evict"
COOL_SECONDS = 20.0
#: What its strategy consists of.
KEYS = frozenset(
    {
        "cpuAllocatableEvictThresholdPercent",
        "cpuAllocatableEvictLowerPercent",
        "allocatableEvictPriorityThreshold",
    }
)

Settings = strategies.Threshold


def decide(
    now: snapshot.Snapshot,
    _past: series.History,
    settings: strategies.Threshold,
    state: release_round.State | None,
) -> decision.Decision[release_round.State | None]:
    """Decide which pods to evict. A NodeSLO replaces the settings where there is one."""
    force = strategy.in_force(now, settings)
    if not force.enable:
        return decision.Decision(next_state=None, explanation={"cpu": "not enabled"})
    why = strategy.unread(now, KEYS)
    if why:
        return strategy.not_run(why, STEM)
    if force.cpu_allocatable_evict_threshold_percent is None:
        return decision.Decision(next_state=None, explanation={"cpu": "not enabled"})
    # Late: what nobody enabled costs nobody anything.
    from koordlet.policy.eviction import allocatable, release_round  # noqa: PLC0415

    feature = allocatable.Feature(
        stem=STEM,
        name="CPUAllocatableEvict",
        resources=(resources.MID_CPU, resources.BATCH_CPU),
        cool=COOL_SECONDS,
    )
    bounds = allocatable.Bounds(
        threshold=force.cpu_allocatable_evict_threshold_percent,
        lower=force.cpu_allocatable_evict_lower_percent,
        priority=force.allocatable_evict_priority_threshold,
    )
    return allocatable.decide(now, feature, bounds, state or release_round.State())
