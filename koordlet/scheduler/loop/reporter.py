"""Writes the results of scheduling attempts: conditions, nominations, victims, events.

Covers: what is written, in which order, how often. Does not cover: bindings (``binder``).

Rules:
1. A condition is written when it differs from the stored one. Only the newest of a pod is written;
   older ones that still wait are replaced.
2. A victim first gets its condition, then is deleted by UID; a victim that is already gone is fine.
   A victim that cannot be deleted is spared, and the core is told. Where the preemptor is to have a
   place (``held_place``), it has it before any of them goes.
3. Events cost at most ``EventBudget.rate`` requests a second, after a burst of ``burst``. Within
   that budget each bound pod and each victim has its own event; beyond, one event names all pods
   of an owner that were bound in a second, and as few as can name them all its victims. The same
   refusal of a pod is written once, and counted up after ``SERIES_SECONDS``. So a bound pod costs
   one POST (its binding) and at most one more, and close to none when there are many.
4. A write that fails is counted and dropped; conditions and victims are retried first.
5. Nothing is written, and nobody sent away, while another scheduler may lead.
"""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model.record import dataclass
from koordlet.scheduler.loop import event_messages, held_place
from koordlet.scheduler.loop.binder import ref
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects.pods import Pod

#: With fewer a preemptor waits for the answers to others, and each answer wakes the process for
#: itself: three victims are six requests.
LANES = 16
SERIES_SECONDS = 300.0
#: Refusals that are remembered, so that they are not told again.
_REMEMBERED = 4096
_RETRIES, _PAUSE = 4, 0.5
#: Events that may wait to be sent; more are dropped and counted.
_WAITING = 1000


@dataclass(frozen=True, slots=True)
class EventBudget:
    """The rate limit of events."""

    burst: float = 100.0
    rate: float = 25.0


@dataclass(slots=True)
class _Known:
    """A refusal whose event is written."""

    note: str
    event: objects.Ref
    sent: float
    count: int = 1


