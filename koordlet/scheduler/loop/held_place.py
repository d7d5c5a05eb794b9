"""The place of a preemptor: a reservation over the room of its victims, for itself alone.

Covers: making it before the victims are sent away, giving it back, what the scheduler concludes
from it. Does not cover: the object (``rescheduling.plan_room``), that it waits until its room is
free (``reservation.preallocation``).

Without it the preemptor is nominated for its node, which binds pods of its priority and below.

1. A place is made only where ``preemption.holdPlace`` says so. Where it cannot be made, the victims
   go all the same, and the nomination is all that there is.
2. Once it is available, it stands in for the nomination, so that room is not counted twice. Before
   that it holds what victims have freed, and the nomination counts as well: for what was free.
   A more important pod does not withdraw the nomination of one whose place has its node.
3. A new decision about the same pod replaces its place. It goes once the pod is bound, gone, or not
   nominated any more, and ends by itself after ``TTL`` seconds.
4. A gang has none: its members wait for one another, and its preemption is for them all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.queue import Queue, QueuePlace
from koordlet.scheduler.loop.metrics import SchedulerMetrics
from koordlet.scheduler.loop.outcomes import Nominations, Refusal
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.reservation import Reservation
from koordlet.scheduler.rescheduling import plan_room
from koordlet.scheduler.reservation import keys, preallocation
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import Phase

TTL, LOOK = 600.0, 1.0


class Core(Protocol):
    """The parts of ``loop.core.Core`` that places are about."""

    queue: Queue
    nominated: Nominations
    reservations: ReservationCache
    cycles: dict[str, Cycle]
    measures: SchedulerMetrics


def name(pod: Pod) -> str:
    """The name of the place of a pod."""
    return f"place-{pod.uid}"


def holds(reservations: ReservationCache, pod: Pod, other: Pod) -> bool:
    """Whether the nomination of a pod is nothing to ``other``, as a place is held (rule 2)."""
    place = reservations.named(name(pod)) if reservations.by_uid else None
    if place is None or other.reserve_pod_of == place.spec.uid:
        return place is not None
    return place.row >= 0 and (place.phase is Phase.AVAILABLE or other.priority > pod.priority)


def comes(reservations: ReservationCache, pod: Pod) -> bool:
    """Whether the room of a pod's place is free, and the place is about to be its own."""
    place = reservations.named(name(pod))
    if place is None or place.phase is not Phase.WAITING:
        return False
    return preallocation.released(place, reservations.columns)


class HeldPlaces:
    """The places of all preemptors of one scheduler."""

    def __init__(self, store: objects.Objects, core: Core, wanted: Callable[[], bool]) -> None:
        self._store, self._core, self._wanted = store, core, wanted

    def wants(self, refusal: Refusal) -> bool:
        """Whether the pod of a refusal is to have a place."""
        pod = refusal.pod
        if not (refusal.leaving and self._wanted()) or pod.reserve_pod_of or pod.gang is not None:
            return False
        return self._core.cycles[pod.pod_class.scheduler].profile.find(Reservation) is not None

    async def hold(self, refusal: Refusal) -> None:
        """Make the place of a preemptor, in place of an earlier one."""
        pod, measures = refusal.pod, self._core.measures
        leaving = [victim for victim in refusal.leaving if victim.node == refusal.node]
        named = {"name": name(pod), "annotations": {keys.PLACE_OF: pod.key}}
        try:
            if (known := self._core.reservations.named(name(pod))) is not None:
                await self._drop(known)
            stored = await self._store.get(objects.Ref(kinds.PODS, pod.name, pod.namespace))
            body = plan_room.place(named, refusal.node, stored, pod, leaving, ttl=TTL)
            await self._store.create(kinds.RESERVATIONS, body)
        except refusals.ObjectsError as error:
            measures.asked("place", error.code)
            log.get().warning("scheduler.place_not_held", pod=pod.key, detail=str(error)[:300])
        else:
            measures.asked("place", "ok")

    async def run(self) -> None:
        """Give back what is held for nobody, until cancelled."""
        while True:
            await asyncio.sleep(LOOK)
            if self._wanted():
                await self.look()

    async def look(self) -> None:
        """Give back what is held for nobody (rule 3)."""
        for place in [place for place in self.places() if not self._serves(place)]:
            try:
                await self._drop(place)
            except refusals.ObjectsError as error:
                self._core.measures.asked("place", error.code)

    def places(self) -> Iterator[ReservationInfo]:
        """All places of preemptors."""
        several = self._core.reservations.by_uid.values()
        return (info for info in several if keys.PLACE_OF in info.spec.annotations)

    def _serves(self, place: ReservationInfo) -> bool:
        """Whether the pod of a place waits for it, or is being bound."""
        entry = self._core.queue.get(place.spec.annotations[keys.PLACE_OF])
        if entry is None or name(entry.pod) != place.spec.name:
            return False
        return entry.place is QueuePlace.TAKEN or bool(self._core.nominated.node(entry.pod))

    async def _drop(self, place: ReservationInfo) -> None:
        where = objects.Ref(kinds.RESERVATIONS, place.spec.name)
        with contextlib.suppress(refusals.NotFound):
            await self._store.delete(where, uid=place.spec.uid)
