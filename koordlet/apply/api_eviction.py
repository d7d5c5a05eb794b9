"""API eviction backend: evicts through the API server as disruption budgets allow, or deletes.

Covers: both requests, what each answer means, the note for the scheduler, the event on the pod.
Does not cover: pauses and numbers (``apply.evictor``).

Facts: an eviction that a budget does not allow is refused (429) until it does; several budgets over
one pod are a mistake that somebody must repair (500); a pod of another UID is another pod. A 409
says that, or only that somebody wrote the pod or its budget meanwhile; a 404 that the pod is gone,
or that some proxy knows no such path. So whether it is gone is looked at (with the right to list
that the agent has anyway), and a pod that is still there is asked again.

The note says that the node is short of something: the scheduler's limiter counts the eviction by
that cause, and never holds it up. The eviction neither depends on it nor waits for it for longer
than ``_NOTE`` seconds. A status may be patched with annotations (its strategy keeps all metadata
but owners), so the right to patch ``pods/status`` does; without it the agent asks once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Callable

from koordlet.apply import evictor
from koordlet.kubeapi import event as object_event
from koordlet.kubeapi import kinds, objects, pod_annotations, refusals, selectors
from koordlet.model import eviction, moment

#: Seconds to wait where somebody must repair something first.
_REPAIR = 60.0
_BUDGET = 10.0
_NOTE = 1.0


class ApiEviction:
    """Evicts one pod through the API; ``delete`` bypasses disruption budgets."""

    def __init__(
        self,
        store: objects.Objects,
        *,
        node: str,
        clock: Callable[[], float],
        delete: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._store = store
        self._node = node
        self._clock = clock
        self._delete = delete
        self._dry_run = dry_run
        self._notes = not dry_run

    async def __call__(self, victim: eviction.Eviction) -> evictor.Outcome:
        """One attempt."""
        namespace, _, name = victim.pod.partition("/")
        ref = objects.Ref(kinds.PODS, name, namespace)
        if self._notes:
            await self._note(ref, victim)
        ask = self._store.delete if self._delete else self._store.evict
        try:
            await ask(
                ref, uid=victim.uid, grace_seconds=victim.grace_seconds, dry_run=self._dry_run
            )
        except refusals.ObjectsError as error:
            return await self._refused(error, ref, victim.uid)
        if self._dry_run:
            return evictor.Outcome(done=True, detail="dry run: the pod would be evicted")
        with contextlib.suppress(refusals.ObjectsError):
            # An event is for people: that it is lost costs nobody anything.
            await self._store.create(kinds.EVENTS, event(victim, self._node, self._clock()))
        return evictor.Outcome(done=True, detail="deleted" if self._delete else "evicted")

    async def _note(self, ref: objects.Ref, victim: eviction.Eviction) -> None:
        """Write on the pod who evicts it and why.

        No condition: the request may be refused, and a condition would stay.
        """
        note = {
            "by": f"agent/{victim.policy}",
            "cause": pod_annotations.NODE_PRESSURE,
            "reason": victim.message.strip(),
            "time": moment.spell(self._clock()),
        }
        spelled = json.dumps(note, ensure_ascii=False, separators=(",", ":"))
        metadata = {"uid": victim.uid, "annotations": {pod_annotations.EVICTION: spelled}}
        patch = objects.Strategic({"metadata": metadata})
        try:
            await asyncio.wait_for(self._store.patch(ref, patch, subresource="status"), _NOTE)
        except refusals.Forbidden:
            self._notes = False
        except (refusals.ObjectsError, TimeoutError):
            return  # the eviction counts all the same, as one of nobody

    async def _refused(
        self, error: refusals.ObjectsError, ref: objects.Ref, uid: str
    ) -> evictor.Outcome:
        match error:
            case refusals.NotFound() | refusals.Conflict():
                if not await self._stays(ref, uid):
                    return evictor.Outcome(done=True, detail="the pod was already gone")
                return _later(f"the pod still exists: {error}", error, None)
            case refusals.TooMany():
                return _later(f"the pod's disruption budget forbids it: {error}", error, _BUDGET)
            case refusals.Failed():
                return _later(f"the cluster must be repaired first: {error}", error, _REPAIR)
        return _later(str(error), error, None)

    async def _stays(self, ref: objects.Ref, uid: str) -> bool:
        """Whether this pod still exists and is not being deleted; True where unknown."""
        named = selectors.Selector(fields=f"metadata.name={ref.name}")
        try:
            listing = await objects.collect(
                self._store.list(ref.kind, namespace=ref.namespace, selector=named)
            )
        except refusals.ObjectsError:
            return True
        return any(
            objects.text(body, "uid") == uid and not objects.metadata(body).get("deletionTimestamp")
            for body in listing.items
        )


def _later(detail: str, error: refusals.ObjectsError, least: float | None) -> evictor.Outcome:
    waits = [seconds for seconds in (error.retry_after, least) if seconds is not None]
    return evictor.Outcome(done=False, detail=detail, retry_after=max(waits, default=None))


def event(victim: eviction.Eviction, node: str, at: float) -> objects.Object:
    """The event on the evicted pod."""
    namespace, _, name = victim.pod.partition("/")
    eviction_event = object_event.Event(
        subject=object_event.Subject(
            kind=kinds.PODS, name=name, namespace=namespace, uid=victim.uid
        ),
        name_suffix=hashlib.blake2s(f"{victim.uid}/{at}".encode(), digest_size=8).hexdigest(),
        reason=victim.reason,
        action="Evict",
        message=victim.message,
        annotations=victim.annotations,
    )
    return object_event.body(eviction_event, node, at)
