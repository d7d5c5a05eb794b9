"""Writes the status of DisruptionRates, which is also where their ledgers survive a restart.

Covers: which rates have changed, writing, pods that vanished. Does not cover: what the status
should be (``disruption.rate_status``).

Rules:
1. A status is written when it differs from the stored one, every ``BEAT`` seconds at most.
2. Time changes windows: all rates are looked at each ``RESYNC`` seconds, and what lapsed is
   credited.
3. A write that fails is derived and written again after ``RETRY`` seconds. A rate that has gone is
   no error.
4. A covered pod that vanished without having been seen to end is read once: one that has failed
   with a cause is a disruption, as when its kubelet evicts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from koordlet import log
from koordlet.kubeapi import disruption_rates, kinds, objects, refusals
from koordlet.scheduler.disruption import rate_status
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.disruptions import Disruptions
from koordlet.scheduler.disruption.rate_book import HeldRate
from koordlet.scheduler.loop.binder import ref
from koordlet.scheduler.loop.metrics import Gauges, SchedulerMetrics
from koordlet.scheduler.objects import eviction_marks, wire
from koordlet.scheduler.objects.eviction_marks import Leaving
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError

BEAT, RESYNC, RETRY = 0.5, 5.0, 10.0


class DisruptionRateController:
    """Writes the status of DisruptionRates."""

    def __init__(
        self, store: objects.Objects, disruptions: Disruptions, measures: SchedulerMetrics
    ) -> None:
        self._store, self._disruptions, self._measures = store, disruptions, measures
        self._looked = -RESYNC
        #: When rates whose write failed are looked at again.
        self._again: dict[str, float] = {}
        #: Codes of failures that are logged already.
        self._logged: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(BEAT)

    async def look(self) -> None:
        """Write the statuses that differ."""
        now, book = self._disruptions.now(), self._disruptions.limiter.rates
        await self._read_vanished()
        for held in self._due(now):
            stored = held.stored
            if stored is None:
                continue
            leaving = self._disruptions.limiter.pace.leaving
            wanted = rate_status.derive(book, held, stored, leaving=leaving, now=now.wall)
            if any(stored.status.get(key) != value for key, value in wanted.items()):
                await self._write(held, stored, wanted, now)

    def gauges(self) -> Gauges:
        """For each rate whether a disruption is allowed, and in how many seconds it will be."""
        now = self._disruptions.now().wall
        gauges: Gauges = {}
        for held in self._disruptions.limiter.rates:
            status = held.stored.status if held.stored is not None else {}
            labels = ("namespace", held.namespace), ("name", held.name)
            several = objects.parts(status, "conditions")
            allowed = next((each for each in several if each.get("type") == "Allowed"), {})
            gauges["koordlet_disruption_allowed", labels] = float(allowed.get("status") == "True")
            seconds = rate_status.next_allowed(status, now)
            gauges["koordlet_disruption_next_allowed_seconds", labels] = seconds
        return gauges

    def _due(self, now: Clock) -> Iterator[HeldRate]:
        """The rates to look at: what has changed, what is tried again, at times all of them."""
        limiter = self._disruptions.limiter
        keys = dict(limiter.rates.touched)
        limiter.rates.touched.clear()
        if now.steady - self._looked >= RESYNC:
            self._looked = now.steady
            limiter.settle(now)
            keys |= {f"{held.namespace}/{held.name}": None for held in limiter.rates}
        for key in keys:
            if self._again.get(key, now.steady) > now.steady:
                continue
            self._again.pop(key, None)
            held = limiter.rates.get(key)
            if held is not None:
                yield held

    async def _write(
        self,
        held: HeldRate,
        stored: disruption_rates.DisruptionRate,
        status: dict[str, Any],
        now: Clock,
    ) -> None:
        # What the new status lacks is removed.
        gone = dict.fromkeys(stored.status.keys() - status.keys())
        body = {"metadata": {"uid": stored.uid}, "status": {**gone, **status}}
        where = objects.Ref(kinds.DISRUPTION_RATES, held.name, held.namespace)
        try:
            await self._store.patch(where, objects.Merge(body), subresource="status")
        except refusals.NotFound:
            return  # the watch says so as well
        except refusals.ObjectsError as error:
            self._measures.asked("disruption_rate", error.code)
            self._again[stored.key] = now.steady + RETRY
            if error.code not in self._logged:
                self._logged.add(error.code)
                log.get().warning("scheduler.disruption_rate_status", detail=str(error))
        else:
            self._measures.asked("disruption_rate", "ok")

    async def _read_vanished(self) -> None:
        """Rule 4."""
        tracker = self._disruptions.tracker
        vanished, tracker.vanished[:] = tracker.vanished.copy(), []
        for pod in vanished:
            leaving = await self._failed(pod)
            if leaving is not None:
                tracker.record(pod, leaving)

    async def _failed(self, pod: Pod) -> Leaving | None:
        """How a pod that is no more among the living ended; ``None``: nobody disrupted it."""
        try:
            body = await self._store.get(ref(pod))
            meta, status = wire.mapping(body, "metadata"), wire.mapping(body, "status")
            fields = eviction_marks.read(meta, eviction_marks.true_conditions(status))
        except (refusals.ObjectsError, BadObjectError):
            return None
        leaving = fields.get("leaving")
        if objects.text(body, "uid") != pod.uid or not isinstance(leaving, Leaving):
            return None
        if not leaving.cause:
            return None
        return Leaving(leaving.cause, leaving.by, leaving.at or self._disruptions.now().wall)
