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

* Formula: used = capacity - available, in whole percents, cut, ≥ threshold; down to lower
* Writes: no file: evicts
* See: `koordlet explain eviction`, *Signals* on the console
* Off: nobody goes because of it any more; evictions that have begun are finished
* More: eviction.md
"""

from __future__ import annotations

import typing

from koordlet.history import series
from koordlet.model import decision, meter, plan, resources, snapshot, strategies
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import strategy
from koordlet.policy.framework import declaration

if typing.TYPE_CHECKING:
    from koordlet.policy.eviction import release_round

STEM = "memory_evict"
SIGNAL = "node.memory.used"
COOL_SECONDS = 4.0
_FRESH = 10.0
_THRESHOLD = 70
#: How far below the threshold relief is, where nobody says it.
_STEP = 2
Settings = strategies.Threshold


def decide(
    now: snapshot.Snapshot,
    past: series.History,
    settings: strategies.Threshold,
    state: release_round.State | None,
) -> decision.Decision[release_round.State | None]:
    """Decide which pods to evict at this moment."""
    force = strategy.in_force(now, settings)
    idle = strategy.idle(now, force, STEM)
    if idle is not None:
        return idle
    # Late: what nobody enabled costs nobody anything.
    from koordlet.policy.eviction import candidates, release_round  # noqa: PLC0415

    state = state or release_round.State()
    threshold, lower = bounds(force)
    used, capacity = _use(now, past)
    why = "" if used is not None and capacity else "the use of the node is not known"
    percent = int(used or 0) * 100 // (capacity or 1)
    if lower >= threshold:
        why = f"memoryEvictLowerPercent {lower} is not below the threshold"
    signal = decision.Signal(
        name=SIGNAL,
        observed=f"{percent}%" if used is not None and capacity else "",
        threshold=f"{threshold}%",
        met=None if why else percent >= threshold,
        why=why,
    )
    held = why or groups.stale(now)
    if held:
        return release_round.decided(state, [signal], held)
    tasks = []
    if signal.met:
        amount = (capacity or 0) * (percent - lower) // 100
        size = candidates.memory(now, past)
        be = candidates.best_effort(now, "BEMemoryEvict", lambda pod: size(pod) or 0)
        tasks.append(release_round.Task(STEM, "BEMemoryEvict", signal, amount, be, size))
        bound = force.evict_enabled_priority_threshold
        if bound is not None:
            ordered = candidates.consenting(now, "MemoryEvict", bound, size)
            tasks.append(release_round.Task(STEM, "MemoryEvict", signal, amount, ordered, size))
    after = release_round.turn(now, state, tasks, cool=COOL_SECONDS, relieved=percent <= lower)
    return release_round.decided(after, [signal])


def bounds(force: strategies.Threshold) -> tuple[int, int]:
    """Percentages at which eviction begins and ends."""
    threshold = force.memory_evict_threshold_percent
    threshold = _THRESHOLD if threshold is None else threshold
    lower = force.memory_evict_lower_percent
    return threshold, threshold - _STEP if lower is None else lower


def _use(now: snapshot.Snapshot, past: series.History) -> tuple[float | None, int | None]:
    """Bytes in use, and the capacity (rule 2)."""
    total = past.node.last("", meter.MEMORY_TOTAL)
    capacity = now.node.capacity.get(resources.MEMORY) or (None if total is None else int(total))
    if now.metric is not None and resources.MEMORY in now.metric.node:
        return now.metric.node[resources.MEMORY], capacity
    return past.node.recent("", meter.WORKING_SET, now.at, _FRESH), capacity


POLICY = declaration.Policy(
    stem=STEM,
    summary="evicts pods while the node uses too much memory",
    protects="it frees memory for others",
    decide=decide,
    settings=Settings(),
    state=None,
    compares=True,
    default_mode=plan.Mode.SHADOW,
)
