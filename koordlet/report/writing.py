"""Keeps objects in the API server up to date, with few writes and without others' content lost.

Covers: the loop of each kind, tolerance, budgets, failures and their pace, what is said about them.
Does not cover: what the objects say (``report.objects``), transport (``kube``).

Rules:
1. Each kind has its own task: one that is not installed, or refused, costs only itself, is said
   once and tried again, in the end every one to two minutes.
2. An object is read, laid over, and applied with its revision: whoever wrote in between is read
   again first. What we did not write stays.
3. Nothing is written that stands there already; what a server drops of it (a field that its
   definition does not know) is not written again until it changes here.
4. A kind has a budget (``WriteBudget``): a value that flips every tick causes no more requests.
5. Attempts are jittered, and nothing is listed or watched: after an outage each agent makes one
   read and one write for each kind, spread over that kind's period.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Protocol

from koordlet import log
from koordlet.kubeapi import informer, kinds, objects, refusals
from koordlet.model.record import dataclass
from koordlet.report import applying, documents, view

Current = Callable[[], view.ReportView | None]

#: How soon it is asked again whether there is something to say: a first report does not wait for a
#: whole period.
_UNREADY_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHealth:
    """Health of writing one kind."""

    ok: bool = False
    #: The last failure, while it lasts.
    problem: str = "not written yet"
    failures: int = 0
    writes: int = 0
    conflicts: int = 0


class WriteBudget:
    """Request budget of one kind: a burst, and one more every ``seconds``."""

    def __init__(
        self, clock: Callable[[], float], *, seconds: float = 10.0, burst: int = 2
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = clock()

    def take(self) -> bool:
        """Take one turn; whether there was one."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) / self._seconds)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class ObjectRow(Protocol):
    """Writes one kind of object."""

    name: str

    @property
    def period(self) -> float:
        """Seconds between two checks for something to write."""

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Make it so; how often something was written, ``None`` where that waits for the budget.

        Raises ``refusals.ObjectsError``.
        """


class Writers:
    """All rows of one node."""

    def __init__(
        self,
        store: objects.Objects,
        rows: Iterable[ObjectRow],
        current: Current,
        *,
        chance: Callable[[], float] = random.random,
        pace: informer.Pace | None = None,
    ) -> None:
        self._store = store
        self._rows = tuple(rows)
        self._current = current
        self._chance = chance
        self._pace = informer.Pace(most_seconds=60.0) if pace is None else pace
        self._tasks: list[asyncio.Task[None]] = []
        self.health: Mapping[str, WriteHealth] = {row.name: WriteHealth() for row in self._rows}

    def start(self) -> None:
        """Begin, in the running loop."""
        self._tasks = [asyncio.create_task(self._keep(row)) for row in self._rows]

    async def stop(self) -> None:
        """Cease. What is written stays: the next agent goes on with it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    @property
    def counts(self) -> Mapping[str, int]:
        """For metrics: what was written, and who was faster."""
        every = self.health.values()
        return {n: sum(getattr(health, n) for health in every) for n in ("writes", "conflicts")}

    async def _keep(self, row: ObjectRow) -> None:
        while True:
            now = self._current()
            ready = now is not None and now.ready
            seconds = row.period if ready else min(row.period, _UNREADY_SECONDS)
            pause = seconds * (0.75 + 0.5 * self._chance())
            if now is not None and ready:
                pause = await self._once(row, now, pause)
            await asyncio.sleep(pause)

    async def _once(self, row: ObjectRow, now: view.ReportView, pause: float) -> float:
        """One look; seconds until the next one."""
        before = self.health[row.name]
        try:
            wrote = await row.bring(self._store, now)
        except refusals.Conflict as error:
            conflicts = before.conflicts + 1
            self._set(row, replace(before, conflicts=conflicts, failures=before.failures + 1))
            return self._pace.wait(before.failures, error, self._chance())
        except Exception as error:  # noqa: BLE001 - rule 1: a bug in a row costs that row
            return self._failed(row, before, error)
        if wrote is None:
            return pause
        if not before.ok and before.failures:
            log.get().info("objects.recovered", kind=row.name)
        self._set(row, WriteHealth(ok=True, problem="", writes=before.writes + wrote,
                              conflicts=before.conflicts))  # fmt: skip
        return pause

    def _failed(self, row: ObjectRow, before: WriteHealth, error: Exception) -> float:
        problem = str(error) if isinstance(error, refusals.ObjectsError) else repr(error)
        if before.failures == 0 or before.problem != problem:
            log.get().warning("objects.failed", kind=row.name, detail=problem)
        self._set(row, replace(before, ok=False, problem=problem, failures=before.failures + 1))
        known = error if isinstance(error, refusals.ObjectsError) else refusals.Failed(problem)
        return self._pace.wait(before.failures, known, self._chance())

    def _set(self, row: ObjectRow, health: WriteHealth) -> None:
        self.health = {**self.health, row.name: health}


#: What shall stand in an object that says this; ``None``: it does already.
Lay = Callable[[Mapping[str, Any]], dict[str, Any] | None]


@dataclass(slots=True)
class ObjectKeeper:
    """One object that is read seldom and applied with its revision (rules 2 and 3)."""

    store: objects.Objects
    ref: objects.Ref
    known: objects.Object | None = None
    hand: applying.Hand = field(default_factory=applying.Hand)

    async def read(self) -> objects.Object | None:
        """Read the object; ``None`` if it does not exist."""
        try:
            self.known = await self.store.get(self.ref)
        except refusals.NotServed:
            raise
        except refusals.NotFound:
            self.known = None
        self.hand.retry()
        return self.known

    async def lay(self, ours: Mapping[str, Any], make: Lay) -> bool:
        """Make it so; whether it was sent. Without an object, ``ours`` is made first."""
        there = self.known if self.known is not None else await self.read()
        if there is None:
            owners = await owner(self.store, self.ref.name)
            self.known = there = await self.hand.make(self.store, self.ref, ours, owners)
        body = make(there)
        if body is None:
            return False
        try:
            self.known = await self.hand.put(
                *(self.store, self.ref, body),
                owners=_owners(there, self.ref.name),
                revision=objects.revision(there),
            )
        except (refusals.Conflict, refusals.NotFound):
            self.known = None
            raise
        return True


def _owners(there: Mapping[str, Any], node: str) -> list[Mapping[str, Any]]:
    """The Node among the owners: what is applied once is applied each time, or it goes."""
    return [
        owner
        for owner in documents.rows(objects.metadata(there), "ownerReferences")
        if (owner.get("kind"), owner.get("name")) == (kinds.NODES.name, node)
    ]


async def owner(store: objects.Objects, node: str) -> list[dict[str, Any]]:
    """The Node as the owner of an object: it goes with it."""
    body = await store.get(objects.Ref(kinds.NODES, node))
    return [
        {
            "apiVersion": kinds.NODES.api_version,
            "kind": kinds.NODES.name,
            "name": node,
            "uid": objects.text(body, "uid"),
        }
    ]
