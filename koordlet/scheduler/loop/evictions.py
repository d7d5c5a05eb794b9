"""Evicts a pod for a mover: asks the limiter, then the API, and tells who is concerned.

Covers: the annotation, the Eviction, its retries, events, the count. Does not cover: whether a pod
may be evicted (``disruption.limiter``), which pods a mover wants gone (the mover).

Rules:
1. An eviction is asked for, never forced: the server's disruption budgets decide in the end.
2. The UID is a precondition: a pod of the same name that came later stays.
3. 429 is tried again after what the server says or ``PAUSE`` seconds, ``ATTEMPTS`` times in all
   unless the mover has a next round; several budgets (500) are not tried again; other failures
   ``FAILURES`` times.
4. A refused eviction debits nothing. Where an answer was lost, the watch shows the pod ending.
5. A mover that only watches debits its own ledger, and nothing is sent.
6. One event a minute for each workload and reason.
7. Who does not lead evicts and removes nobody, and writes no entry of an avoid list: two that
   decide would spend one budget twice.
8. ``Delete`` deletes where the limiter allows an eviction; ``SoftEviction`` only writes the peer's
   annotation, by which somebody else moves the pod.
9. A pod that is moved alive (``request-evict-only``) and whose move has begun counts as evicted,
   though the server answers 429.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption.answers import Allow, Clock, Deny, Mover, Refusal
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.loop import event_messages
from koordlet.scheduler.loop.binder import ref
from koordlet.scheduler.loop.metrics import SchedulerMetrics
from koordlet.scheduler.objects import eviction_marks
from koordlet.scheduler.objects.pods import Pod

ATTEMPTS, PAUSE, FAILURES = 6, 5.0, 3
_EVENT_SECONDS = 60.0
_MOST_EVENTS = 4096
#: Of a server's answer where several budgets cover a pod.
_SEVERAL_BUDGETS = "PodDisruptionBudget"
#: Of the answer where a pod is moved alive, and for how long that is believed without a sign of it.
_EVACUATES = "Eviction triggered evacuation"
_EVACUATES_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionRequest:
    """What a mover wants."""

    pod: Pod
    mover: Mover
    #: A word, such as ``QuotaRevoked``.
    cause: str
    #: A sentence for people.
    reason: str
    plan: str = ""
    #: Seconds for which its workload avoids the node that it leaves; 0: it does not.
    avoid_seconds: float = 0.0
    #: Its replacement comes to the front of the queue.
    front: bool = False
    #: ``Eviction``, ``Delete``, ``SoftEviction``; and ``None``: the pod's own grace period.
    policy: str = "Eviction"
    grace_seconds: int | None = None
    #: The pod asks for its eviction alone, and is moved alive then.
    evict_only: bool = False
    #: How often it is asked for while the server answers 429.
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class EvictionResult:
    """What came of it: ``Evicted``, or why not."""

    reason: str
    message: str = ""
    #: Seconds since 1970 before which asking again is in vain; ``None``: nobody knows.
    until: float | None = None

    @property
    def evicted(self) -> bool:
        """Whether the server has accepted it."""
        return self.reason == "Evicted"


@dataclass(frozen=True, slots=True)
class _LiveMove:
    """A pod that is said to be moved alive."""

    pod: Pod
    since: float
    #: Whether the pod has said so itself.
    shown: bool = False


class Evictions:
    """The one way by which the scheduler's movers evict."""

    def __init__(
        self,
        store: objects.Objects,
        limiter: Limiter,
        measures: SchedulerMetrics,
        events: event_messages.EventBuilder,
        steady: Callable[[], float],
        *,
        leads: Callable[[], bool] = lambda: True,
        avoid: Callable[[str, Avoidance], Awaitable[tuple[Avoidance, ...]]] | None = None,
        pause: float = PAUSE,
    ) -> None:
        """``avoid`` writes an entry of a node's avoid list; it returns those that gave way."""
        self._store, self._steady, self._avoid = store, steady, avoid
        self._leads, self._pause = leads, pause
        self.limiter, self.measures, self.events = limiter, measures, events
        #: When an event of a workload and a reason was last sent.
        self._sent: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        #: By UID.
        self._evacuating: dict[str, _LiveMove] = {}

    def now(self) -> Clock:
        """This moment, by both clocks."""
        return Clock(wall=self.events.wall(), steady=self._steady())

    async def evict(self, request: EvictionRequest) -> EvictionResult:
        """Evict a pod if limiter and server allow it."""
        pod, mover, now = request.pod, request.mover, self.now()
        if not self._leads():
            return EvictionResult("NotLeading", "another scheduler may lead: it decides")
        answer = self.limiter.may_evict(pod, request.cause, mover, now)
        if not isinstance(answer, Allow):
            if isinstance(answer, Deny) and isinstance(answer.would, Allow):
                self.limiter.begin(pod, request.cause, mover, now)
            return await self.refuse(request, answer)
        self.limiter.begin(pod, request.cause, mover, now)
        result = EvictionResult("Error", "it was cancelled")
        try:
            await self._annotate(request, now)
            result = await self._ask(request)
        finally:
            if result.evicted:
                self.limiter.accepted(pod, self.now())
            else:
                self.limiter.refused(pod)
        return await self._end(request, result)

    def evacuating(self, shows: Callable[[str], bool | None]) -> frozenset[str]:
        """The UIDs of pods that are moved alive; ``shows``: on a pod; ``None``: it is gone.

        A move that shows no more was called off, and one that never showed did not begin.
        """
        edge = self._steady() - _EVACUATES_SECONDS
        for uid, live_move in [*self._evacuating.items()]:
            shown = shows(uid)
            if shown:
                self._evacuating[uid] = replace(live_move, shown=True)
            elif shown is None:
                del self._evacuating[uid]
            elif live_move.shown or live_move.since <= edge:
                del self._evacuating[uid]
                self.limiter.refused(live_move.pod)
        return frozenset(self._evacuating)

    async def refuse(self, request: EvictionRequest, refusal: Refusal) -> EvictionResult:
        """Count and tell what keeps a pod that a mover wants gone."""
        until = refusal.until if isinstance(refusal, Deny) else None
        return await self._end(request, EvictionResult(refusal.reason, refusal.message, until))

    async def _annotate(self, request: EvictionRequest, now: Clock) -> None:
        """Write on the pod who evicts it and why; the eviction does not depend on it."""
        note = {
            "by": request.mover.name,
            "reason": request.reason,
            **({"plan": request.plan} if request.plan else {}),
            **({eviction_marks.REQUEUE: eviction_marks.FRONT} if request.front else {}),
            "time": moment.spell(now.wall),
        }
        spelled = json.dumps(note, ensure_ascii=False, separators=(",", ":"))
        body = {
            "metadata": {
                "uid": request.pod.uid,
                "annotations": {eviction_marks.EVICTION: spelled},
            }
        }
        try:
            await self._store.patch(ref(request.pod), objects.Merge(body))
        except refusals.ObjectsError as error:
            self.measures.asked("eviction_annotation", error.code)

    async def _ask(self, request: EvictionRequest) -> EvictionResult:
        """The Eviction, with its retries (rule 3)."""
        pod, refused, failures = request.pod, 0, 0
        last: refusals.ObjectsError | None = None
        while refused < request.attempts:
            if last is not None:
                wait = last.retry_after
                await asyncio.sleep(self._pause if wait is None else wait)
            try:
                await self._send(request)
            except (refusals.NotFound, refusals.Conflict):
                return EvictionResult("Gone", f"{pod.key} is gone")
            except refusals.TooMany as error:
                words = (error.message, *(cause.message for cause in error.causes))
                if request.evict_only and any(_EVACUATES in each for each in words):
                    self._evacuating[pod.uid] = _LiveMove(pod, self._steady())
                    return EvictionResult("Evicted", error.message)
                last, refused = error, refused + 1
            except refusals.ObjectsError as error:
                if _SEVERAL_BUDGETS in error.message:
                    return EvictionResult("PDB", str(error))
                last, failures = error, failures + 1
                if failures >= FAILURES or not isinstance(error, refusals.Unavailable):
                    return EvictionResult("Error", str(error))
            else:
                return EvictionResult("Evicted")
        return EvictionResult("PDB", str(last))

    async def _send(self, request: EvictionRequest) -> None:
        """What makes the pod go, by its policy (rule 8)."""
        pod, grace = request.pod, request.grace_seconds
        if request.policy == "Delete":
            await self._store.delete(ref(pod), uid=pod.uid, grace_seconds=grace)
        elif request.policy == "SoftEviction":
            options = {} if grace is None else {"deleteOptions": {"gracePeriodSeconds": grace}}
            note = {
                "timestamp": str(int(self.events.wall())),
                **options,
                "initiator": request.mover.name,
                "reason": request.reason,
            }
            notes = {eviction_marks.SOFT_EVICTION: json.dumps(note, separators=(",", ":"))}
            body = {"metadata": {"uid": pod.uid, "annotations": notes}}
            await self._store.patch(ref(pod), objects.Merge(body))
        else:
            await self._store.evict(ref(pod), uid=pod.uid, grace_seconds=grace)

    async def _end(self, request: EvictionRequest, result: EvictionResult) -> EvictionResult:
        by = request.mover.name.partition("/")[0] if request.mover.planned else request.mover.name
        self.measures.evicted(by, request.cause, result.reason)
        if result.evicted:
            log.get().info(
                "scheduler.evicted",
                pod=request.pod.key,
                node=request.pod.node,
                by=request.mover.name,
                cause=request.cause,
                detail=request.reason,
            )
            await self.keep_away(request)
        await self._tell(request, result)
        return result

    async def keep_away(self, request: EvictionRequest) -> None:
        """Let the workload avoid the node that the pod leaves, where the mover wants it."""
        pod = request.pod
        signature = self.limiter.workloads.signature(pod.pod_class)
        if self._avoid is None or signature is None or not request.avoid_seconds:
            return
        if not self._leads():
            return
        now = self.now().wall
        entry = Avoidance(
            workload=(signature.namespace, signature.kind, signature.name),
            reason=request.cause,
            message=request.reason,
            by=request.mover.name,
            since=now,
            until=now + request.avoid_seconds,
        )
        for dropped in await self._avoid(pod.node, entry):
            _, kind, name = dropped.workload
            text = f"the avoid list of node {pod.node} is full: {kind} {name} gave way"
            message = event_messages.EventMessage(pod, "AvoidanceDropped", "Evicting", text)
            await self.tell(self.events.event(message))

    async def remove(self, pod: Pod) -> None:
        """Remove a pod that has ended; no budget counts it."""
        if not self._leads():
            return
        try:
            await self._store.evict(ref(pod), uid=pod.uid)
        except refusals.ObjectsError as error:  # it is gone, or stays as it is
            self.measures.asked("descheduler", error.code)

    async def _tell(self, request: EvictionRequest, result: EvictionResult) -> None:
        """The event on the pod's workload, or on the pod (rule 6)."""
        pod = request.pod
        signature = self.limiter.workloads.signature(pod.pod_class)
        who = pod.key if signature is None else f"{pod.namespace}/{signature}"
        key = who, request.mover.name, result.reason
        now = self._steady()
        if now - self._sent.get(key, now - _EVENT_SECONDS) < _EVENT_SECONDS:
            return
        self._sent.pop(key, None)
        self._sent[key] = now
        while len(self._sent) > _MOST_EVENTS:
            self._sent.popitem(last=False)
        about = None
        if signature is not None:
            about = event_messages.Regarding(kind=signature.kind, name=signature.name)
        reason = "Moved" if result.evicted else "MoveRefused"
        text = f"{request.mover.name}: pod {pod.name} on node {pod.node}: {request.reason}"
        if not result.evicted:
            text = f"{text}; not evicted ({result.reason}): {result.message}"
        message = event_messages.EventMessage(
            pod, reason, "Evicting", text, warning=not result.evicted, regarding=about
        )
        await self.tell(self.events.event(message))

    async def tell(self, event: objects.Object) -> None:
        """Write an event; one that is lost is counted."""
        try:
            await self._store.create(kinds.EVENTS, event)
        except refusals.ObjectsError as error:
            self.measures.asked("event", error.code)
