"""Says what is wrong with objects as Events on them: once, and again only so that it stays visible.

Covers: remarks about unreadable parts of pods, of the NodeSLO or the map that stands for it, of
reservations and the Node, also of one that could not be read at all; when an event is made,
renewed, forgotten; how many at a time.
Does not cover: pace after failures (``report.writing``), configuration (its errors are ours).

Rules:
1. An event is named after its mistake. Whoever finds it there (an agent before this one, another
   node that reads the same object) has nothing to say.
2. While the mistake lasts, its event is renewed each ``_RENEW`` seconds: API servers forget events
   after an hour. It is the same event with a count, not another one.
3. What is mended is forgotten after that time, too: a mistake that comes and goes is no storm.
4. ``BURST`` at once and then one each ``SECONDS``; one look makes ``_AT_ONCE`` requests at most.
5. An event that is refused (its namespace ends, its object has a name that no event can have) costs
   itself. Only where nothing at all got through the row has failed.
6. A mistake is the object and the text: the same mistake is the same remark, also after a restart.
7. An object has ``_MOST`` remarks of its own; further mistakes are counted in one more, so that a
   pod of a thousand broken annotations is nine events.
8. Workloads of this machine's files are no objects of the cluster: nothing is said about them here.
9. A pod whose container did not start because its cgroups refused something has one event for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from koordlet.kubeapi import event, kinds, objects, refusals
from koordlet.model import pod, snapshot
from koordlet.model.record import dataclass
from koordlet.report import view, writing

BURST, SECONDS = 25, 2.0
_RENEW = 1800.0
_AT_ONCE = 10
#: Remarks that are remembered; at eight an object that is five hundred broken objects.
_REMEMBERED = 4096


@dataclass(slots=True)
class _Said:
    """One event."""

    next_at: float
    seen_at: float
    count: int = 0


class EventObjects:
    """Writes events on objects."""

    name = "Event"
    period = 5.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._budget = writing.WriteBudget(clock, seconds=SECONDS, burst=BURST)
        self._said: dict[objects.Ref, _Said] = {}

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Say what is new; how many events were written."""
        held = (
            (condition.type, condition.message)
            for condition in now.plan.conditions
            if condition.status
        )
        due = self._due(of(now.snapshot, held))
        wrote, asked, failure = 0, 0, None
        for remark in due[:_AT_ONCE]:
            if not self._budget.take():
                break
            asked += 1
            try:
                wrote += await self._tell(store, remark, now)
            except (refusals.NotServed, refusals.Unavailable, refusals.TooMany):
                raise
            except refusals.ObjectsError as error:
                failure = error
            self._said[remark.ref].next_at = self._clock() + _RENEW
        if failure is not None and not wrote:
            raise failure
        return wrote if asked or not due else None

    def _due(self, events: tuple[event.Event, ...]) -> list[event.Event]:
        """Those whose time has come; rules 2 and 3."""
        at, due = self._clock(), []
        for remark in events:
            known = self._said.get(remark.ref)
            if known is None:
                if len(self._said) >= _REMEMBERED:
                    continue
                known = self._said[remark.ref] = _Said(next_at=at, seen_at=at)
            known.seen_at = at
            if known.next_at <= at:
                due.append(remark)
        old = [ref for ref, known in self._said.items() if at - known.seen_at > _RENEW]
        for ref in old:
            del self._said[ref]
        return due

    async def _tell(self, store: objects.Objects, remark: event.Event, now: view.ReportView) -> int:
        """Make it, or count it once more where we have; whether something was written."""
        known, wall = self._said[remark.ref], now.snapshot.wall
        if known.count:
            count = known.count + 1
            series = {"count": count, "lastObservedTime": event.moment(wall)}
            try:
                await store.patch(remark.ref, objects.Merge({"series": series}))
            except refusals.NotServed:
                raise
            except refusals.NotFound:
                known.count = 0
            else:
                known.count = count
                return 1
        try:
            await store.create(remark.ref.kind, event.body(remark, now.snapshot.node.name, wall))
        except refusals.AlreadyExists:
            return 0
        known.count = 1
        return 1


