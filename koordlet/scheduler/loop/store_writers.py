"""Who writes to the store for a scheduler that leads, beside the binder.

Covers: making each of them, and running them together. Does not cover: what each writes (their
modules).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from koordlet.kubeapi import objects
from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.disruption.disruptions import Disruptions
from koordlet.scheduler.disruption.workloads import Signature
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.loop import (
    avoidance_controller,
    claim_writer,
    disruption_rate_controller,
    event_messages,
    evictions,
    held_place,
    pod_group_controller,
    quota_controller,
    reporter,
    reservation_controller,
    revoke_controller,
)
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.objects.pods import Pod

Clock = Callable[[], float]


class StoreWriters:
    """The writers of one scheduler."""

    def __init__(
        self,
        store: objects.Objects,
        core: Core,
        disruptions: Disruptions,
        allocations: AllocationState,
        profiles: Mapping[str, Profile],
        *,
        instance: str,
        steady: Clock,
        wall: Clock,
        leads: Callable[[], bool],
        wrote: Callable[[Pod, str], None],
        budget: reporter.EventBudget | None,
    ) -> None:
        self._core, self._disruptions = core, disruptions
        events = event_messages.EventBuilder(instance, wall)
        limiter, quotas = disruptions.limiter, core.quotas
        self.held_places = held_place.HeldPlaces(
            store, core, lambda: limiter.settings.preemption.hold_place
        )
        self.reporter = reporter.Reporter(
            store,
            core,
            steady,
            events,
            budget,
            places=self.held_places,
            leads=leads,
            wrote=wrote,
        )
        self.claim_writer = claim_writer.ClaimWriter(
            store,
            allocations,
            wall,
            core.pod_cache.assumed.__contains__,
            self.reporter.devices_pending,
            leads=leads,
        )
        self.reservation_controller = reservation_controller.ReservationController(
            store, core, steady, events, reservation_controller.arguments(profiles)
        )
        self.pod_group_controller = pod_group_controller.PodGroupController(
            store, core, steady, wall
        )
        self.avoidance_controller = avoidance_controller.AvoidanceController(
            store, disruptions.avoidances, core.measures, wall, self._avoidance_stands
        )
        self.evictions = evictions.Evictions(
            store,
            limiter,
            core.measures,
            events,
            steady,
            leads=leads,
            avoid=self.avoidance_controller.avoid,
        )
        self.revoke_controller = revoke_controller.RevokeController(
            lambda: quotas.book, quotas.settings, self.evictions, quotas.history
        )
        self.quota_controller = quota_controller.QuotaController(
            store, core, events, self.evictions.tell, steady
        )
        self.disruption_rate_controller = disruption_rate_controller.DisruptionRateController(
            store, disruptions, core.measures
        )

    def _avoidance_stands(self, node: str, entry: Avoidance) -> bool:
        """Whether node and controller of an entry are there."""
        namespace, kind, name = entry.workload
        signature = Signature(namespace, kind, name)
        known = self._disruptions.limiter.workloads
        return node in self._core.pod_cache.columns.rows and known.stands(signature)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Have all of them work until the group ends."""
        for writer in (
            self.reporter,
            self.held_places,
            self.reservation_controller,
            self.pod_group_controller,
            self.disruption_rate_controller,
            self.avoidance_controller,
            self.revoke_controller,
            self.quota_controller,
            self.claim_writer,
        ):
            group.create_task(writer.run())
