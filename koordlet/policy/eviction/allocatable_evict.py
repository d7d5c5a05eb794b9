"""cpu_allocatable_evict, memory_allocatable_evict: evicts pods whose requests exceed the offer.

Covers: the peer's allocatable evictions of CPU and of memory, of one resource in both of its
classes.
Does not cover: candidates (``candidates``), counting what is released (``release_round``).

Rules:
1. Threshold, lower percent (below it) and priority bound are all needed.
2. Of each class, mid and batch: the requests of active pods up to the bound, by what is
   allocatable. Above the threshold, what lies above the lower percent must be released.
3. An allocatable that is missing or zero evicts nobody. (The peer then evicts every pod.)
4. Pods that consented go, the larger request first where priorities are equal; requests are what is
   counted, of this class only.

* Formula: requests of the class / what the node offers to it ≥ threshold
* Writes: no file: evicts
* See: `koordlet explain eviction`, *Signals* on the console
* Off: nobody goes because of it any more; evictions that have begun are finished
* More: eviction.md
"""

from __future__ import annotations

import typing

from koordlet.history import series
from koordlet.model import decision, plan, resources, snapshot, strategies
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import strategy
from koordlet.policy.framework import declaration

if typing.TYPE_CHECKING:
    from koordlet.policy.eviction import release_round


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Koordinator's eviction feature for one resource."""

    stem: str
    name: str
    #: Mid and batch.
    resources: tuple[str, str]
    cool: float

    def decide(
        self,
        now: snapshot.Snapshot,
        _past: series.History,
        settings: strategies.Threshold,
        state: release_round.State | None,
    ) -> decision.Decision[release_round.State | None]:
        """Decide which pods to evict. A NodeSLO replaces the settings where there is one."""
        force = strategy.in_force(now, settings)
        threshold: int | None = getattr(force, f"{self.stem}_threshold_percent")
        idle = strategy.idle(now, force, self.stem, asked=threshold is not None)
        if idle is not None or threshold is None:
            return idle or decision.Decision(next_state=None)
        # Late: what nobody enabled costs nobody anything.
        from koordlet.policy.eviction import candidates, release_round  # noqa: PLC0415

        lower: int | None = getattr(force, f"{self.stem}_lower_percent")
        bound = force.allocatable_evict_priority_threshold
        signals: list[decision.Signal] = []
        tasks: list[release_round.Task] = []
        for resource in self.resources:
            offered = now.node.allocatable.get(resource) or 0
            requested = sum(
                pod.requests.get(resource, 0)
                for pod in now.pods
                if pod.active and bound is not None and pod.priority_value <= bound
            )
            why = "" if offered else f"not evicting: the node has no allocatable {resource}"
            if lower is None or bound is None or lower >= threshold:
                why = "needs a threshold, a lower percent below it and a priority bound"
            signal = decision.Signal(
                name=f"allocatable.{resource.rpartition('/')[2]}",
                observed="" if why else f"{requested * 100 // offered}%",
                threshold=f"{threshold}%",
                met=None if why else requested * 100 > offered * threshold,
                why=why,
            )
            signals.append(signal)
            if not signal.met or lower is None or bound is None:
                continue

            def size(pod: pods.Pod, resource: str = resource) -> int | None:
                # Who asked for nothing of this class gives nothing back, and is no candidate.
                return pod.requests.get(resource) or None

            ordered = candidates.consenting(now, self.name, bound, size)
            amount = requested - offered * lower // 100
            tasks.append(release_round.Task(self.stem, self.name, signal, amount, ordered, size))
        state, held = state or release_round.State(), groups.stale(now)
        if not held:
            relieved = all(not signal.met for signal in signals)
            state = release_round.turn(now, state, tasks, cool=self.cool, relieved=relieved)
        return release_round.decided(state, signals, held)


def _policy(
    feature: Feature, summary: str
) -> declaration.Policy[strategies.Threshold, release_round.State | None]:
    return declaration.Policy(
        stem=feature.stem,
        summary=summary,
        protects="it keeps requests within what the node offers",
        decide=feature.decide,
        settings=strategies.Threshold(),
        state=None,
        default_mode=plan.Mode.SHADOW,
        compares=resources.BATCH_MEMORY in feature.resources,
    )


CPU_FEATURE = Feature(
    stem="cpu_allocatable_evict",
    name="CPUAllocatableEvict",
    resources=(resources.MID_CPU, resources.BATCH_CPU),
    cool=20.0,
)
MEMORY_FEATURE = Feature(
    stem="memory_allocatable_evict",
    name="MemoryAllocatableEvict",
    resources=(resources.MID_MEMORY, resources.BATCH_MEMORY),
    cool=4.0,
)
CPU = _policy(CPU_FEATURE, "evicts pods whose CPU requests exceed what the node offers")
MEMORY = _policy(MEMORY_FEATURE, "evicts pods whose memory requests exceed what the node offers")
