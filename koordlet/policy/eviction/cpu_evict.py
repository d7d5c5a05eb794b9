"""cpu_evict: evicts pods while best-effort work lacks CPU or the node uses too much.

Covers: the peer's BECPUEvict (satisfaction) and CPUEvict (use): windows, release, cool time.
Does not cover: satisfaction itself (``policy.best_effort.satisfaction``), candidates
(``candidates``), counting what is released (``release_round``), requests beyond what is offered
(``cpu_allocatable_evict``).

Rules:
1. Which strategy counts, and that one which cannot be read does not run: ``strategy``.
2. BECPUEvict takes best-effort pods and counts what they asked for; it needs both percents.
3. CPUEvict takes consenting pods up to a priority and counts what they use; it needs that bound and
   a threshold. Use is the average of the window, in whole percents of the capacity, cut. CPUs that
   no workload can have count on neither side.
4. The cool time of twenty seconds first counts from the start.

* Formula: satisfaction = what best-effort work may have / what it asked for; use = mean of the
  window / capacity, in whole percents, cut
* Writes: no file: evicts
* See: `koordlet explain eviction`, *Signals* on the console
* Off: nobody goes because of it any more; evictions that have begun are finished
* More: eviction.md
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import replace

from koordlet.history import series
from koordlet.model import decision, meter, plan, resources, snapshot, strategies
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import strategy
from koordlet.policy.framework import declaration

if typing.TYPE_CHECKING:
    from koordlet.policy.best_effort import satisfaction
    from koordlet.policy.eviction import release_round

STEM = "cpu_evict"
SATISFACTION, USED = "be.cpu.satisfaction", "node.cpu.used"
COOL_SECONDS = 20.0
_FRESH = 10.0
_STEP = 2
#: Part of their limit that best-effort pods must use, in percent, where nobody says it.
_USAGE = 90
#: The most that a window remembers.
_MOST = 600
Settings = strategies.Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State kept between ticks."""

    round: release_round.State
    samples: tuple[satisfaction.Sample, ...] = ()


