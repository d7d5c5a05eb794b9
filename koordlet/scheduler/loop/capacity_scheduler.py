"""Quotas of namespaces in the scheduling loop: who borrows gives back what others were promised.

Covers: preemption between namespaces, waiting for those that leave; the rest is as in
``quota_scheduler``. Does not cover: bounds and amounts (``quotas.capacity``).

Rules:
1. A pod within the minimum of its namespace takes pods of any priority, of other namespaces that
   are above their minimum; beyond it, less important pods of its own namespace. A pod without a
   quota takes less important pods without one.
2. Of a namespace that borrows, nobody leaves once it is not above its minimum any more.
3. With all of them gone the node must take the pod and the quotas must admit it; then who can stay
   comes back, the most important first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from koordlet.kubeapi import kinds
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import dryrun, messages, profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.preemption import Promised
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.loop.quota_scheduler import QuotaScheduler
from koordlet.scheduler.objects.disruption import DisruptionBudget, Protection
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.plugins.capacity_scheduling import CapacityScheduling
from koordlet.scheduler.plugins.elastic_quota import ElasticQuotaPlugin
from koordlet.scheduler.quotas import capacity
from koordlet.scheduler.quotas.amounts import Amounts
from koordlet.scheduler.quotas.capacity import CapacityBook
from koordlet.scheduler.quotas.tree import QuotaNode


def meaning(profiles: Mapping[str, Profile]) -> type[QuotaScheduler]:
    """What the profiles mean by an ElasticQuota."""
    return CapacityScheduler if profile.plugins(profiles, CapacityScheduling) else QuotaScheduler


class CapacityScheduler(QuotaScheduler):
    """The quotas of the namespaces of one scheduler."""

    plugin: ClassVar[type[ElasticQuotaPlugin]] = CapacityScheduling
    quota_kinds: ClassVar[tuple[kinds.Kind, ...]] = (kinds.NAMESPACE_QUOTAS, kinds.ELASTIC_QUOTAS)
    tells_synced: ClassVar[bool] = True
    _capacity: CapacityBook

    def _new_book(self, _named: dict[str, str] | None = None) -> CapacityBook:
        self._capacity = CapacityBook()
        return self._capacity

    def _admits(self, _pod_class: PodClass) -> bool:
        """Whether a pod of a class is worth an attempt: that depends on who is nominated."""
        return True

    def _why(self, pod: Pod, drawn: Amounts | None = None) -> str:
        return self._capacity.refusal(pod, self._core.nominated.pods(), drawn)

    def _gang_why(self, name: str, node: QuotaNode, asked: Amounts) -> str:
        return self._capacity.gang_refusal(name, node, asked)

    def _takes(self, pod: Pod) -> dryrun.Eligible:
        """Who may be a victim of a pod on any node (rule 1)."""
        book, node = self._capacity, self._quota(pod.pod_class)
        if node is None:
            return lambda victim: dryrun.may_go(victim, pod) and book.of(victim.pod_class) is None
        if book.borrows_for(pod, node, self._core.nominated.pods()):
            return lambda victim: dryrun.may_go(victim, pod) and book.of(victim.pod_class) is node

        def borrowed(victim: Pod) -> bool:
            quota = book.of(victim.pod_class)
            return (
                not dryrun.exempt(victim)
                and quota is not None
                and quota is not node
                and capacity.over_minimum(quota)
            )

        return borrowed

    def awaits(self, pod: Pod) -> bool:
        columns = self._core.pod_cache.columns
        row = columns.rows.get(pod.nominated) if self.active and pod.nominated else None
        if row is None:
            return False
        takes = self._takes(pod)
        return any(other.terminating and takes(other) for other in columns.pods[row].values())

    def preempt(
        self,
        cycle: Cycle,
        pod: Pod,
        failure: framework.Failure,
        budgets: Sequence[DisruptionBudget],
        promised: Promised,
    ) -> dryrun.Candidate | str:
        if not self.active:
            return super().preempt(cycle, pod, failure, budgets, promised)
        if not pod.preempts:
            return "preemption: not eligible due to preemptionPolicy=Never."
        rows = [
            row
            for row in cycle.columns.rows.values()
            if (failure.verdicts is None and self.plugin.name in failure.by)
            or ((verdict := (failure.verdicts or {}).get(row)) is not None and verdict.resolvable)
        ]
        total = len(cycle.columns.rows)
        reasons = [messages.NOT_HELPFUL] * (total - len(rows))
        candidates: list[dryrun.Candidate] = []
        protection = Protection(budgets)
        with cycle.sight(pod) as view:
            for row in rows:
                guests = promised.get(row, ())
                with dryrun.joined(cycle.columns, row, guests):
                    trial = _NodeTrial(
                        *(self._capacity, cycle.columns),
                        view=view,
                        row=row,
                        why=lambda: self._why(pod),
                    )
                    tried = self._try(trial, pod, guests, protection)
                if isinstance(tried, dryrun.Candidate):
                    candidates.append(tried)
                else:
                    reasons.append(tried)
        if candidates:
            return min(candidates, key=operator.attrgetter("cost"))
        return f"preemption: {messages.histogram(total, reasons)}"

    def _try(
        self, trial: _NodeTrial, pod: Pod, guests: Sequence[Pod], protection: Protection
    ) -> dryrun.Candidate | str:
        """The victims on a node, or why there are none (rules 2 and 3)."""
        takes, promised = self._takes(pod), {guest.key for guest in guests}
        relieved = self._capacity.relieved
        try:
            for victim in sorted(trial.pods(), key=dryrun.importance, reverse=True):
                if victim.key not in promised and takes(victim):
                    trial.leave(victim)
            return trial.candidate(pod, protection)
        finally:
            trial.end()
            self._capacity.take_relief(left=relieved)


class _NodeTrial:
    """Pods that are gone from a node and from their quotas for the time of a trial."""

    def __init__(
        self,
        book: CapacityBook,
        columns: Columns,
        *,
        view: View,
        row: int,
        why: Callable[[], str],
    ) -> None:
        """``why``: why the quotas do not admit the pod; empty: they do."""
        self._book, self._columns, self._view, self._row = book, columns, view, row
        self._why = why
        self._gone: dict[str, Pod] = {}

    def pods(self) -> list[Pod]:
        """The pods on the node."""
        return list(self._columns.pods[self._row].values())

    def leave(self, victim: Pod) -> None:
        """Let a pod leave."""
        self._columns.remove(victim)
        self._book.release(victim)
        self._gone[victim.key] = victim

    def _come_back(self, victim: Pod) -> None:
        self._columns.place(self._gone.pop(victim.key), self._row)
        self._book.put(victim)

    def _stays(self, victim: Pod) -> bool:
        self._come_back(victim)
        if self._view.passes(self._row) and not self._why():
            return True
        self.leave(victim)
        return False

    def candidate(self, pod: Pod, protection: Protection) -> dryrun.Candidate | str:
        """Those that cannot come back, or why it is no use that they have left."""
        if not self._gone:
            name = self._columns.chosen(self._row).name
            return f"No victims found on node {name} for preemptor pod {pod.name}"
        if (verdict := self._view.verdict(self._row)) is not None:
            return verdict.reasons[0]
        if self._why():
            return "global quota max exceeded"
        groups = protection.split(sorted(self._gone.values(), key=dryrun.importance))
        return dryrun.reprieved(self._row, groups, self._stays)

    def end(self) -> None:
        """Everything is as before."""
        for victim in list(self._gone.values()):
            self._come_back(victim)
