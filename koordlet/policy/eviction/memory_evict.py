"""memory_evict: evicts pods while the node uses more memory than a percentage of its capacity.

Covers: the peer's BEMemoryEvict and MemoryEvict: threshold, release, cool time.
Does not cover: candidates and their order (``candidates``), counting what is released
(``release_round``), the kubelet's thresholds (``node_pressure``).

Rules:
1. Which strategy counts, and that one which cannot be read does not run: ``strategy``.
2. Use is what is not available, in whole percents of the capacity, cut: 95.8 counts as 95. At the
   threshold, what lies above the lower percent must be released.
3. With a priority bound pods of any class that consented go as well, after best-effort ones.
4. A lower percent that is not below the threshold evicts nobody, and the signal says so.
"""

from __future__ import annotations

import typing

from koordlet.history import series
from koordlet.model import decision, meter, resources, snapshot, strategies
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import strategy

if typing.TYPE_CHECKING:
    from koordlet.policy.eviction import release_round

STEM = "memory_evict"
SIGNAL = "node.memory.used"
COOL_SECONDS = 4.0
_FRESH = 10.0
_THRESHOLD = 70
#: How far below the threshold relief is, where nobody says it.
_STEP = 2
#: What its strategy consists of.
KEYS = frozenset(
    {
        "memoryEvictThresholdPercent",
        "memoryEvictLowerPercent",
        "evictEnabledPriorityThreshold",
    }
)

Settings = strategies.Threshold


def decide(
    now: snapshot.Snapshot,
    past: series.History,
    settings: strategies.Threshold,
    state: release_round.State | None,
) -> decision.Decision[release_round.State | None]:
    """Decide which pods to evict at this moment."""
    force = strategy.in_force(now, settings)
    if not force.enable:
        return decision.Decision(next_state=None, explanation={"memory": "not enabled"})
    why = strategy.unread(now, KEYS)
    if why:
        return strategy.not_run(why, STEM)
    # Late: what nobody enabled costs nobody anything.
    from koordlet.policy.eviction import release_round  # noqa: PLC0415

    state = state or release_round.State()
    threshold, lower = bounds(force)
    use = _use(now, past)
    why = "" if use else "the use of the node is not known"
    if lower >= threshold:
        why = f"memoryEvictLowerPercent {lower} is not below the threshold"
    signal = decision.Signal(
        name=SIGNAL,
        observed=f"{use[0]}%" if use else "",
        threshold=f"{threshold}%",
        met=use[0] >= threshold if use and not why else None,
        why=why,
    )
    held = why or groups.stale(now)
    if use is None or held:
        return release_round.decided(state, [signal], held)
    percent, capacity = use
    tasks = []
    if percent >= threshold:
        tasks = _tasks(now, past, force, signal, capacity * (percent - lower) // 100)
    after = release_round.turn(now, state, tasks, cool=COOL_SECONDS, relieved=percent <= lower)
    return release_round.decided(after, [signal])


def bounds(force: strategies.Threshold) -> tuple[int, int]:
    """Percentages at which eviction begins and ends."""
    threshold = force.memory_evict_threshold_percent
    threshold = _THRESHOLD if threshold is None else threshold
    lower = force.memory_evict_lower_percent
    return threshold, threshold - _STEP if lower is None else lower


def _tasks(
    now: snapshot.Snapshot,
    past: series.History,
    force: strategies.Threshold,
    signal: decision.Signal,
    amount: int,
) -> list[release_round.Task]:
    from koordlet.policy.eviction import candidates, release_round  # noqa: PLC0415 -- as above

    size = candidates.memory(now, past)
    ordered = {
        "BEMemoryEvict": candidates.best_effort(now, "BEMemoryEvict", lambda pod: size(pod) or 0)
    }
    bound = force.evict_enabled_priority_threshold
    if bound is not None:
        ordered["MemoryEvict"] = candidates.consenting(now, "MemoryEvict", bound, size)
    return [
        release_round.Task(
            policy=STEM,
            feature=feature,
            signal=SIGNAL,
            amount=amount,
            observed=signal.observed,
            threshold=signal.threshold,
            ordered=pods,
            size=size,
        )
        for feature, pods in ordered.items()
    ]


def _use(now: snapshot.Snapshot, past: series.History) -> tuple[int, int] | None:
    """Percent in use, and the capacity (rule 2)."""
    total = past.node.last("", meter.MEMORY_TOTAL)
    capacity = now.node.capacity.get(resources.MEMORY) or (None if total is None else int(total))
    used: float | None
    if now.metric is not None and resources.MEMORY in now.metric.node:
        used = now.metric.node[resources.MEMORY]
    else:
        age = past.node.age(meter.WORKING_SET, now.at)
        used = past.node.last("", meter.WORKING_SET) if age is not None and age <= _FRESH else None
    if not capacity or used is None:
        return None
    return int(used) * 100 // capacity, capacity