def decide(
    now: snapshot.Snapshot,
    past: series.History,
    settings: strategies.Threshold,
    state: State | None,
) -> decision.Decision[State | None]:
    """Decide which pods to evict at this moment."""
    force = strategy.in_force(now, settings)
    asked = force.cpu_evict_be_satisfaction_lower_percent, force.cpu_evict_threshold_percent
    idle = strategy.idle(now, force, STEM, asked=asked != (None, None))
    if idle is not None:
        return idle
    from koordlet.policy.eviction import release_round  # noqa: PLC0415 -- 2 ms, off by default

    if state is None:
        state = State(round=release_round.State(chosen_at=now.at))
    window = float(force.cpu_evict_time_window_seconds or 1)
    tasks: list[release_round.Task] = []
    signals: list[decision.Signal] = []
    seen = _Seen(now=now, past=past, force=force, window=window)
    samples = _starved(seen, state.samples, tasks, signals)
    _busy(seen, tasks, signals)
    held = groups.stale(now)
    after = state.round
    if not held:
        relieved = bool(signals) and all(signal.met is False for signal in signals)
        after = release_round.turn(now, after, tasks, cool=COOL_SECONDS, relieved=relieved)
    decided = release_round.decided(after, signals, held)
    return replace(decided, next_state=State(round=after, samples=samples))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Inputs of one decision."""

    now: snapshot.Snapshot
    past: series.History
    force: strategies.Threshold
    window: float


def _starved(
    seen: _Seen,
    before: Sequence[satisfaction.Sample],
    tasks: list[release_round.Task],
    signals: list[decision.Signal],
) -> tuple[satisfaction.Sample, ...]:
    """Rule 2; returns the samples of the window."""
    now, past, force, window = seen.now, seen.past, seen.force, seen.window
    lower = force.cpu_evict_be_satisfaction_lower_percent
    upper = force.cpu_evict_be_satisfaction_upper_percent
    if lower is None or upper is None:
        return ()
    from koordlet.policy.best_effort import satisfaction  # noqa: PLC0415 -- 2 ms, off by default
    from koordlet.policy.eviction import candidates, release_round  # noqa: PLC0415 -- 2 ms, off by default

    usage = force.cpu_evict_be_usage_threshold_percent
    bounds = satisfaction.Bounds(lower=lower, upper=upper, usage=_USAGE if usage is None else usage)
    newest = satisfaction.sample(now, past, force.cpu_evict_policy)
    why = bounds.problem or (newest if isinstance(newest, str) else "")
    if isinstance(newest, str) or why:
        signals.append(
            decision.Signal(
                name=SATISFACTION, observed="", threshold=f"{lower}%", met=None, why=why
            )
        )
        return ()
    samples = (*(sample for sample in before if 0 < now.at - sample.at < window), newest)[-_MOST:]
    amount = satisfaction.release(samples, bounds, window)
    signal = decision.Signal(
        name=SATISFACTION,
        observed=f"{100 * newest.limit / newest.request:.0f}%" if newest.request else "100%",
        threshold=f"{lower}%",
        met=amount > 0,
    )
    signals.append(signal)
    if amount:

        def requested(pod: pods.Pod) -> int:
            return pod.requests.get(resources.BATCH_CPU, 0)

        def share(pod: pods.Pod) -> float:
            request = requested(pod)
            return (used(pod) or 0) / request if request else 0.0

        used = candidates.cpu(now, past)
        ordered = candidates.best_effort(now, "BECPUEvict", share)
        task = release_round.Task(STEM, "BECPUEvict", signal, amount, ordered, requested)
        tasks.append(task)
    return samples


def _busy(seen: _Seen, tasks: list[release_round.Task], signals: list[decision.Signal]) -> None:
    """Rule 3."""
    now, force = seen.now, seen.force
    threshold, bound = force.cpu_evict_threshold_percent, force.evict_enabled_priority_threshold
    if threshold is None:
        return
    lower = force.cpu_evict_lower_percent
    lower = threshold - _STEP if lower is None else lower
    capacity = now.cpu_capacity
    used = _used(now, seen.past, seen.window)
    why = "" if used is not None else "the use of the node is not known"
    if bound is None:
        why = "evictEnabledPriorityThreshold is not set"
    if lower >= threshold:
        why = f"cpuEvictLowerPercent {lower} is not below the threshold"
    percent = 0 if used is None else used * 100 // max(capacity, 1)
    signal = decision.Signal(
        name=USED,
        observed="" if used is None else f"{percent}%",
        threshold=f"{threshold}%",
        met=None if why else percent >= threshold,
        why=why,
    )
    signals.append(signal)
    if signal.met and bound is not None:
        from koordlet.policy.eviction import candidates, release_round  # noqa: PLC0415 -- 2 ms, off by default

        size = candidates.cpu(now, seen.past)
        ordered = candidates.consenting(now, "CPUEvict", bound, size)
        amount = capacity * (percent - lower) // 100
        tasks.append(release_round.Task(STEM, "CPUEvict", signal, amount, ordered, size))


def _used(now: snapshot.Snapshot, past: series.History, window: float) -> int | None:
    """Average CPU use of the node in thousandths of a core, where workloads can run."""
    if now.metric is not None and resources.CPU in now.metric.node:
        return now.metric.node[resources.CPU]
    age = past.node.age(meter.CPU, now.at)
    if age is None or age > _FRESH:
        return None
    seen = past.node.window("", meter.CPU, now.at, window) if window > 1 else None
    if seen is not None:
        cores = seen.average - past.cpus_average(now.outside, now.at, window)
    elif (newest := past.node.last("", meter.CPU)) is not None:
        cores = newest - past.cpus_now(now.outside, now.at, _FRESH)
    else:
        return None
    return max(int(cores * 1000), 0)


POLICY = declaration.Policy(
    stem=STEM,
    summary="evicts pods while best-effort work is starved of CPU",
    protects="it evicts best-effort work that gets no CPU",
    decide=decide,
    settings=Settings(),
    state=None,
    default_mode=plan.Mode.SHADOW,
)
