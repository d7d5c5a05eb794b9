"""What the cycle of a group needs of the core.

Covers: the parts of ``loop.core.Core`` by name. Does not cover: what they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.events import ClusterEvent
from koordlet.scheduler.framework import dryrun
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.queue import Queue
from koordlet.scheduler.loop.assumptions import Assumptions
from koordlet.scheduler.loop.metrics import SchedulerMetrics
from koordlet.scheduler.loop.outcomes import Nominations, Refusal
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.loop.quota_scheduler import QuotaScheduler
from koordlet.scheduler.loop.recent_decisions import RecentDecisions
from koordlet.scheduler.loop.victims import Victims
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.cache import ReservationCache


class GangCore(Protocol):
    """The parts of ``loop.core.Core`` that gangs use."""

    pod_cache: PodCache
    queue: Queue
    nominated: Nominations
    cycles: dict[str, Cycle]
    assumptions: Assumptions
    reservations: ReservationCache
    decisions: RecentDecisions
    measures: SchedulerMetrics
    victims: Victims
    budgets: DisruptionBudgets
    quotas: QuotaScheduler
    disrupted: dryrun.Disrupted | None

    def spent(self) -> float:
        """CPU or wall seconds, for metrics."""

    def why_never(self, pod: Pod) -> str:
        """Why a pod is not tried at all."""

    def choose(
        self, cycle: Cycle, pod: Pod, outside: Mapping[int, framework.Verdict]
    ) -> tuple[int, dict[int, framework.Verdict]]:
        """The best node that is not ``outside``; those, and the ones promised to others."""

    def keep(self, pod: Pod, now: float) -> None:
        """Record that a pod keeps the node that it is assumed on."""

    def refuse(self, cycle: Cycle, pod: Pod, failure: framework.Failure, now: float) -> Refusal:
        """Park a pod that no node takes, or make room for it."""

    def awaits(self, pod: Pod) -> bool:
        """Whether a pod is still assumed on its node."""

    def wake(self, event: ClusterEvent, now: float) -> None:
        """Wake the pods that an event may help."""

    def enqueue(self, pod: Pod, now: float) -> None:
        """Let a waiting pod enter the queue, or keep it before it."""
