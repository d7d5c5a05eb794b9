"""A cluster as a process watches it that is no scheduler: informers, core, limiter, evictions.

Covers: wiring them. Does not cover: what they do; deciding (``descheduler``,
``migration_controller``). A scheduler's own loop (``runner``) has the same parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from koordlet.kubeapi import objects
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.disruption import disruptions
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import (
    agents,
    avoidance_controller,
    event_handlers,
    event_messages,
    evictions,
    health,
)
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.runner import Clocks
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources


class ClusterWatch:
    """One cluster, over one store."""

    alone = False

    def __init__(
        self,
        store: objects.Objects,
        profiles: Mapping[str, profile.Profile],
        disruption: DisruptionSettings,
        clocks: Clocks,
        *,
        instance: str,
        leads: Callable[[], bool],
    ) -> None:
        steady, wall = clocks.steady, clocks.wall
        self.core = Core(profiles)
        self.agents = agents.Agents(self.core, profiles, steady, wall)
        self.disruptions = disruptions.Disruptions(
            disruption,
            self.core.pod_cache.stored,
            self.core.budgets,
            functools.partial(health.of, self.core),
            lambda: Clock(wall=wall(), steady=steady()),
        )
        self._allocations = AllocationState()
        for plugin in profile.plugins(profiles, DynamicResources):
            plugin.attach(self._allocations, None)
        self.sources = event_handlers.EventHandlers(
            store, self.core, profiles, steady, lambda: None,
            agents=self.agents, disruptions=self.disruptions, allocations=self._allocations,
        )  # fmt: skip
        self.evictions = evictions.Evictions(
            store,
            self.disruptions.limiter,
            self.core.measures,
            event_messages.EventBuilder(instance, wall),
            steady,
            leads=leads,
            avoid=avoidance_controller.AvoidanceController(
                store, self.disruptions.avoidances, self.core.measures, wall, lambda *_: True
            ).avoid,
        )

    def tidy(self) -> None:
        """Bring up to date what only time changes."""
        self.agents.look()
        self.core.nominated.withdrawn.clear()
        self.core.tidy()
        self._allocations.tidy(self.core.queue.get)
        self.disruptions.limiter.settle(self.disruptions.now())
