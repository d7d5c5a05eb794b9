"""Preemption: choosing the node and the victims for a more important pod.

Covers: which nodes are tried, the choice among them, the message.
Does not cover: who would leave one node (``dryrun``), evicting them (the caller's).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from koordlet.scheduler.framework import Failure, Verdict, messages
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.dryrun import Candidate, DryRuns, Eligible, anybody
from koordlet.scheduler.objects.disruption import DisruptionBudget, Protection
from koordlet.scheduler.objects.pods import Pod

#: Who was promised a place on a node before a pod, by row.
Promised = Mapping[int, Sequence[Pod]]
_NOBODY: Promised = MappingProxyType({})


def awaited(cycle: Cycle, pod: Pod, failure: Failure) -> bool:
    """Whether a victim on the pod's nominated node is terminating, and will make room."""
    row = cycle.columns.rows.get(pod.nominated) if pod.nominated else None
    verdict = (failure.verdicts or {}).get(row) if row is not None else None
    if row is None or failure.verdicts is None or (verdict and not verdict.resolvable):
        return False
    return any(
        other.terminating and other.preempted and other.priority < pod.priority
        for other in cycle.columns.pods[row].values()
    )


def attempt(
    cycle: Cycle,
    pod: Pod,
    failure: Failure,
    budgets: Sequence[DisruptionBudget],
    promised: Promised = _NOBODY,
    *,
    eligible: Eligible = anybody,
) -> Candidate | str:
    """The node to preempt on, or why there is none."""
    if not pod.preempts:
        return "preemption: not eligible due to preemptionPolicy=Never."
    total = len(cycle.columns.rows)
    if failure.verdicts is None:
        return _message(total, [messages.NOT_HELPFUL] * total)
    potential = [row for row, verdict in failure.verdicts.items() if verdict.resolvable]
    refusals: list[Verdict] = []
    wanted = cycle.profile.candidates.of(len(potential))
    candidates: list[Candidate] = []
    harmless = False
    with cycle.sight(pod) as view:
        protection = Protection(budgets)
        runs = DryRuns(cycle.columns, view, pod, protection, cycle.dry_runs, eligible=eligible)
        for tried in runs.each(potential, promised):
            if isinstance(tried, Verdict):
                refusals.append(tried)
                continue
            candidates.append(tried)
            harmless |= not tried.violations
            if harmless and len(candidates) >= wanted:
                break
    if candidates:
        return min(candidates, key=operator.attrgetter("cost"))
    reasons = [messages.NOT_HELPFUL] * (total - len(potential))
    return _message(total, reasons + [each for refusal in refusals for each in refusal.reasons])


def _message(total: int, reasons: list[str]) -> str:
    return f"preemption: {messages.histogram(total, reasons)}"
