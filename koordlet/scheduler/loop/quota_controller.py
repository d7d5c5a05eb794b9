"""Writes what ElasticQuotas use and may use back to them, and creates the built-in ones.

Covers: which quotas have changed, writing, events about invalid ones, profiles' tree ids and roots.
Does not cover: what is written (``quotas.status``, ``quotas.pools``).

Rules:
1. What differs from the stored object is written, every ``BEAT`` seconds at most. Looked at are
   quotas whose pods have changed, with all above them, those whose limit is another one, and every
   ``RESYNC`` seconds all.
2. A write that fails is derived and written again after ``RETRY`` seconds. A quota that has gone is
   no error.
3. The built-in quotas are created where there is an ElasticQuota of somebody's. They have no
   maximum: so the arguments say it.
4. What is wrong with an object is an event when it comes up, and the condition ``Invalid`` until it
   is repaired: an annotation, because the kind's definition keeps no conditions. Every ``RESYNC``
   seconds what is invalid is judged again: pods that ended may have been in the way.
5. A profile that names no tree gets the id of its tree as a label. The root quota of the tree is
   created beside the profile, or what it lacks is written to the one that is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from koordlet import log
from koordlet.kubeapi import elastic_quotas, kinds, objects, refusals
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.event_messages import EventBuilder
from koordlet.scheduler.quotas import summary
from koordlet.scheduler.quotas.amounts import Amounts
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.tree import QuotaNode

BEAT, RETRY, RESYNC, RECREATE = 1.0, 10.0, 30.0, 60.0
#: Requests under way at once.
_LANES = 4


class QuotaController:
    """Writes the status of ElasticQuotas."""

    def __init__(
        self,
        store: objects.Objects,
        core: Core,
        events: EventBuilder,
        tell: Callable[[objects.Object], Awaitable[None]],
        steady: Callable[[], float],
    ) -> None:
        self._store, self._core, self._steady = store, core, steady
        self._events, self._tell = events, tell
        self._resynced = -RESYNC
        self._limits: dict[str, Amounts] = {}
        #: When quotas whose write failed are looked at again; built-in ones that are missing too.
        self._again: dict[str, float] = {}
        self._recreated = -RECREATE
        #: When profiles and conditions whose write failed are looked at again.
        self._waits: dict[str, float] = {}
        self._lanes = asyncio.Semaphore(_LANES)
        #: What failed, and its code, where that is logged already.
        self._logged: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(BEAT)

    async def look(self) -> None:
        """Write what differs, of the quotas that have changed."""
        if not self._core.quotas.active:
            return
        book = self._core.quotas.book
        book.pass_overdue(self._events.wall())
        await self._tell_notices(book)
        await self._write_conditions(book)
        await self._create_built_in(book)
        await self._write_pools(book)
        due, history = self._due(book), self._core.quotas.history
        history.keep(book.nodes)
        for node in due:
            history.note_use(node.name, over=bool(summary.over(book, node)), now=self._steady())
        await asyncio.gather(*(self._follow(book, node) for node in due))

    async def _tell_notices(self, book: QuotaBook) -> None:
        for notice in book.take_notices():
            scheduler = min(self._core.cycles)
            body = self._events.about_quota(
                notice, scheduler, "Validating", notice.reason, notice.message
            )
            await self._tell(body)

    async def _write_conditions(self, book: QuotaBook) -> None:
        """Rule 4."""
        now = self._steady()
        for quota in list(book.objects()):
            words = book.invalid.get(quota.id, "")
            if quota.invalid == words or not quota.uid or self._waits.get(quota.uid, now) > now:
                continue
            notes = {elastic_quotas.INVALID: words or None}
            try:
                await self._write(quota, {"metadata": {"annotations": notes}})
            except refusals.NotFound:
                continue  # the watch says so as well
            except refusals.ObjectsError as error:
                self._failed("condition", error)
                self._waits[quota.uid] = now + RETRY

    def _due(self, book: QuotaBook) -> list[QuotaNode]:
        """Rule 1."""
        # The root is that of the default tree.
        now, nodes = self._steady(), {**book.nodes, elastic_quotas.ROOT: book.trees[""].root}
        touched = (nodes[name] for name in book.touched if name in nodes)
        names = {above.name for node in touched for above in node.path}
        book.touched.clear()
        limits = {name: book.limit(node) for name, node in nodes.items()}
        names |= {name for name, limit in limits.items() if self._limits.get(name) is not limit}
        self._limits = limits
        if now - self._resynced >= RESYNC:
            self._resynced = now
            names |= nodes.keys()
            book.reconsider()
        names |= self._again.keys() & nodes.keys()
        waiting = {name for name, at in self._again.items() if at > now}
        self._again = {name: self._again[name] for name in waiting & nodes.keys()}
        return [nodes[name] for name in sorted(names - waiting)]

    async def _follow(self, book: QuotaBook, node: QuotaNode) -> None:
        stored = book.stored(node.name)
        if stored is None or not stored.uid:
            return  # a built-in quota, or one that a profile alone declares
        async with self._lanes:
            patch = book.changes(stored, node)
            if not patch:
                return
            try:
                await self._write(stored, patch)
            except refusals.NotFound:
                return  # the watch says so as well
            except refusals.ObjectsError as error:
                self._again[node.name] = self._steady() + RETRY
                self._failed("status", error)
            else:
                self._core.measures.asked("quota", "ok")
                if self._core.quotas.tells_synced:
                    words = f"Elastic Quota {stored.id} synced successfully"
                    scheduler = min(self._core.cycles)
                    await self._tell(
                        self._events.about_quota(stored, scheduler, "Syncing", "Synced", words)
                    )

    async def _write(self, stored: ElasticQuota, patch: dict[str, Any]) -> None:
        """Both ways: a definition without a subresource has the status in the object itself."""
        ref = objects.Ref(stored.kind, stored.name, stored.namespace)
        meta = {"uid": stored.uid}
        body = {**patch, "metadata": {**meta, **patch.get("metadata", {})}}
        await self._store.patch(ref, objects.Merge(body))
        if "status" in patch:
            only = objects.Merge({"metadata": meta, "status": patch["status"]})
            await self._store.patch(ref, only, subresource="status")

    async def _create_built_in(self, book: QuotaBook) -> None:
        """Rule 3."""
        missing = [name for name in sorted(elastic_quotas.BUILT_IN) if book.owner(name) is None]
        if not missing or self._steady() - self._recreated < RECREATE:
            return
        if elastic_quotas.BUILT_IN.issuperset(book.names()):
            return
        self._recreated = self._steady()
        for name in missing:
            try:
                await self._store.create(
                    kinds.ELASTIC_QUOTAS, _built_in(name, book.settings.namespace)
                )
            except refusals.AlreadyExists:
                continue
            except refusals.ObjectsError as error:
                self._failed(f"creation of {name}", error)

    async def _write_pools(self, book: QuotaBook) -> None:
        """Rule 5."""
        now = self._steady()
        for pool, stored in book.pools():
            profile = pool.profile
            if self._waits.get(profile.id, now) > now:
                continue
            try:
                if not profile.tree_id:
                    labels = {elastic_quotas.TREE_ID: pool.tree_id}
                    meta = {"uid": profile.uid, "labels": labels}
                    ref = objects.Ref(profile.kind, profile.name, profile.namespace)
                    await self._store.patch(ref, objects.Merge({"metadata": meta}))
                if stored is None:
                    await self._store.create(kinds.ELASTIC_QUOTAS, pool.created())
                elif patch := pool.unstored(stored):
                    await self._write(stored, patch)
            except (refusals.AlreadyExists, refusals.NotFound):
                continue  # the watch says so as well
            except refusals.ObjectsError as error:
                self._failed("root quota", error)
                self._waits[profile.id] = now + RETRY

    def _failed(self, what: str, error: refusals.ObjectsError) -> None:
        """Count a failure, and log the first of its kind."""
        self._core.measures.asked("quota", error.code)
        if (what, error.code) not in self._logged:
            self._logged.add((what, error.code))
            log.get().warning("scheduler.quota_status", what=what, detail=str(error))


def _built_in(name: str, namespace: str) -> dict[str, Any]:
    is_parent = "true" if name == elastic_quotas.ROOT else "false"
    return {
        "apiVersion": kinds.ELASTIC_QUOTAS.api_version,
        "kind": kinds.ELASTIC_QUOTAS.name,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {elastic_quotas.IS_PARENT: is_parent},
        },
        "spec": {},
    }
