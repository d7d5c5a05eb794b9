"""Preemption among equals: a workload below its fair share takes the place of one above its own.

Covers: the shares of the workloads of one priority, the victim. Does not cover: preemption of less
important pods (``framework.preemption``), which comes first.

Rules:
1. Nobody is asked unless ``preemption.equalPriority`` is ``Fair``, and preemption of less important
   pods has found no node.
2. A workload has the sum of the parts of the cluster that its pods have: of each, of the resource
   of which that is most. Pods that are nominated count, those that end do not. What all workloads
   of the priority have is divided among them: who wants no more than an equal part, with what
   waits, gets what it wants, and the rest is divided among the others.
3. The preemptor's workload has less than its fair share. The victim's has more, and not less
   afterwards. So nothing is taken back at once.
4. One pod goes, of the workload that exceeds its share most; of equals as ``limiter.fairness``
   says. Never one of a gang, without a workload, or that is nobody's victim.
5. Budgets hold strictly: the limiter has to allow the eviction, by all of its checks.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.disruption.answers import Allow, Mover
from koordlet.scheduler.disruption.disruptions import Disruptions
from koordlet.scheduler.disruption.workloads import Signature
from koordlet.scheduler.framework import Failure, dryrun
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.dryrun import Candidate
from koordlet.scheduler.framework.preemption import Promised
from koordlet.scheduler.framework.queue import Queue
from koordlet.scheduler.loop.outcomes import Nominations
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.loop.quota_scheduler import QuotaScheduler
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod, PodClass

MOVER, CAUSE = Mover(name="preemption/fair", acts=True), "Preemption"
#: Differences of shares that are none.
_NOTHING = 1e-9


class Core(Protocol):
    """The parts of ``loop.core.Core`` that shares are read from."""

    pod_cache: PodCache
    queue: Queue
    nominated: Nominations
    quotas: QuotaScheduler


class FairPreemption:
    """Preemption among equals of one scheduler."""

    def __init__(self, disruptions: Callable[[], Disruptions]) -> None:
        self._disruptions = disruptions

    @property
    def _on(self) -> bool:
        return self._disruptions().limiter.settings.preemption.fair

    def awaits(self, core: Core, pod: Pod) -> bool:
        """Whether an equal is leaving the node that a pod is nominated for."""
        row = core.pod_cache.columns.rows.get(pod.nominated) if pod.nominated else None
        if row is None or not self._on:
            return False
        return any(
            other.terminating and other.preempted and other.priority == pod.priority
            for other in core.pod_cache.columns.pods[row].values()
        )

    def attempt(
        self, core: Core, cycle: Cycle, pod: Pod, failure: Failure, promised: Promised
    ) -> Candidate | None:
        """The node and the equal that leaves it, debited already; ``None``: nobody has to."""
        if not (self._on and pod.preempts and failure.verdicts) or pod.gang or pod.reserve_pod_of:
            return None
        disruptions, excess = self._disruptions(), self._excess(core, pod)
        if excess is None:
            return None
        now, limiter, eligible = disruptions.now(), disruptions.limiter, core.quotas.eligible(pod)
        columns, best = cycle.columns, None

        def ranked(row: int) -> list[tuple[float, object, Pod]]:
            several = [victim for victim in columns.pods[row].values() if eligible(victim)]
            over = [(excess(victim), victim) for victim in several]
            return sorted(
                (
                    (-much, limiter.fairness(victim, now), victim)
                    for much, victim in over
                    if much > 0
                ),
                key=lambda each: each[:2],
            )

        with cycle.sight(pod) as view:
            for row in (row for row, verdict in failure.verdicts.items() if verdict.resolvable):
                for much, order, victim in ranked(row):
                    if best is not None and (much, order) >= best[:2]:
                        break
                    if not isinstance(limiter.may_evict(victim, CAUSE, MOVER, now), Allow):
                        continue
                    with (
                        dryrun.joined(columns, row, promised.get(row, ())),
                        _without(columns, victim),
                    ):
                        fits = view.passes(row)
                    if fits:
                        best = much, order, row, victim
                        break
        if best is None:
            return None
        _, _, row, victim = best
        limiter.begin(victim, CAUSE, MOVER, now)
        limiter.accepted(victim, now)
        return Candidate.of(row, (victim,), 0)

    def _excess(self, core: Core, pod: Pod) -> Callable[[Pod], float] | None:
        """By how much the workload of a victim exceeds its share; 0 where this one has to stay.

        ``None``: the pod's own workload has what it may have.
        """
        signature, part = self._disruptions().limiter.workloads.signature, _parts(core)
        # By class first: thousands of pods have the same one.
        has: Counter[PodClass] = Counter()
        lacks: Counter[PodClass] = Counter()
        placed = [other for other in core.pod_cache if not other.terminating]
        several = [(other, True) for other in placed]
        waiting = [entry.pod for entry in core.queue if not entry.pod.gates]
        several += [(other, bool(core.nominated.node(other))) for other in waiting]
        for other, is_held in several:
            if other.priority == pod.priority and not other.reserve_pod_of:
                (has if is_held else lacks)[other.pod_class] += 1
        held: dict[Signature, float] = defaultdict(float)
        wanted: dict[Signature, float] = defaultdict(float)
        for pod_class in has | lacks:
            workload = signature(pod_class)
            if workload is not None:
                held[workload] += has[pod_class] * part(pod_class)
                wanted[workload] += (has[pod_class] + lacks[pod_class]) * part(pod_class)
        own, shares = signature(pod.pod_class), divided(wanted, held)
        if own is None or held[own] >= shares[own] - _NOTHING:
            return None

        @functools.cache
        def over(pod_class: PodClass) -> float:
            workload = signature(pod_class)
            much = 0.0 if workload is None else held[workload] - shares[workload]
            return much if much >= part(pod_class) - _NOTHING else 0.0

        return lambda victim: over(victim.pod_class) if _may_go(victim, pod) else 0.0


def _may_go(victim: Pod, pod: Pod) -> bool:
    """Whether an equal may be a victim (rule 4)."""
    stays = victim.terminating or victim.gang is not None or dryrun.exempt(victim)
    return victim.priority == pod.priority and not stays


def divided(
    wanted: Mapping[Signature, float], held: Mapping[Signature, float]
) -> dict[Signature, float]:
    """The fair share of each workload of what they have altogether (rule 2)."""
    shares, left = {}, sum(held.values())
    for place, (workload, much) in enumerate(sorted(wanted.items(), key=lambda each: each[1])):
        shares[workload] = min(much, left / (len(wanted) - place))
        left -= shares[workload]
    return shares


def _parts(core: Core) -> Callable[[PodClass], float]:
    """The part of the cluster that a pod of a class has."""
    columns, known = core.pod_cache.columns, dict[PodClass, float]()

    def part(pod_class: PodClass) -> float:
        if pod_class not in known:
            shares = [
                amount / total
                for name, amount in pod_class.requests.real.items()
                if name != requests.PODS
                and (total := int(columns.allocatable[columns.resource(name)].sum())) > 0
            ]
            known[pod_class] = max(shares, default=0.0)
        return known[pod_class]

    return part


@contextlib.contextmanager
def _without(columns: Columns, pod: Pod) -> Iterator[None]:
    """Take a pod off its node while the block runs."""
    row = columns.rows[pod.node]
    columns.remove(pod)
    try:
        yield
    finally:
        columns.place(pod, row)
