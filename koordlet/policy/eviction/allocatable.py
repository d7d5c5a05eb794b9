"""Allocatable eviction: evicts pods whose requests exceed what the node offers. Pure.

Covers: the peer's allocatable evictions, of one resource in both of its classes.
Does not cover: which resource (``cpu_allocatable_evict``, ``memory_allocatable_evict``), candidates
(``candidates``), counting what is released (``release_round``).

Rules:
1. Threshold, lower percent (below it) and priority bound are all needed.
2. Of each class, mid and batch: the requests of active pods up to the bound, by what is
   allocatable. Above the threshold, what lies above the lower percent must be released.
3. An allocatable that is missing or zero evicts nobody. (The peer then evicts every pod.)
4. Pods that consented go, the larger request first where priorities are equal; requests are what is
   counted, of this class only.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.model import decision, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import candidates, release_round


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One resource, and Koordinator's name of the eviction feature."""

    stem: str
    name: str
    #: Mid and batch.
    resources: tuple[str, str]
    cool: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Thresholds in percent of allocatable; ``None`` is not configured."""

    threshold: int | None
    lower: int | None
    priority: int | None


def decide(
    now: snapshot.Snapshot, feature: Feature, bounds: Bounds, state: release_round.State
) -> decision.Decision[release_round.State | None]:
    """Decide which pods to evict at this moment."""
    found = list(_classes(now, feature, bounds))
    signals = [signal for signal, _ in found]
    held = groups.stale(now)
    if held:
        return release_round.decided(state, signals, held)
    tasks = [_task(now, feature, bounds, *judged) for judged in found if judged[0].met]
    relieved = all(not signal.met for signal in signals)
    after = release_round.turn(now, state, tasks, cool=feature.cool, relieved=relieved)
    return release_round.decided(after, signals)


def _classes(
    now: snapshot.Snapshot, feature: Feature, bounds: Bounds
) -> Iterator[tuple[decision.Signal, int]]:
    """The signal of each class, and the amount to release."""
    threshold, lower, bound = bounds.threshold, bounds.lower, bounds.priority
    for resource in feature.resources:
        name = f"allocatable.{resource.rpartition('/')[2]}"
        spelled = "" if threshold is None else f"{threshold}%"
        if threshold is None or lower is None or bound is None or lower >= threshold:
            why = "needs a threshold, a lower percent below it and a priority bound"
            signal = decision.Signal(name=name, observed="", threshold=spelled, met=None, why=why)
            yield signal, 0
            continue
        requested = sum(
            pod.requests.get(resource, 0)
            for pod in now.pods
            if pod.active and pod.priority_value <= bound
        )
        offered = now.node.allocatable.get(resource)
        if not offered:
            why = f"not evicting: the node has no allocatable {resource}"
            signal = decision.Signal(name=name, observed="", threshold=spelled, met=None, why=why)
            yield signal, 0
            continue
        yield (
            decision.Signal(
                name=name,
                observed=f"{requested * 100 // offered}%",
                threshold=spelled,
                met=requested * 100 > offered * threshold,
            ),
            requested - offered * lower // 100,
        )


def _task(
    now: snapshot.Snapshot, feature: Feature, bounds: Bounds, signal: decision.Signal, amount: int
) -> release_round.Task:
    resource = next(
        resource
        for resource in feature.resources
        if signal.name.endswith(resource.rpartition("/")[2])
    )

    def size(pod: pods.Pod) -> int | None:
        # Who asked for nothing of this class gives nothing back, and is no candidate.
        return pod.requests.get(resource) or None

    bound = bounds.priority or 0
    return release_round.Task(
        policy=feature.stem,
        feature=feature.name,
        signal=signal.name,
        amount=amount,
        observed=signal.observed,
        threshold=signal.threshold,
        ordered=candidates.consenting(now, feature.name, bound, size),
        size=size,
    )