class Reporter:
    """Writes conditions, evictions of victims, and events."""

    def __init__(
        self,
        store: objects.Objects,
        core: Core,
        clock: Callable[[], float],
        events: event_messages.EventBuilder,
        budget: EventBudget | None = None,
        *,
        places: held_place.HeldPlaces | None = None,
        leads: Callable[[], bool] = lambda: True,
        wrote: Callable[[Pod, str], None] = lambda _pod, _revision: None,
    ) -> None:
        self._store, self._core, self._clock = store, core, clock
        self._places, self._leads = places, leads
        #: Hears of the revision that a pod has with the condition that was written of it.
        self._wrote = wrote
        self._events = events
        self._budget = EventBudget() if budget is None else budget
        self._tokens, self._filled = self._budget.burst, clock()
        #: Work by what it is about: the newest replaces what waits.
        self._due: OrderedDict[object, Callable[[], Coroutine[Any, Any, None]]] = OrderedDict()
        self._moved = asyncio.Event()
        self._grouped: dict[tuple[str, str, str], list[Bind]] = {}
        self._victims: dict[tuple[str, str, str], list[tuple[Pod, Refusal]]] = {}
        self._known: OrderedDict[str, _Known] = OrderedDict()
        #: The refusal of a pod whose condition is yet to be written, by UID.
        self._newest: dict[str, Refusal] = {}
        self._busy = 0

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return not (self._due or self._busy or self._grouped or self._victims)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(LANES):
                group.create_task(self._lane())
            group.create_task(self._flushing())

    # What the loop says.

    def bound(self, bind: Bind, error: refusals.ObjectsError | None) -> None:
        """Report a bound pod, or a failed binding."""
        if error is not None:
            self.refused(Refusal(bind.pod, f"binding rejected: {error}", "SchedulerError"))
            return
        self._known.pop(bind.pod.uid, None)
        if self._may():
            note = f"Successfully assigned {bind.pod.key} to {bind.node}"
            self._event(event_messages.EventMessage(bind.pod, "Scheduled", "Binding", note))
        else:
            owner = bind.pod.pod_class.owner
            self._grouped.setdefault((bind.pod.namespace, *owner), []).append(bind)

    def refused(self, refusal: Refusal) -> None:
        """Report a pod that found no node; the reservation controller reports reserve pods."""
        if self._places is not None and self._places.wants(refusal):
            # Whoever comes next is given the same room, and has none of these victims to send away.
            key = "place", refusal.pod.uid, *(victim.uid for victim in refusal.victims)
            self._later(key, functools.partial(self._hold, refusal, self._places))
        else:
            self._send_away(refusal)
        if refusal.pod.reserve_pod_of:
            return
        stored_condition = refusal.reason, refusal.message, refusal.node, refusal.pod.generation
        self._newest.pop(refusal.pod.uid, None)
        if refusal.pod.stored_condition != stored_condition:
            self._newest[refusal.pod.uid] = refusal
            self._later(
                ("condition", refusal.pod.uid), lambda: self._condition(refusal, stored_condition)
            )
        self._refusal(refusal)

    def devices_pending(self, pod: Pod) -> None:
        """Report that the binding waits until a pod's devices are ready, in the peer's words."""
        if self._may():
            note = f"waiting for binding conditions for device on node {pod.node}"
            reason = "BindingConditionsPending"
            self._event(event_messages.EventMessage(pod, reason, "Scheduling", note))
        else:
            self._core.measures.asked("event", "dropped")

    def noticed(self, pod: Pod, reason: str, message: str) -> None:
        """Warn the owner of a pod, within the budget of events."""
        if self._may():
            note = event_messages.EventMessage(pod, reason, "Scheduling", message, warning=True)
            self._event(note)
        else:
            self._core.measures.asked("event", "dropped")

    def _refusal(self, refusal: Refusal) -> None:
        now = self._clock()
        known = self._known.get(refusal.pod.uid)
        if known is not None and known.note == refusal.message:
            known.count += 1
            if now - known.sent >= SERIES_SECONDS and self._may():
                known.sent = now
                self._later(("series", refusal.pod.uid), lambda: self._series(known))
            return
        if not self._may():
            self._core.measures.asked("event", "dropped")
            return
        note = event_messages.EventMessage(
            refusal.pod, "FailedScheduling", "Scheduling", refusal.message, warning=True
        )
        event = self._event(note)
        self._known[refusal.pod.uid] = _Known(refusal.message, event, now)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _may(self) -> bool:
        """Whether there is a token for one more event."""
        now = self._clock()
        earned = max(0.0, now - self._filled) * self._budget.rate
        self._tokens, self._filled = min(self._budget.burst, self._tokens + earned), now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _event(self, note: event_messages.EventMessage) -> objects.Ref:
        body = self._events.event(note)
        name = objects.Ref(
            kinds.EVENTS, objects.text(body, "name"), objects.text(body, "namespace")
        )
        if len(self._due) < _WAITING:
            self._later(("event", name.name), lambda: self._send(body))
        else:
            self._core.measures.asked("event", "dropped")
        return name

    # The lanes.

    def _later(self, key: object, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._due[key] = work
        self._moved.set()

    async def _lane(self) -> None:
        while True:
            while not self._due:
                self._moved.clear()
                await self._moved.wait()
            if not self._leads():
                await asyncio.sleep(_PAUSE)
                continue
            _, work = self._due.popitem(last=False)
            self._busy += 1
            try:
                await work()
            finally:
                self._busy -= 1

    async def _flushing(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.flush()

    def flush(self) -> None:
        """Write the grouped events of pods that were bound or sent away beyond the budget."""
        grouped, self._grouped = self._grouped, {}
        for (_, kind, owner), several in grouped.items():
            self._event(event_messages.together(kind, owner, several))
        victims, self._victims = self._victims, {}
        for (_, kind, owner), gone in victims.items():
            for note in event_messages.preempted_together(kind, owner, gone):
                self._event(note)

    async def _send(self, body: objects.Object) -> None:
        try:
            await self._store.create(kinds.EVENTS, body)
        except refusals.ObjectsError as error:
            self._core.measures.asked("event", error.code)
        else:
            self._core.measures.asked("event", "ok")

    async def _series(self, known: _Known) -> None:
        body = {"series": {"count": known.count, "lastObservedTime": self._events.moment()}}
        try:
            await self._store.patch(known.event, objects.Merge(body))
        except refusals.ObjectsError as error:
            self._core.measures.asked("event", error.code)

    async def _condition(
        self, refusal: Refusal, stored_condition: tuple[str, str, str, int]
    ) -> None:
        uid = refusal.pod.uid
        body = self._events.condition(refusal, new=not refusal.pod.stored_condition[0])

        async def write() -> None:
            # A newer one has a lane of its own, and may be through already.
            if self._newest.get(uid) is refusal:
                await self._patch(refusal.pod, body)
                refusal.pod.stored_condition = stored_condition

        entry = self._core.queue.get(refusal.pod.key)
        # Else it has found a node meanwhile, or is gone.
        if entry is not None and entry.pod.uid == uid:
            await self._insist("condition", write)
        if self._newest.get(uid) is refusal:
            del self._newest[uid]

    async def _hold(self, refusal: Refusal, places: held_place.HeldPlaces) -> None:
        """Hold the place of a preemptor first, then send its victims away."""
        await places.hold(refusal)
        self._send_away(refusal)

    def _send_away(self, refusal: Refusal) -> None:
        for victim in refusal.victims:
            self._later(("victim", victim.uid), functools.partial(self._evict, victim, refusal))

    async def _evict(self, victim: Pod, by: Refusal) -> None:
        if self._may():
            self._event(event_messages.preempted(victim, by))
        else:
            owner = victim.pod_class.owner
            self._victims.setdefault((victim.namespace, *owner), []).append((victim, by))
        body = self._events.disruption_target(victim, by)
        patched = await self._insist("condition", lambda: self._patch(victim, body))
        if not (patched and await self._insist("delete", lambda: self._delete(victim))):
            self._core.spared(victim, self._clock())

    async def _patch(self, pod: Pod, body: objects.Object) -> None:
        patch = objects.Strategic(body)
        answer = await self._store.patch(ref(pod), patch, subresource="status")
        self._wrote(pod, objects.revision(answer))

    async def _delete(self, victim: Pod) -> None:
        await self._store.delete(ref(victim), uid=victim.uid)

    async def _insist(self, what: str, call: Callable[[], Coroutine[Any, Any, object]]) -> bool:
        """Retry a request a few times; an object that is gone or replaced needs none."""
        for attempt in range(_RETRIES):
            try:
                await call()
            except (refusals.NotFound, refusals.AlreadyExists):
                return True
            except refusals.ObjectsError as error:
                self._core.measures.asked(what, error.code)
                if not isinstance(error, refusals.Unavailable | refusals.Conflict):
                    return False
            else:
                self._core.measures.asked(what, "ok")
                return True
            await asyncio.sleep(_PAUSE * 2**attempt)
        return False
