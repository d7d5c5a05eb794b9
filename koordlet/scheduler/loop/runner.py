"""The scheduling loop: watch the cluster, try pods, bind and report while leading.

Covers: starting in order, sharing the one thread between deciding and everything else, stopping.
Does not cover: each of those (the other modules of this room).

Rules:
1. Decisions are made in slices of ``SLICE`` seconds; between slices the loop takes in answers and
   changes.
2. No decision is made before all informers are synced, while another scheduler leads, or while the
   binder is behind.
3. The end of one part ends all: a process that has lost its lease or its watches restarts and reads
   everything from the store, which is the only memory.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Mapping

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import nodereport
from koordlet.model.record import dataclass
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.disruption import disruptions
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework.profile import Profile, deciding, plugins
from koordlet.scheduler.framework.queue import Backoff, QueuePlace
from koordlet.scheduler.loop import (
    agents,
    binder,
    election,
    event_handlers,
    fair_preemption,
    health,
    reporter,
    store_writers,
)
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.metrics import Gauges
from koordlet.scheduler.loop.outcomes import Bind, Hold
from koordlet.scheduler.objects import unserved
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources
from koordlet.scheduler.plugins.volume_binding import VolumeBinding
from koordlet.scheduler.quotas import summary as quota_summary

SLICE = 0.005
#: How often time itself may have changed something: a backoff that ended.
_BEAT = 0.5
_TIDY = 10.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """The monotonic clock for waiting, and the one by which objects are dated."""

    steady: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


class Loop:
    """One scheduler over one store."""

    def __init__(
        self,
        store: objects.Objects,
        profiles: Mapping[str, Profile],
        *,
        instance: str,
        clocks: Clocks | None = None,
        terms: election.Terms | None = None,
        budget: reporter.EventBudget | None = None,
        lanes: int = binder.LANES,
        first: float = 0.2,
        backoff: Backoff | None = None,
        judge: unserved.UnservedKeys | None = None,
        disruption: DisruptionSettings | None = None,
        alone: bool = False,
    ) -> None:
        """``alone``: no kubelet says which pods are ready, no volume controller binds claims."""
        self._clocks = Clocks(wall=store.now) if clocks is None else clocks
        steady = self._clocks.steady
        disruption = disruption or DisruptionSettings()
        self.alone = alone
        self.core = Core(
            profiles,
            backoff=backoff,
            decoder=Decoder({}, deciding(profiles.values()), judge, presumes_ready=alone),
            disrupted=self._disrupted,
            fair=fair_preemption.FairPreemption(lambda: self.disruptions),
            front_across_priorities=disruption.front_across_priorities,
        )
        self.core.gangs.pausing = True
        self.agents = agents.Agents(self.core, profiles, steady, self._clocks.wall)
        self.disruptions = disruptions.Disruptions(
            disruption,
            self.core.pod_cache.stored,
            self.core.budgets,
            functools.partial(health.of, self.core),
            lambda: Clock(wall=self._clocks.wall(), steady=steady()),
        )
        self.allocations = AllocationState()
        self.sources = event_handlers.EventHandlers(
            store,
            self.core,
            profiles,
            steady,
            self._poke,
            agents=self.agents,
            disruptions=self.disruptions,
            allocations=self.allocations,
        )

        def leads() -> bool:
            return self.leading

        def wrote(pod: Pod, revision: str) -> None:
            self.sources.informers[kinds.PODS].wrote((pod.namespace, pod.name), pod, revision)

        self.writers = store_writers.StoreWriters(
            store,
            self.core,
            self.disruptions,
            self.allocations,
            profiles,
            instance=instance,
            steady=steady,
            wall=self._clocks.wall,
            leads=leads,
            wrote=wrote,
            budget=budget,
        )
        self.reporter, self.evictions = self.writers.reporter, self.writers.evictions
        self.reservation_controller = self.writers.reservation_controller
        for plugin in plugins(profiles, DynamicResources):
            plugin.attach(self.allocations, self.writers.claim_writer)
        promised: dict[str, tuple[str, str]] = {}
        for binding in plugins(profiles, VolumeBinding):
            binding.attach(None if alone else steady, promised)
        self.binder = binder.Binder(
            store, self.core, self._bound, steady, lanes=lanes, first=first, leads=leads
        )
        #: ``None``: nobody else can be there, as with a file that only we open.
        self.election = (
            None
            if terms is None
            else election.Election(store, instance, steady, self._clocks.wall, terms)
        )
        self.instance = instance
        self._moved = asyncio.Event()
        self.ready = False
        #: Set as soon as it decides.
        self.leads = asyncio.Event()
        #: When it was last decided, or seen that there is nothing to decide; ``None`` before that.
        self.beat: float | None = None

    def report(self, report: nodereport.NodeReport) -> None:
        """Take in an agent's report; called in the loop."""
        self.agents.report(report)
        self._poke()

    def _disrupted(self, pod: Pod) -> float:
        """How often the workload of a pod was disrupted of late."""
        now = Clock(wall=self._clocks.wall(), steady=self._clocks.steady())
        return self.disruptions.limiter.disrupted(pod, now)

    def _poke(self) -> None:
        self._moved.set()
        self.reservation_controller.poke()

    def _bound(self, bind: Bind, error: refusals.ObjectsError | None) -> None:
        if error is not None:
            self.core.decisions.failed(bind, f"binding rejected: {error}", self.now())
        self.reporter.bound(bind, error)
        self._poke()

    async def run(self) -> None:
        """Run until cancelled; raises the error of the first part that ends."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.sources.run())
                await self.sources.synced()
                if self.election is not None:
                    standing_by = group.create_task(self._standing_by())
                    await self.election.acquire()
                    standing_by.cancel()
                    group.create_task(self.election.hold())
                log.get().info("scheduler.leading", nodes=len(self.core.pod_cache.columns.rows))
                self.ready = True
                self.leads.set()
                group.create_task(self.binder.run())
                self.writers.start(group)
                group.create_task(self._deciding())
                group.create_task(self._beating())
        finally:
            self.ready, self.beat = False, None
            if self.election is not None:
                await self.election.release()

    async def _standing_by(self) -> None:
        """Keep what it knows small, however long another leads."""
        while True:
            await asyncio.sleep(_TIDY)
            # Nobody was refused yet, and waits for room.
            self.core.nominated.withdrawn.clear()
            self.core.tidy()

    async def _deciding(self) -> None:
        steady = self._clocks.steady
        tidied = steady()
        while True:
            self._moved.clear()
            self.beat = steady()
            self.agents.look()
            if self._slice():
                await asyncio.sleep(0)
                continue
            if steady() - tidied > _TIDY:
                # Twice as far back: a beat more or less must not hide anybody.
                self.agents.expire(2 * (steady() - tidied))
                tidied = steady()
                self.core.tidy()
                self.allocations.tidy(self.core.queue.get)
            await self._moved.wait()

    async def _beating(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            self._moved.set()

    def _slice(self) -> bool:
        """Try pods for one slice; whether there may be more to do at once."""
        steady, started = self._clocks.steady, time.perf_counter()
        for notice in self.core.gangs.book.take_notices():
            self.reporter.noticed(notice.pod, notice.reason, notice.message)
        while time.perf_counter() - started < SLICE:
            if self.binder.backlog >= binder.BACKLOG:
                return False
            if not self.leading:
                return False
            outcome = self.core.step(steady())
            if outcome is None:
                return self.core.gangs.paused
            if isinstance(outcome, Bind):
                self.binder.submit(outcome)
            elif isinstance(outcome, Hold):
                self.reservation_controller.submit(outcome)
            else:
                self.reporter.refused(outcome)
                if outcome.pod.reserve_pod_of:
                    self.reservation_controller.refused(outcome.pod, outcome.message)
        return True

    @property
    def leading(self) -> bool:
        """Whether this scheduler is the leader now."""
        return self.election is None or self.election.leading

    def now(self) -> float:
        """The time by the clock of the queue and of the recent decisions."""
        return self._clocks.steady()

    def metrics(self, more: Gauges | None = None) -> str:
        """The text of ``/metrics``; ``more``: of what works beside it."""
        core, writers = self.core, self.writers
        gauges = dict(more or {})
        for place in (
            QueuePlace.ACTIVE,
            QueuePlace.BACKOFF,
            QueuePlace.UNSCHEDULABLE,
            QueuePlace.GATED,
        ):
            labels = (("queue", place.value),)
            gauges["scheduler_pending_pods", labels] = core.queue.count(place)
        for kind, size in (
            ("nodes", len(core.pod_cache.columns.rows)),
            ("pods", len(core.pod_cache)),
            ("assumed_pods", len(core.pod_cache.assumed)),
            ("reporting_nodes", len(self.agents.reporting())),
        ):
            gauges["scheduler_cache_size", (("type", kind),)] = size
        gauges |= writers.disruption_rate_controller.gauges()
        gauges |= quota_summary.gauges(core.quotas.book)
        gauges["koordlet_scheduler_gangs_waiting", ()] = core.gangs.waiting()
        gauges["koordlet_scheduler_node_avoidance_entries", ()] = self.disruptions.avoidances.live()
        gauges["koordlet_scheduler_held_places", ()] = sum(1 for _ in writers.held_places.places())
        gauges["scheduler_homeless_pods", ()] = core.pod_cache.homeless()
        gauges["leader_election_master_status", (("name", "koordlet-scheduler"),)] = int(
            self.leading
        )
        return core.measures.text(gauges)
