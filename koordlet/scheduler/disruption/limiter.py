"""The one limiter of everybody who evicts: whether a pod may be evicted now, by a mover.

Covers: the checks in their order, what is debited, fairness among equals. A function of the
picture, of what was evicted, and of the clock that is given. Does not cover: asking the server
(``loop.evictions``), what pods show of themselves (``tracker``).

The first check that refuses gives the reason:
1. ``Shadow``: the mover only watches. The answer carries what it would be told otherwise.
2. ``Gone``: the pod ends already.
3. ``Protected``: it forbids it, or its kind does, or nobody would create it again.
4. ``RateSpent``, ``BelowMinUp``, ``MinGap``: its DisruptionRates.
5. ``PDB``: its disruption budgets, as counted here; the server decides in the end.
6. ``GlobalRate``, ``InFlight``: the whole cluster. A mover's own limit takes the place of the rate.
7. ``NodeRate``: its node, in flight and in five minutes.
8. ``NamespaceRate``: its namespace, in flight.
9. ``ControllerRate``: its workload, in flight, not up, in five minutes.
10. ``Share``: the part of the component; not with a limit of its own.
11. ``CoolDown``: its workload was moved a short while ago.
12. ``Unhealthy``: too many nodes are not ready, or too many pods wait.

A mover that calls back what is somebody else's (``Mover.reclaims``) passes 7, 9, 11 and the pods of
12: they keep moves from doing more harm than good, and the pods that wait are those it makes room
for. A person who wants several moves as a whole (``Mover.planned``) passes 6 to 12, and who empties
a node the priority of 3 as well; the rest of a gang whose first member was let go
(``Mover.follows``) passes 6 to 12.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from koordlet.kubeapi.disruption_rates import Disruption
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption import rate_book, workloads
from koordlet.scheduler.disruption.answers import (
    Allow,
    Answer,
    Asker,
    Clock,
    Defer,
    Deny,
    EvictionRate,
    Mover,
)
from koordlet.scheduler.disruption.pace import FIVE_MINUTES, Eviction, Pace
from koordlet.scheduler.disruption.rate_book import Group, RateBook
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.disruption.workloads import Signature, WorkloadIndex
from koordlet.scheduler.objects import eviction_marks
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.pods import Pod

SYSTEM_CRITICAL = 2_000_000_000
_MINUTE = 60.0
#: The first checks, which hold for several moves that are one, too: a drain, a plan, a gang.
_ALWAYS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    """The state of the cluster."""

    nodes: int = 0
    not_ready: int = 0
    pods: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    pod: Pod
    mover: Mover
    asker: Asker
    signature: Signature | None
    now: Clock
    #: What its DisruptionRates say; two checks ask.
    groups: Callable[[], list[Group]]

    @property
    def shadow(self) -> bool:
        return not self.mover.acts


class Limiter:
    """Answers each mover before each eviction."""

    def __init__(
        self,
        settings: DisruptionSettings,
        known: WorkloadIndex,
        budgets: DisruptionBudgets,
        health: Callable[[], ClusterHealth],
    ) -> None:
        self.settings, self.workloads = settings, known
        self.rates, self.pace = RateBook(settings, known), Pace()
        self.budgets, self._health = budgets, health
        #: What the cluster's bounds were last asked for, and their answer.
        self._cluster_key: object = None
        self._cluster_answer: Deny | Defer | None = None
        self._checks = (
            self._gone, self._protected, self._rates, self._budget, self._cluster, self._node,
            self._namespace, self._controller, self._share, self._cool_down, self._unhealthy,
        )  # fmt: skip

    def configure(self, settings: DisruptionSettings) -> None:
        """Be bound by other settings from now on; what has happened counts as it did."""
        self.settings = settings
        self.rates.configure(settings)

    def may_evict(self, pod: Pod, cause: str, mover: Mover, now: Clock) -> Answer:
        """Whether a mover may evict a pod now."""
        answer = next(self._refusals(pod, cause, mover, now), Allow())
        if mover.acts:
            return answer
        return Deny("Shadow", f"{mover.name} only watches: its mode is Shadow", would=answer)

    def lasting(self, pod: Pod, cause: str, mover: Mover, now: Clock) -> Answer:
        """What keeps a pod longest, for whoever may wait: all checks are asked."""
        several = self._refusals(pod, cause, mover, now)
        return max(several, key=lambda answer: answer.lasts, default=Allow())

    def _refusals(self, pod: Pod, cause: str, mover: Mover, now: Clock) -> Iterator[Deny | Defer]:
        """What refuses an eviction, in the order of the checks."""
        self.pace.expire(now.steady)
        component = rate_book.component(mover.name)
        asker = Asker(
            cause=cause, component=component, shadow=not mover.acts,
            background=component in self.settings.limiter.background,
        )  # fmt: skip
        signature = self.workloads.signature(pod.pod_class)
        groups = functools.cache(lambda: self.rates.groups(pod, self.pace.leaving))
        question = _Question(
            pod=pod, mover=mover, asker=asker, signature=signature, now=now, groups=groups
        )
        checks = self._checks[:_ALWAYS] if mover.planned or mover.follows else self._checks
        answers = (check(question) for check in checks)
        yield from (answer for answer in answers if answer is not None)

    # What follows from an answer.

    def begin(self, pod: Pod, cause: str, mover: Mover, now: Clock) -> None:
        """Debit an eviction that is about to be asked for, or in shadow would be."""
        signature = self.workloads.signature(pod.pod_class)
        shadow = not mover.acts
        entry = Disruption(
            pod=pod.name,
            uid=pod.uid,
            at=now.wall,
            cause=cause,
            by=mover.name,
            controller="" if signature is None else str(signature),
            shadow=shadow,
            asked=not shadow,
        )
        self.rates.record(pod, entry)
        self.pace.begin(
            Eviction(
                uid=pod.uid,
                node=pod.node,
                signature=signature,
                namespace=pod.namespace,
                mover=mover,
                since=now,
                shadow=shadow,
            )
        )

    def accepted(self, pod: Pod, now: Clock) -> None:
        """The server has accepted an eviction."""
        self.rates.answered(pod.uid, accepted=True)
        self.budgets.take((pod,), now.steady)

    def refused(self, pod: Pod) -> None:
        """The server has refused an eviction: nothing is debited."""
        self.rates.answered(pod.uid, accepted=False)
        self.pace.withdraw(pod.uid)

    def settle(self, now: Clock) -> None:
        """Credit evictions whose pod still runs, and forget what is old."""
        for held in (*self.rates, *self.rates.implied()):
            for uid in self.rates.settle(held, now.wall):
                self.pace.withdraw(uid)
        self.pace.expire(now.steady)

    def fairness(self, pod: Pod, now: Clock) -> tuple[float, tuple[int, ...], str]:
        """The order of equal candidates: least disrupted per replica, youngest, by name."""
        per_replica = self.disrupted(pod, now)
        return per_replica, tuple(-ord(letter) for letter in pod.created), pod.key

    def disrupted(self, pod: Pod, now: Clock) -> float:
        """How often the workload of a pod was disrupted in a day, per replica."""
        signature = self.workloads.signature(pod.pod_class)
        times = 0 if signature is None else self.pace.in_a_day(signature, now.wall)
        if signature is None or not times:
            return 0.0
        return times / max(1, self.workloads.expected(self.workloads.members(signature)))

    # The checks.

    def _gone(self, question: _Question) -> Deny | Defer | None:
        pod = question.pod
        if pod.terminating or self.pace.leaves(pod.uid):
            return Deny("Gone", f"{pod.key} ends already, or its eviction is asked for")
        return None

    def _protected(self, question: _Question) -> Deny | Defer | None:
        why = self.protection(question.pod, question.mover)
        return Deny("Protected", why) if why else None

    def protection(self, pod: Pod, mover: Mover) -> str:
        """Why a pod stays whatever happens; empty where it may go."""
        signature = self.workloads.signature(pod.pod_class)
        why = pod.immovable
        if not why and pod.reserve_pod_of:
            why = "it keeps the place of a reservation"
        if not why and signature is not None and signature.kind == "DaemonSet":
            why = "its DaemonSet would create it again on its node"
        if not why and pod.priority >= SYSTEM_CRITICAL and not mover.drains:
            why = f"its priority {pod.priority} is that of system-critical pods"
        lost = signature is None and not (pod.movable or mover.reclaims)
        if not why and lost and not self.rates.covering(pod.pod_class):
            loss = "nobody would create it again; if that is no loss, annotate it with"
            why = f'{loss} {eviction_marks.MOVABLE}: "true"'
        return f"{pod.key} is not evicted: {why}" if why else ""

    def _rates(self, question: _Question) -> Deny | Defer | None:
        refusals = (
            rate_book.refusal(group, question.pod, question.asker, question.now.wall)
            for group in question.groups()
        )
        return next((refusal for refusal in refusals if refusal is not None), None)

    def _budget(self, question: _Question) -> Deny | Defer | None:
        pod = question.pod
        if not pod.up:
            return None  # it may be no loss to the budget: the server knows
        for budget in self.budgets.at(question.now.steady):
            named = budget.means(pod.pod_class) and pod.name not in budget.disrupted
            if named and pod.uid not in budget.taken and budget.allowed <= len(budget.taken):
                return Defer(
                    "PDB",
                    f"a PodDisruptionBudget in {pod.namespace} allows no disruption of {pod.key}"
                    " now: wait until more of its pods are healthy",
                )
        return None

    def _cluster(self, question: _Question) -> Deny | Defer | None:
        """One answer for a mover at one moment, whichever pod it is about."""
        key = question.mover, question.now, self.settings, self.pace.revision
        if key != self._cluster_key:
            self._cluster_key, self._cluster_answer = key, self._of_cluster(question)
        return self._cluster_answer

    def _of_cluster(self, question: _Question) -> Deny | Defer | None:
        mover, now, shadow = question.mover, question.now, question.shadow
        bounds, limit = self.settings.limiter, question.mover.limit
        rate, whose = EvictionRate(self.settings.per_minute, _MINUTE), "the cluster"
        if limit is not None:
            rate, whose = limit, mover.name

        def counts(each: Eviction) -> bool:
            return each.mover.limit is None if limit is None else each.mover.name == mover.name

        times = self.pace.since(now.steady - rate.window_seconds, shadow=shadow, where=counts)
        if (refusal := _rate("GlobalRate", whose, times, rate, now)) is not None:
            return refusal
        flying = self.pace.in_flight(now.steady, shadow=shadow)
        if flying >= bounds.in_flight:
            return Defer("InFlight", _in_flight("the cluster", flying, bounds.in_flight))
        return None

    def _node(self, question: _Question) -> Deny | Defer | None:
        bounds, node, now = self.settings.limiter, question.pod.node, question.now
        if question.mover.reclaims:
            return None
        shadow = question.shadow

        def where(eviction: Eviction) -> bool:
            return eviction.node == node

        flying = self.pace.in_flight(now.steady, shadow=shadow, where=where)
        if flying >= bounds.per_node_in_flight:
            return Defer("NodeRate", _in_flight(f"node {node}", flying, bounds.per_node_in_flight))
        times = self.pace.since(now.steady - FIVE_MINUTES, shadow=shadow, where=where)
        rate = EvictionRate(bounds.per_node_five_minutes, FIVE_MINUTES)
        return _rate("NodeRate", f"node {node}", times, rate, now)

    def _namespace(self, question: _Question) -> Deny | Defer | None:
        most, namespace = self.settings.limiter.per_namespace_in_flight, question.pod.namespace
        if most is None:
            return None
        flying = self.pace.in_flight(
            question.now.steady,
            shadow=question.shadow,
            where=lambda each: each.namespace == namespace,
        )
        if flying < most:
            return None
        return Defer("NamespaceRate", _in_flight(f"namespace {namespace}", flying, most))

    def _controller(self, question: _Question) -> Deny | Defer | None:
        signature, now, shadow = question.signature, question.now, question.shadow
        if question.mover.reclaims or signature is None:
            return None
        bounds = self.settings.limiter
        members = self.workloads.members(signature)
        replicas = self.workloads.expected(members)
        most = workloads.of_replicas(bounds.per_controller_in_flight, replicas)
        flying = self.pace.flying(signature, now.steady, shadow=shadow)
        if len(flying) >= most:
            return Defer("ControllerRate", _in_flight(str(signature), len(flying), most))
        least_up = replicas - workloads.of_replicas(bounds.per_controller_unavailable, replicas)
        up = sum(pod.up and pod.uid not in flying for pod in workloads.each(members))
        if question.pod.up and up - 1 < least_up:
            return Defer(
                "ControllerRate",
                f"{signature} has {up} of {replicas} pods up and needs {least_up} while pods are"
                " moved: wait until more are ready",
            )
        times = self.pace.since(
            now.steady - FIVE_MINUTES,
            shadow=shadow,
            where=lambda each: each.signature == signature,
        )
        rate = EvictionRate(most, FIVE_MINUTES)
        return _rate("ControllerRate", str(signature), times, rate, now)

    def _share(self, question: _Question) -> Deny | Defer | None:
        if question.mover.limit is not None:
            return None
        for group in question.groups():
            if question.asker.cause in group.spec.exempt:
                continue
            refusal = rate_book.share_refusal(
                group, question.asker, self.settings, question.now.wall
            )
            if refusal is not None:
                return refusal
        return None

    def _cool_down(self, question: _Question) -> Deny | Defer | None:
        signature, now = question.signature, question.now
        if question.mover.reclaims or signature is None:
            return None
        last = self.pace.last_move(signature, shadow=question.shadow)
        rest = self.settings.limiter.cool_down_seconds
        if last is None or now.steady - last >= rest:
            return None
        until = now.wall + last + rest - now.steady
        return Deny(
            "CoolDown",
            f"a pod of {signature} was moved less than {rate_book.spelled(rest)} ago: the next is"
            f" allowed at {moment.spell(until)}",
            until,
        )

    def _unhealthy(self, question: _Question) -> Deny | Defer | None:
        health, bounds = self._health(), self.settings.limiter
        if health.not_ready * 100 > bounds.not_ready_percent * health.nodes:
            return Defer(
                "Unhealthy",
                f"{health.not_ready} of {health.nodes} nodes are not ready, more than"
                f" {bounds.not_ready_percent} %: nobody is evicted until they are",
            )
        if question.mover.reclaims:
            return None
        if health.pending * 100 > bounds.pending_percent * health.pods:
            return Defer(
                "Unhealthy",
                f"{health.pending} of {health.pods} pods wait for a node, more than"
                f" {bounds.pending_percent} %: nobody is moved until they have one",
            )
        return None


def _in_flight(where: str, flying: int, most: int) -> str:
    return (
        f"{where} has {flying} evictions in flight, and {most} are allowed: wait until pods are"
        " replaced"
    )


def _rate(reason: str, who: str, times: list[float], rate: EvictionRate, now: Clock) -> Deny | None:
    """Why one eviction more would be too many; ``times`` are those within the window."""
    if len(times) < rate.count:
        return None
    until = None
    if rate.count:
        until = now.wall + times[-rate.count] + rate.window_seconds - now.steady
    when = "" if until is None else f": the next is allowed at {moment.spell(until)}"
    return Deny(
        reason,
        f"{who} may see {rate.count} evictions in {rate_book.spelled(rate.window_seconds)}, and"
        f" {len(times)} happened{when}",
        until,
    )
