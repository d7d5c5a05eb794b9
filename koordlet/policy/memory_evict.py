"""memory_evict: best-effort pods go while the node uses more memory than a part of its capacity.

Covers: the peer's BEMemoryEvict and MemoryEvict: threshold, release, cool time.
Does not cover: candidates and their order (``evict_candidates``), the kubelet's thresholds
(``node_pressure``).

Rules:
1. A NodeSLO or ``slo-controller-config`` decides alone where there is one; else the configuration.
2. Use is what is not available, in whole percents of the capacity, cut: 95.8 counts as 95. At the
   threshold, what lies above the lower percent must be released.
3. With a priority bound pods of any class that consented go as well, after best-effort ones.
4. After a choice nobody is chosen for the cool time.
5. What is not known, or may be out of date, evicts nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from koordlet.history import series
from koordlet.model import decision, eviction, meter, pod, resources, snapshot

STEM = "memory_evict"
SIGNAL = "node.memory.used"
COOL_SECONDS = 4.0
#: Counters that are older say nothing about now.
_FRESH = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator configured; a NodeSLO takes its place."""

    enable: bool = False
    threshold_percent: int = 70
    #: ``None``: two less than the threshold.
    lower_percent: int | None = None
    #: Pods up to this priority that consented go as well.
    priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What must outlive a tick."""

    victims: tuple[eviction.Eviction, ...] = ()
    chosen_at: float | None = None


def in_force(now: snapshot.Snapshot, settings: Settings) -> Settings:
    """The settings that count (rule 1)."""
    if now.slo is None:
        return settings
    said = now.slo.threshold
    percent = said.memory_evict_threshold_percent
    return Settings(
        enable=bool(said.enable),
        threshold_percent=70 if percent is None else percent,
        lower_percent=said.memory_evict_lower_percent,
        priority=said.evict_enabled_priority_threshold,
    )


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Who goes at this moment."""
    force = in_force(now, settings)
    if not force.enable:
        return decision.Decision(next_state=State(), explanation={"memory": "not enabled"})
    # Late: what nobody enabled costs nobody anything.
    from koordlet.policy import evict_candidates  # noqa: PLC0415

    lower = force.threshold_percent - 2 if force.lower_percent is None else force.lower_percent
    found = _use(now, past)
    signal = _signal(found, force.threshold_percent)
    if found is None or lower >= force.threshold_percent or evict_candidates.stale(now):
        why = "not known" if found is None else "held"
        return decision.Decision(next_state=state, signals=(signal,), explanation={"memory": why})
    here = {one.uid for one in now.pods if one.active}
    waiting = tuple(one for one in state.victims if one.uid in here)
    percent, capacity = found
    cool = state.chosen_at is not None and now.at - state.chosen_at < COOL_SECONDS
    if percent >= force.threshold_percent and not cool:
        need = evict_candidates.Need(
            policy=STEM,
            feature="BEMemoryEvict",
            signal=SIGNAL,
            amount=capacity * (percent - lower) // 100,
            observed=f"{percent}%",
            threshold=f"{force.threshold_percent}%",
        )
        size = _sizes(now, past)
        before = [one.uid for one in waiting]
        ordered = evict_candidates.best_effort(now, need.feature, size)
        new = evict_candidates.chosen(need, ordered, size, before)
        if force.priority is not None:
            more = replace(need, feature="MemoryEvict")
            ordered = evict_candidates.consenting(now, more.feature, force.priority, size)
            taken = [*before, *(one.uid for one in new)]
            new += evict_candidates.chosen(more, ordered, size, taken)
        if new:
            waiting, state = (*waiting, *new), State(chosen_at=now.at)
    state = replace(state, victims=waiting)
    return decision.Decision(
        next_state=state,
        actions=evict_candidates.acts(waiting),
        evictions=waiting,
        signals=(signal,),
    )


def _use(now: snapshot.Snapshot, past: series.History) -> tuple[int, int] | None:
    """Percent in use, and the capacity (rule 2)."""
    capacity = now.node.capacity.get(resources.MEMORY)
    total = past.node.last("", meter.MEMORY_TOTAL)
    used: float | None = None
    if now.metric is not None and resources.MEMORY in now.metric.node:
        used = now.metric.node[resources.MEMORY]
    else:
        age = past.node.age(meter.WORKING_SET, now.at)
        used = past.node.last("", meter.WORKING_SET) if age is not None and age <= _FRESH else None
    capacity = capacity or (None if total is None else int(total))
    if not capacity or used is None:
        return None
    return int(used) * 100 // capacity, capacity


def _signal(found: tuple[int, int] | None, threshold: int) -> decision.Signal:
    return decision.Signal(
        name=SIGNAL,
        observed="" if found is None else f"{found[0]}%",
        threshold=f"{threshold}%",
        met=None if found is None else found[0] >= threshold,
        why="the use of the node is not known" if found is None else "",
    )


def _sizes(now: snapshot.Snapshot, past: series.History) -> Callable[[pod.Pod], int]:
    """Memory of a pod without its page cache; nothing where it is not known."""

    def size(one: pod.Pod) -> int:
        for what in (meter.MEMORY_ANON, meter.WORKING_SET, meter.MEMORY):
            found = None if one.group is None else past.groups.last(one.group, what)
            if found is not None:
                return int(found)
        told = now.metric.pods.get(one.key) if now.metric is not None else None
        return 0 if told is None else told.get(resources.MEMORY, 0)

    return size
