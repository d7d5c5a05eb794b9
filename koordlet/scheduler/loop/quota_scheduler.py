"""Quotas in the scheduling loop: what changes, who is admitted, who goes, who is woken.

Covers: the book fed by the core while there is any quota, the plugin's questions, preemption inside
a quota. Does not cover: the arithmetic (``scheduler.quotas``), statuses and revoking.

Rules:
1. Without a quota and a profile there is no book to feed: nobody pays for quotas. The first one
   takes in all nodes and pods; the last one that goes forgets them.
2. Pods in a quota make room inside it alone, those of the default quota where the arguments say so;
   all others leave the pods of quotas to preemption as Kubernetes has it, but for those that are
   marked as not preemptible.
3. A refused pod is woken when its quota admits its class, whatever made the room.
4. A pod whose profile lacks the plugin is refused by the name of its quota.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

from koordlet.kubeapi import elastic_quotas, kinds
from koordlet.kubeapi.elastic_quotas import ElasticQuota, ElasticQuotaProfile
from koordlet.kubeapi.selectors import Requirement
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import dryrun, messages, preemption, profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.preemption import Promised
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.framework.queue import Queue
from koordlet.scheduler.loop.metrics import SchedulerMetrics
from koordlet.scheduler.loop.outcomes import Nominations
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.objects import unserved
from koordlet.scheduler.objects.disruption import DisruptionBudget, Protection
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.plugins import elastic_quota
from koordlet.scheduler.quotas import admission
from koordlet.scheduler.quotas import preemption as quota_preemption
from koordlet.scheduler.quotas.amounts import Amounts, add, smallest
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.history import QuotaAct, QuotaHistory
from koordlet.scheduler.quotas.settings import QuotaSettings
from koordlet.scheduler.quotas.tree import QuotaNode
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.claims import Claim, claim_of

_AWAITED = "preemption: not eligible due to a terminating pod of its quota."


class Core(Protocol):
    """The parts of ``loop.core.Core`` that quotas use."""

    pod_cache: PodCache
    reservations: ReservationCache
    queue: Queue
    cycles: dict[str, Cycle]
    measures: SchedulerMetrics
    nominated: Nominations

    def choose(self, cycle: Cycle, pod: Pod) -> tuple[int, dict[int, framework.Verdict]]:
        """The best node, and those that are promised to others."""

    def forget_views(self, concerned: Callable[[PodClass], bool]) -> None:
        """Forget the views of some classes."""


class QuotaScheduler:
    """The quotas of one scheduler."""

    #: By which profiles say that they heed quotas.
    plugin: ClassVar[type[elastic_quota.ElasticQuotaPlugin]] = elastic_quota.ElasticQuotaPlugin
    #: The kinds of its quotas.
    quota_kinds: ClassVar[tuple[kinds.Kind, ...]] = (kinds.ELASTIC_QUOTAS,)

    #: Whether each write of a status is an event on the quota.
    tells_synced: ClassVar[bool] = False

    def __init__(
        self, core: Core, profiles: Mapping[str, Profile], judge: unserved.UnservedKeys
    ) -> None:
        self._core, self._judge = core, judge
        several = profile.plugins(profiles, self.plugin)
        self.settings = several[0].arguments if several else QuotaSettings()
        self._served = {name for name, served in profiles.items() if served.find(self.plugin)}
        self.book = self._new_book()
        self.history = QuotaHistory()
        #: Whether there is any quota (rule 1).
        self.active = False
        for plugin in several:
            plugin.attach(self)

    def _new_book(self, named: dict[str, str] | None = None) -> QuotaBook:
        return QuotaBook(self.settings, named)

    # What changes in the cluster.

    def put_quota(self, quota: ElasticQuota) -> None:
        """Take in an ElasticQuota, or its newer version."""
        self.book.put_quota(quota)
        self._begin()

    def drop_quota(self, quota: ElasticQuota) -> None:
        """An ElasticQuota has gone."""
        self.book.drop_quota(quota)

    def put_profile(self, quota_profile: ElasticQuotaProfile) -> None:
        """Take in an ElasticQuotaProfile, or its newer version."""
        self.book.put_profile(quota_profile)
        self._begin()

    def drop_profile(self, quota_profile: ElasticQuotaProfile) -> None:
        """An ElasticQuotaProfile has gone."""
        self.book.drop_profile(quota_profile)

    def name_namespace(self, namespace: str, quota: str) -> None:
        """Take in the quota that a Namespace names for its pods; empty: none."""
        self.book.name_namespace(namespace, quota)

    def put_node(self, old: Node | None, new: Node | None) -> None:
        """Take in a change of a node."""
        if self.active:
            self.book.put_node(old, new)

    def put(self, pod: Pod) -> None:
        """Take in a pod as it is known now: in the queue, or on its node."""
        if self.active and (pod.node or pod.pod_class.scheduler in self._core.cycles):
            self.book.put(pod)

    def drop(self, pod: Pod) -> None:
        """A pod has gone."""
        if self.active:
            self.book.drop(pod.key)

    def changed(self, event: ClusterEvent) -> None:
        """A reservation may hold something now, or not any more."""
        pod = event.pod
        if not self.active or pod is None or not pod.reserve_pod_of:
            return
        info = self._core.reservations.by_uid.get(pod.reserve_pod_of)
        if info is not None and info.row >= 0 and info.phase.holds:
            self.book.put(pod)
        elif event.what is ActionType.POD_GONE:
            self.book.drop(pod.key)

    def _begin(self) -> None:
        if self.active or not self.book:
            return
        self.active = True
        for node in self._core.pod_cache.columns.nodes:
            if node is not None:
                self.book.put_node(None, node)
        for pod in self._core.pod_cache:
            self.book.put(pod)
        for entry in self._core.queue:
            self.put(entry.pod)
        for info in self._core.reservations.by_uid.values():
            if info.reserve_pod is not None and info.row >= 0 and info.phase.holds:
                self.book.put(info.reserve_pod)

    def settle(self, now: float) -> None:
        """Bring changes into force, and wake whom they help (rule 3)."""
        if not self.active:
            return
        book = self.book
        if book.settle():
            # Trees keep their pods on their nodes; who may preempt whom may differ anyway.
            self._core.forget_views(lambda _: book.pooled)
        if not book:
            self.active, self.book = False, self._new_book(book.named)
            # The built-in objects without a maximum stay stored: a later quota finds them known.
            for built_in in filter(None, map(book.owner, elastic_quotas.BUILT_IN)):
                self.book.put_quota(built_in)
            self._core.queue.wake_by(self.plugin.name, lambda _: True, now)
        elif book.take_relief():
            self._core.queue.wake_by(self.plugin.name, self._admits, now)

    def _admits(self, pod_class: PodClass) -> bool:
        """Whether a pod of a class with the lowest priority is admitted, or may be by drawing."""
        return claim_of(pod_class) is not None or not admission.refusal(
            self.book, pod_class, -(2**31)
        )

    # What the plugin asks.

    def unserved(self, pod: Pod) -> str:
        """Why a pod is not tried at all; empty: it is (rule 4)."""
        scheduler = pod.pod_class.scheduler
        if not self.active or scheduler in self._served or self._judge.ignores_keys:
            return ""
        node = self._quota(pod.pod_class)
        if node is None:
            return ""
        return (
            f"quota {node.name} is not heeded: profile {scheduler} has no plugin"
            f" {self.plugin.name}; enable it"
        )

    def refusal(self, pod: Pod) -> str:
        """Why a quota does not admit a pod; empty: it does, or may where it draws."""
        if not self.active:
            return ""
        if pod.reserve_pod_of and self.book.get(pod.key) is None:
            # No pod of the store: what it asks for is known from its first attempt on.
            self.book.put(pod)
        why = self._why(pod)
        return "" if why and self._may_draw(pod) else why

    def refused(self, pod: Pod, failure: framework.Failure, now: float) -> None:
        """Count a pod that its quota refused."""
        if self.plugin.name in failure.by and (node := self.book.of(pod.pod_class)) is not None:
            self._core.measures.quota_refusals[node.name,] += 1
            self.history.note_pod(node.name, pod.key, QuotaAct.REFUSED, now)

    def _may_draw(self, pod: Pod) -> bool:
        """Whether a pod is admitted with what some reservation gives it."""
        claim = self._claim(pod)
        if claim is None:
            return False
        several = (info for row in claim.rows for info in claim.usable(row))
        return any(not self._why(pod, info.free()) for info in several)

    def _why(self, pod: Pod, drawn: Amounts | None = None) -> str:
        """Why a pod is not admitted with what a reservation gives it; empty: it is."""
        return admission.refusal(self.book, pod.pod_class, pod.priority, drawn)

    def _claim(self, pod: Pod) -> Claim | None:
        """The reservations that a pod may draw on."""
        cycle = self._core.cycles.get(pod.pod_class.scheduler)
        return claim_of(cycle.class_for(pod)) if cycle is not None else None

    def selector(self, pod_class: PodClass) -> tuple[Requirement, ...]:
        """What nodes satisfy that a class is kept on; empty: all nodes do."""
        return self.book.selector(pod_class) if self.active else ()

    def assumed(self, pod: Pod) -> None:
        """A pod got a node; ``RefusedError`` where it was to draw on a reservation and does not."""
        if not self.active:
            return
        if not pod.draws_on and self._claim(pod) is not None and (why := self._why(pod)):
            raise framework.RefusedError(why)
        self.book.put(pod)

    def released(self, pod: Pod) -> None:
        """A pod gave its node back."""
        if self.active:
            self.book.release(pod)

    def gang_refusal(self, members: Sequence[Pod], needs: Mapping[str, int]) -> str:
        """Why a quota cannot admit the members of gangs together; empty: it may.

        ``needs``: by gang, how many of its members must be decided.
        """
        if not self.active or any(self._claim(pod) is not None for pod in members):
            return ""
        by_quota: dict[str, dict[str, list[Pod]]] = {}
        numbers = Counter(pod.gang.key for pod in members if pod.gang is not None)
        for pod in members:
            node = self.book.of(pod.pod_class)
            if node is not None and pod.gang is not None:
                gangs = by_quota.setdefault(node.name, {})
                gangs.setdefault(pod.gang.key, []).append(pod)
        for name, gangs in by_quota.items():
            asked: dict[str, int] = {}
            for key, several in gangs.items():
                # Others of the gang may be those that are decided.
                least = needs.get(key, 0) - (numbers[key] - len(several))
                add(asked, smallest([self.book.requests(pod.pod_class) for pod in several], least))
            ids = ",".join(sorted(key.partition("@")[0] for key in gangs))
            if why := self._gang_why(ids, self.book.nodes[name], asked):
                return why
        return ""

    def _gang_why(self, name: str, node: QuotaNode, asked: Amounts) -> str:
        return admission.gang_refusal(self.book, name, node, asked)

    # Making room.

    def _quota(self, pod_class: PodClass) -> QuotaNode | None:
        """The quota of a class; ``None``: it is in none, the default or the system quota."""
        node = self.book.of(pod_class) if self.active else None
        return None if node is None or node.tree is self.book.aside else node

    def _preempts_in(self, pod: Pod) -> QuotaNode | None:
        """The quota inside which a pod makes room; ``None``: it preempts as Kubernetes has it."""
        node = self.book.of(pod.pod_class) if self.active else None
        if node is not None and node.name == elastic_quotas.DEFAULT:
            return node if self.settings.preempts_in_default else None
        return self._quota(pod.pod_class)

    def eligible(self, pod: Pod) -> dryrun.Eligible:
        """Who may be a victim of a pod (rule 2)."""
        node = self._preempts_in(pod)
        if node is None:
            return dryrun.anybody
        return lambda victim: self.book.of(victim.pod_class) is node

    def awaits(self, _pod: Pod) -> bool:
        """Whether a pod waits for victims that leave, whatever their priority."""
        return False

    def preempt(
        self,
        cycle: Cycle,
        pod: Pod,
        failure: framework.Failure,
        budgets: Sequence[DisruptionBudget],
        promised: Promised,
    ) -> dryrun.Candidate | str:
        """The node to preempt on and the victims, or why there is none."""
        on_nodes = functools.partial(
            preemption.attempt,
            *(cycle, pod),
            budgets=budgets,
            promised=promised,
            eligible=self.eligible(pod),
        )
        node = self._preempts_in(pod)
        if node is None or self.plugin.name not in failure.by or failure.verdicts is not None:
            return on_nodes(failure)
        if not pod.preempts:
            return "preemption: not eligible due to preemptionPolicy=Never."

        def choose() -> dryrun.Candidate | None:
            row, promises = self._core.choose(cycle, pod)
            if row >= 0:
                return dryrun.Candidate.of(row, (), 0)
            chosen = on_nodes(cycle.failure(pod, promises))
            return chosen if isinstance(chosen, dryrun.Candidate) else None

        chosen = quota_preemption.attempt(
            *(self.book, cycle.columns, quota_preemption.candidates(self.book, node, pod)),
            admitted=lambda: not self._why(pod),
            protection=Protection(budgets),
            choose=choose,
            disrupted=cycle.dry_runs.disrupted,
        )
        total = len(cycle.columns.rows)
        if chosen is None:
            return f"preemption: {messages.histogram(total, [messages.NO_VICTIMS] * total)}"
        if all(victim.terminating for victim in chosen.victims):
            return _AWAITED
        return chosen
