"""Everything about disruptions of one scheduler, wired: workloads, limiter, tracker, avoid lists.

Covers: which change of the cluster concerns which of them. Does not cover: what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from koordlet.kubeapi.disruption_rates import DisruptionRate
from koordlet.kubeapi.node_avoidances import AvoidList
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.avoidance_book import AvoidanceBook
from koordlet.scheduler.disruption.front_tokens import FrontTokens
from koordlet.scheduler.disruption.limiter import ClusterHealth, Limiter
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.disruption.tracker import DisruptionTracker
from koordlet.scheduler.disruption.workloads import WorkloadIndex
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.owners import PodOwner
from koordlet.scheduler.objects.pods import Pod


class Disruptions:
    """The limiter, with what it knows."""

    def __init__(
        self,
        settings: DisruptionSettings,
        placed: Callable[[], Iterable[Pod]],
        budgets: DisruptionBudgets,
        health: Callable[[], ClusterHealth],
        now: Callable[[], Clock],
    ) -> None:
        """``placed``: all pods that the store shows on a node."""
        self.now = now
        self.limiter = Limiter(settings, WorkloadIndex(placed), budgets, health)
        self.fronts = FrontTokens()
        self.tracker = DisruptionTracker(self.limiter, self.fronts)
        self.avoidances = AvoidanceBook(self.limiter.workloads.signature, lambda: self.now().wall)

    def owner(self, old: PodOwner | None, new: PodOwner | None) -> None:
        """A controller comes, changes or goes."""
        if new is not None:
            self.limiter.workloads.put_owner(new)
        elif old is not None:
            self.limiter.workloads.drop_owner(old)

    def rate(self, old: DisruptionRate | None, new: DisruptionRate | None) -> None:
        """A DisruptionRate comes, changes or goes."""
        if new is not None:
            self.limiter.rates.put(new)
        elif old is not None:
            self.limiter.rates.drop(old.key)

    def avoidance(self, old: AvoidList | None, new: AvoidList | None) -> None:
        """The avoid list of a node comes, changes or goes."""
        if new is not None:
            self.avoidances.put(new)
        elif old is not None:
            self.avoidances.drop(old.node)

    def fronted(self, pod: Pod) -> bool:
        """Whether a pod that has come shall be tried before its equals; asked once."""
        signature = self.limiter.workloads.signature(pod.pod_class) if self.fronts else None
        return self.fronts.take(signature, pod.created)

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod comes, changes or goes."""
        self.tracker.pod(old, new, self.now())
