"""Writes NodeAvoidances: an entry at an accepted eviction, and none any more once it is over.

Covers: creating and changing the objects, removing what has ended. Does not cover: what an entry
does (``plugins.node_avoidance``), which movers want one (the movers).

Rules:
1. An entry is written beside those that are there: of two writers both have theirs.
2. Each ``BEAT`` seconds entries go that have expired, whose controller is gone or whose node is;
   an object without entries goes.
3. A write that fails costs that entry, is counted, and logged once for each code.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable

from koordlet import log
from koordlet.kubeapi import kinds, node_avoidances, objects, refusals
from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.scheduler.disruption.avoidance_book import AvoidanceBook
from koordlet.scheduler.loop.metrics import SchedulerMetrics

BEAT = 60.0
_ATTEMPTS = 4
Entries = tuple[Avoidance, ...]


class AvoidanceController:
    """Writes the avoid lists of nodes."""

    def __init__(
        self,
        store: objects.Objects,
        book: AvoidanceBook,
        measures: SchedulerMetrics,
        wall: Callable[[], float],
        stands: Callable[[str, Avoidance], bool],
    ) -> None:
        """``stands``: whether the node and the workload of an entry are still there."""
        self._store, self._book, self._measures = store, book, measures
        self._wall, self._stands = wall, stands
        self._logged: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await asyncio.sleep(BEAT)
            await self.tidy()

    async def avoid(self, node: str, fresh: Avoidance) -> Entries:
        """Write an entry; those that gave way to it."""
        dropped: Entries = ()

        def change(entries: Entries) -> Entries:
            nonlocal dropped
            kept, dropped = node_avoidances.added(entries, fresh)
            return kept

        await self._change(node, change)
        return dropped

    async def tidy(self) -> None:
        """Remove what is over (rule 2)."""
        for node, entries in self._book:
            if self._left(node, entries) != entries:
                await self._change(node, functools.partial(self._left, node))

    def _left(self, node: str, entries: Entries) -> Entries:
        now = self._wall()
        return tuple(entry for entry in entries if entry.until > now and self._stands(node, entry))

    async def _change(self, node: str, change: Callable[[Entries], Entries]) -> None:
        for _ in range(_ATTEMPTS):
            try:
                await self._write(node, change)
            except (refusals.Conflict, refusals.AlreadyExists):
                continue  # somebody wrote meanwhile (rule 1)
            except refusals.ObjectsError as error:
                self._failed(error)
            else:
                self._measures.asked("node_avoidance", "ok")
            return
        self._measures.asked("node_avoidance", "conflict")

    async def _write(self, node: str, change: Callable[[Entries], Entries]) -> None:
        where = objects.Ref(kinds.NODE_AVOIDANCES, node)
        try:
            body = await self._store.get(where)
        except refusals.NotFound:
            spec = node_avoidances.spec(change(()))
            if spec["entries"]:
                await self._store.create(
                    kinds.NODE_AVOIDANCES, {"metadata": {"name": node}, "spec": spec}
                )
            return
        kept = change(node_avoidances.node_avoidance(body).entries)
        revision = objects.revision(body)
        if kept:
            patch = objects.Merge({"spec": node_avoidances.spec(kept)}, revision)
            await self._store.patch(where, patch)
        else:
            await self._store.delete(where, revision=revision)

    def _failed(self, error: refusals.ObjectsError) -> None:
        self._measures.asked("node_avoidance", error.code)
        if error.code not in self._logged:
            self._logged.add(error.code)
            log.get().warning(
                "scheduler.node_avoidance_failed",
                detail=str(error),
                fix="are the definitions installed (`koordlet crds`), and the role's rules?",
            )
