"""Writes the status of reservations, and deletes those that have ended.

Covers: statuses, bindings, annotations of adopted pods, expiry, removal, events.
Does not cover: what the status should be (``scheduler.reservation.lifecycle``), who decides
(``core``).

Rules:
1. A binding is written against the revision that was decided on. Of two schedulers one loses, and
   takes its decision back.
2. Every other status is derived, and written when it differs from the stored one, against the
   revision that it was derived from: another object may have the name by now. A failed write is
   derived and written again. So restarts and lost answers repair themselves.
3. A pre-allocation first writes its annotation that names the adopted pods, then annotates the
   pods, then is bound: whichever write is lost, no room is promised twice. CPUs by number are
   chosen when the pods have ended, and written before the status says Available.
4. Time changes phases: reservations that can expire are checked each beat, all of them each
   ``resync`` seconds. Those that have ended long enough ago are deleted by UID.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import event_messages, reservation_events
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Hold
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins import conversion
from koordlet.scheduler.plugins.adoption import Arguments
from koordlet.scheduler.plugins.reservation import Reservation
from koordlet.scheduler.reservation import lifecycle, preallocation
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import Phase, ReservationStatus

#: Seconds between two looks, where nothing else happens.
BEAT = 0.5
#: Requests under way at once.
_LANES = 8
_ATTEMPTS, _PAUSE = 4, 0.2


class ReservationController:
    """Writes the status of reservations, and deletes those that have ended."""

    def __init__(
        self,
        store: objects.Objects,
        core: Core,
        steady: Callable[[], float],
        events: event_messages.EventBuilder,
        arguments: Arguments | None = None,
    ) -> None:
        self._store, self._core, self._steady, self._events = store, core, steady, events
        self._arguments = Arguments() if arguments is None else arguments
        self._holds: asyncio.Queue[Hold] = asyncio.Queue()
        self._binding: set[str] = set()
        self._moved = asyncio.Event()
        self._lanes = asyncio.Semaphore(_LANES)
        self._resynced = self._collected = steady()
        #: Events under way: asyncio itself holds no task.
        self._emitting: set[asyncio.Task[None]] = set()

    def submit(self, hold: Hold) -> None:
        """Take in a reservation that found its node, to be bound."""
        self._binding.add(hold.pod.reserve_pod_of)
        self._holds.put_nowait(hold)

    def refused(self, pod: Pod, message: str) -> None:
        """Record that a reservation found no node."""
        before = self._core.reservations.messages.get(pod.reserve_pod_of)
        self._core.reservations.failed(pod, message)
        info = self._core.reservations.of(pod)
        if info is not None and before != message:
            self._emit(info, "FailedScheduling", message, warning=True)
        self._moved.set()

    def poke(self) -> None:
        """Wake the controller, where there are reservations: something has changed."""
        if self._core.reservations.by_uid or self._core.reservations.rejected:
            self._moved.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._following())
            while True:
                hold = await self._holds.get()
                async with self._lanes:
                    group.create_task(self._bind(hold))

    async def _following(self) -> None:
        while True:
            self._moved.clear()
            await self.look()
            try:
                async with asyncio.timeout(BEAT):
                    await self._moved.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Advance every reservation that is due, and write the statuses that differ."""
        wall, cache = self._events.wall(), self._core.reservations
        if self._steady() - self._resynced >= self._arguments.resync_seconds:
            self._resynced = self._steady()
            cache.touched.update(cache.by_uid)
        due = [
            info
            for info in reservation_events.due(self._core, wall)
            if info.spec.uid not in self._binding
        ]
        for info in due:
            reservation_events.step(self._core, info, self._steady(), wall)
        wanted = [(info, cache.status(info, wall)) for info in due]
        await self._all([self._write(info, now) for info, now in wanted if now != info.stored])
        rejected = [(rejected, rejected.status(wall)) for rejected in cache.rejected.values()]
        await self._all(
            [
                self._reject(rejection.name, rejection, s)
                for rejection, s in rejected
                if s != rejection.stored
            ]
        )
        if self._steady() - self._collected >= self._arguments.gc_interval:
            self._collected = self._steady()
            await self.collect(wall)

    async def _all(self, several: list[Any]) -> None:
        async def one(work: Any) -> None:
            async with self._lanes:
                await work

        await asyncio.gather(*map(one, several))

    async def _write(self, info: ReservationInfo, status: ReservationStatus) -> None:
        try:
            await self._converted(info, status)
            body = await self._patch(info.spec.name, info.stored, status, info.revision)
        except refusals.NotFound:
            return  # the watch says so as well
        except refusals.ObjectsError as error:
            self._core.measures.asked("reservation", error.code)
            self._core.reservations.touched.add(info.spec.uid)
            return
        self._core.measures.asked("reservation", "ok")
        if info.stored.phase is not status.phase:
            log.get().info("scheduler.reservation", name=info.spec.name, phase=status.phase.value)
        info.stored, info.revision = status, objects.revision(body)

    async def _converted(self, info: ReservationInfo, status: ReservationStatus) -> None:
        """Write the CPUs chosen for a reservation before it becomes available (rule 3)."""
        note = conversion.marks(info) if status.phase is Phase.AVAILABLE else {}
        if info.stored.phase is Phase.WAITING and note:
            ref = objects.Ref(kinds.RESERVATIONS, info.spec.name)
            patch = objects.Merge({"metadata": {"annotations": note}}, info.revision)
            info.revision = objects.revision(await self._store.patch(ref, patch))

    async def _reject(self, name: str, rejection: Any, status: ReservationStatus) -> None:
        try:
            body = await self._patch(name, rejection.stored, status, rejection.revision)
        except refusals.ObjectsError as error:
            self._core.measures.asked("reservation", error.code)
        else:
            rejection.stored, rejection.revision = status, objects.revision(body)

    async def _patch(
        self, name: str, old: ReservationStatus, new: ReservationStatus, revision: str
    ) -> objects.Object:
        patch = objects.Merge({"status": difference(old, new)}, revision)
        ref = objects.Ref(kinds.RESERVATIONS, name)
        return await self._store.patch(ref, patch, subresource="status")

    # Bindings.

    async def _bind(self, hold: Hold) -> None:
        info = self._core.reservations.of(hold.pod)
        try:
            if info is not None and info.row >= 0:
                await self._bound(info, hold)
        finally:
            self._binding.discard(hold.pod.reserve_pod_of)
            self._core.reservations.touched.add(hold.pod.reserve_pod_of)
            self._moved.set()

    async def _bound(self, info: ReservationInfo, hold: Hold) -> None:
        for attempt in range(_ATTEMPTS):
            error = await self._attempt(info, hold)
            if error is None:
                self._core.queue.forget(hold.pod)
                reservation_events.woken(self._core, info, self._steady())
                note = f"Successfully assigned {info.spec.name} to {hold.node}"
                self._emit(info, "Scheduled", note)
                return
            self._core.measures.asked("reservation", error.code)
            if isinstance(error, refusals.NotFound):
                return
            if not isinstance(error, refusals.Unavailable):
                break
            await asyncio.sleep(_PAUSE * 2**attempt)
        if info.row >= 0:
            reservation_events.take_back(self._core, hold.pod)
            self._core.gangs.binding_failed(hold.pod)
            await self._again(info, hold)

    async def _again(self, info: ReservationInfo, hold: Hold) -> None:
        """Take in the stored object after a failed binding: bound elsewhere, or retried."""
        now = self._steady()
        try:
            there = await self._store.get(objects.Ref(kinds.RESERVATIONS, info.spec.name))
        except refusals.ObjectsError:
            there = {}
        if there:
            reservation_events.changed(self._core, there, there, now)
        # Not there any more: it is gone, bound elsewhere, or cannot be placed as it is now.
        entry = self._core.queue.get(hold.pod.key)
        if entry is not None:
            self._core.queue.erred(entry.pod, now)
        reservation_events.woken(self._core, info, now)

    async def _attempt(self, info: ReservationInfo, hold: Hold) -> refusals.ObjectsError | None:
        """Write a binding; where an answer was lost, read the object."""
        status = self._core.reservations.status(info, self._events.wall())
        ref = objects.Ref(kinds.RESERVATIONS, info.spec.name)
        try:
            there = await self._store.get(ref)
            if objects.text(there, "uid") != info.spec.uid:
                return refusals.NotFound(
                    "another reservation has this name", culprit=info.spec.name
                )
            stored = there.get("status")
            node = stored.get("nodeName") if isinstance(stored, Mapping) else ""
            if node:
                return (
                    None
                    if node == info.node
                    else refusals.Conflict("it is already bound to a node")
                )
            await self._promise(info, hold, ref)
            body = await self._patch(info.spec.name, info.stored, status, info.revision)
        except refusals.ObjectsError as error:
            return error
        info.stored, info.revision = status, objects.revision(body)
        self._core.measures.asked("reservation", "ok")
        return None

    async def _promise(self, info: ReservationInfo, hold: Hold, ref: objects.Ref) -> None:
        """Write what plugins chose, and annotate the reservation and the adopted pods (rule 3)."""
        note = {**hold.marks, **preallocation.annotation(info)}
        if not note:
            return
        body = await self._store.patch(
            ref, objects.Merge({"metadata": {"annotations": note}}, info.revision)
        )
        info.revision = objects.revision(body)
        # Events of these pods come meanwhile, and each counts its pod anew.
        for pod in [*info.owners.values()]:
            if pod.uid in info.adopted:
                marks = info.marks()
                where = objects.Ref(kinds.PODS, pod.name, pod.namespace)
                patch = {"metadata": {"uid": pod.uid, "annotations": marks}}
                await self._store.patch(where, objects.Merge(patch))

    # What is over.

    async def collect(self, wall: float) -> None:
        """Delete reservations that have ended long enough ago."""
        rules = lifecycle.GarbageCollection(
            float(self._arguments.gc_seconds), self._arguments.collects
        )
        rows = self._core.pod_cache.columns.rows
        over = [
            info
            for info in self._core.reservations.by_uid.values()
            if lifecycle.removable(info.stored, rules, wall, node_exists=info.stored.node in rows)
        ]
        await self._all([self._delete(info) for info in over])

    async def _delete(self, info: ReservationInfo) -> None:
        try:
            await self._store.delete(
                objects.Ref(kinds.RESERVATIONS, info.spec.name), uid=info.spec.uid
            )
        except refusals.ObjectsError as error:
            self._core.measures.asked("reservation", error.code)

    def _emit(
        self, info: ReservationInfo, reason: str, text: str, *, warning: bool = False
    ) -> None:
        body = self._events.about_reservation(info.spec, reason, text, warning=warning)
        task = asyncio.ensure_future(self._send(body))
        self._emitting.add(task)
        task.add_done_callback(self._emitting.discard)

    async def _send(self, body: objects.Object) -> None:
        try:
            await self._store.create(kinds.EVENTS, body)
        except refusals.ObjectsError as error:
            self._core.measures.asked("event", error.code)


def arguments(profiles: Mapping[str, profile.Profile]) -> Arguments:
    """The ReservationArgs of the first profile that has the plugin."""
    several = profile.plugins(profiles, Reservation)
    return several[0].arguments if several else Arguments()


def difference(old: ReservationStatus, new: ReservationStatus) -> dict[str, Any]:
    """The merge patch from one status to another; what is missing in the new one is removed."""
    before, after = old.body(), new.body()
    patch: dict[str, Any] = {key: after.get(key) for key in before.keys() | after.keys()}
    for key in ("allocatable", "allocated"):
        was, now = before.get(key), after.get(key)
        if isinstance(was, dict):
            patch[key] = {
                **dict.fromkeys(was),
                **(now if isinstance(now, dict) else {}),
            }
    if new.phase is Phase.PENDING:
        patch.setdefault("phase", Phase.PENDING.value)
    return patch
