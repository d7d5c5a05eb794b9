"""Says what is wrong with objects as Events on them: once, and again only so that it stays visible.

Covers: when an event is made, renewed, forgotten; how many at a time.
Does not cover: what is said (``report.objects.remarks``), pace after failures (``report.writing``).

Rules:
1. An event is named after its mistake. Whoever finds it there (an agent before this one, another
   node that reads the same object) has nothing to say.
2. While the mistake lasts, its event is renewed each ``_RENEW`` seconds: API servers forget events
   after an hour. It is the same event with a count, not another one.
3. What is mended is forgotten after that time, too: a mistake that comes and goes is no storm.
4. ``BURST`` at once and then one each ``SECONDS``; one look makes ``_AT_ONCE`` requests at most.
5. An event that is refused (its namespace ends, its object has a name that no event can have) costs
   itself. Only where nothing at all got through the row has failed.
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.kubeapi import event, objects, refusals
from koordlet.model.record import dataclass
from koordlet.report import view, writing
from koordlet.report.objects import remarks

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
        due = self._due(remarks.of(now.snapshot, held))
        wrote, asked, failure = 0, 0, None
        for told in due[:_AT_ONCE]:
            if not self._budget.take():
                break
            asked += 1
            try:
                wrote += await self._tell(store, told, now)
            except (refusals.NotServed, refusals.Unavailable, refusals.TooMany):
                raise
            except refusals.ObjectsError as error:
                failure = error
            self._said[told.ref].next_at = self._clock() + _RENEW
        if failure is not None and not wrote:
            raise failure
        return wrote if asked or not due else None

    def _due(self, found: tuple[event.Event, ...]) -> list[event.Event]:
        """Those whose time has come; rules 2 and 3."""
        at, due = self._clock(), []
        for told in found:
            known = self._said.get(told.ref)
            if known is None:
                if len(self._said) >= _REMEMBERED:
                    continue
                known = self._said[told.ref] = _Said(next_at=at, seen_at=at)
            known.seen_at = at
            if known.next_at <= at:
                due.append(told)
        old = [ref for ref, known in self._said.items() if at - known.seen_at > _RENEW]
        for ref in old:
            del self._said[ref]
        return due

    async def _tell(self, store: objects.Objects, told: event.Event, now: view.ReportView) -> int:
        """Make it, or count it once more where we have; whether something was written."""
        known, wall = self._said[told.ref], now.snapshot.wall
        if known.count:
            count = known.count + 1
            series = {"count": count, "lastObservedTime": event.moment(wall)}
            try:
                await store.patch(told.ref, objects.Merge({"series": series}))
            except refusals.NotServed:
                raise
            except refusals.NotFound:
                known.count = 0
            else:
                known.count = count
                return 1
        try:
            await store.create(told.ref.kind, event.body(told, now.snapshot.node.name, wall))
        except refusals.AlreadyExists:
            return 0
        known.count = 1
        return 1