#: What a pod's source is called where the cluster knows the pod.
_OF_CLUSTER = frozenset({"cluster", "kubelet"})
#: Conditions that say what is wrong with the Node's own annotations.
_OF_NODE = frozenset({"CPUNormalizationInvalid", "ReservedCPUsInvalid", "ReservedCPUsPartial"})
_MOST = 8
#: What is read, by the word of an object's ``kind``.
_READ = {
    kind.name: kind
    for kind in (kinds.PODS, kinds.NODES, kinds.NODE_SLOS, kinds.CONFIG_MAPS, kinds.RESERVATIONS)
}
_MAP = event.Subject(
    kind=kinds.CONFIG_MAPS, name="slo-controller-config", namespace="koordinator-system"
)


def of(
    now: snapshot.Snapshot, conditions: Iterable[tuple[str, str]] = ()
) -> tuple[event.Event, ...]:
    """All of this moment. ``conditions`` are types and messages of those that hold of the node."""
    mistakes = _listed(now, conditions)
    return (
        *_starts(now),
        *(remark for subject, texts in mistakes for remark in _each(subject, texts)),
    )


def _starts(now: snapshot.Snapshot) -> Iterator[event.Event]:
    """Rule 9."""
    for workload in now.pods:
        refused = [box for box in workload.containers if box.refused]
        if not refused or workload.source not in _OF_CLUSTER:
            continue
        note = (
            f"Container {refused[0].name} did not start, possibly because of a limit that"
            f" koordlet set: {refused[0].refused}"
        )
        remark = _remark(_pod(workload), f"start\0{refused[0].name}", note)
        yield replace(remark, reason="StartFailed", action="Limit")


def _listed(
    now: snapshot.Snapshot, conditions: Iterable[tuple[str, str]]
) -> Iterator[tuple[event.Subject, Iterable[str]]]:
    for workload in now.pods:
        if workload.source in _OF_CLUSTER:
            yield _pod(workload), workload.problems
    if now.slo is not None:
        own = event.Subject(kind=kinds.NODE_SLOS, name=now.node.name, uid=now.slo.uid)
        yield own if now.slo.source == own.kind.name else _MAP, now.slo.problems
    for held in now.reservations:
        subject = event.Subject(kind=kinds.RESERVATIONS, name=held.name, uid=held.uid)
        yield subject, held.problems
    for broken in now.unread:
        if broken.name and broken.kind in _READ:
            kind, space = _READ[broken.kind], broken.namespace
            subject = event.Subject(kind=kind, name=broken.name, namespace=space, uid=broken.uid)
            why = f"cannot be read: {broken.why}; koordlet uses the last valid version, if any"
            yield subject, (why,)
    messages = [message for name, message in conditions if name in _OF_NODE]
    # As the kubelet does it: the UID of a Node in events is its name.
    node = event.Subject(kind=kinds.NODES, name=now.node.name, uid=now.node.name)
    yield node, (*now.node.problems, *messages)


def _pod(workload: pod.Pod) -> event.Subject:
    uid = workload.uid if workload.uid != workload.key else ""
    return event.Subject(kind=kinds.PODS, name=workload.name, namespace=workload.namespace, uid=uid)


def _each(subject: event.Subject, mistakes: Iterable[str]) -> Iterator[event.Event]:
    """Rule 7. The order is that of the texts, so that it does not change with the object's."""
    several = sorted(set(mistakes))
    for text in several[:_MOST]:
        left = "" if subject.kind is kinds.NODES else " (ignored; the rest is used)"
        yield _remark(subject, text, f"{text}{left}")
    if len(several) > _MOST:
        # Named without the number, so that it is one event however the number moves.
        more = f"{len(several) - _MOST} more problems of this kind; see the agent's log."
        yield _remark(subject, "more", more)


def _remark(subject: event.Subject, what: str, note: str) -> event.Event:
    named = f"{subject.kind.name}\0{subject.uid}\0{subject.name}\0{what}"
    name_suffix = hashlib.blake2s(named.encode(errors="replace"), digest_size=8).hexdigest()
    return event.Event(
        subject=subject, name_suffix=name_suffix, reason="Malformed", action="Read", message=note
    )
