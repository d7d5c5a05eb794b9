"""The port ``kubeapi.objects`` over the file: every method one transaction.

Covers: reads, writes, binding, eviction, admission. Does not cover: the tables (``rows``), what a
write makes of an object (``writing``, ``pods``), waiting for changes (``watching``).
"""

from __future__ import annotations

import random
import sqlite3
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals, selectors
from koordlet.scheduler.store import database, pods, rows, rules, watching, writing

#: The letters of generated names: no vowels, so no words.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"

#: Sees a new or changed object before it is kept (the old one is ``None`` at birth), may refuse it
#: or return another one.
Admit = Callable[[objects.Ref, Mapping[str, Any] | None, dict[str, Any]], dict[str, Any]]


class Store:
    """Objects in one file."""

    def __init__(
        self,
        path: Path,
        *,
        manager: str = "koordlet",
        admit: Sequence[Admit] = (),
        page: int = 500,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._manager = manager
        self._admit = tuple(admit)
        self._page = page
        self._clock = clock
        self._database = database.Database(path)
        self._watches = watching.Watches(self._database)

    async def open(self) -> None:
        """Open or create the file; ``Unavailable`` where it cannot be used as it is."""
        await self._database.open()
        await self._watches.start()

    @property
    def damage(self) -> str:
        """The damage that opening the file found: what is lost, and what was kept."""
        damage, kept = self._database.damage, self._database.kept
        return f"{damage}; kept: {', '.join(map(str, kept))}" if damage else ""

    def now(self) -> float:
        """The time by which objects are dated."""
        return self._clock()

    async def backup(self, path: Path) -> None:
        """Write everything to another file, which can take this one's place."""
        await self._database.backup(path)

    async def close(self) -> None:
        """Close the file; watches end with ``Unavailable``."""
        self._watches.stop()
        await self._database.close()

    # Reading.

    async def list(
        self,
        kind: kinds.Kind,
        *,
        namespace: str = "",
        selector: selectors.Selector = selectors.EVERYTHING,
    ) -> AsyncGenerator[objects.Page, None]:
        """One state of a kind, page by page."""
        compiled = rules.compiled(kind, selector)

        bodies, revision = await self._database.read(
            lambda db: (rows.every(db, kind, namespace), rows.revision(db))
        )
        matching = tuple(body for body in bodies if compiled.matches(body))
        for start in range(0, len(matching) or 1, self._page):
            yield objects.Page(matching[start : start + self._page], str(revision))

    def watch(
        self,
        kind: kinds.Kind,
        since: str,
        *,
        namespace: str = "",
        selector: selectors.Selector = selectors.EVERYTHING,
    ) -> AsyncGenerator[objects.Change, None]:
        """What changes after a revision."""
        return self._watches.follow(kind, since, namespace, selector)

    async def get(self, ref: objects.Ref) -> objects.Object:
        """The cached value of one object."""
        return await self._database.read(lambda db: _existing(db, ref))

    # Writing.

    async def create(
        self, kind: kinds.Kind, body: objects.Object, *, dry_run: bool = False, manager: str = ""
    ) -> objects.Object:
        """A new object."""
        ref = writing.named(kind, body, "".join(random.choices(_LETTERS, k=5)))  # noqa: S311 - a name
        context = self._context(manager)

        def write(db: sqlite3.Connection) -> dict[str, Any]:
            if rows.get(db, ref) is not None:
                why = "it already exists"
                raise refusals.AlreadyExists(why, culprit=str(ref), reason="AlreadyExists")
            return self._put(db, ref, None, writing.born(ref, body, context))

        return await self._database.write(write, keep=not dry_run)

    async def patch(
        self,
        ref: objects.Ref,
        patch: writing.Write,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
    ) -> objects.Object:
        """The object after a patch; an apply creates it where it is missing."""
        context = self._context(manager)

        def write(db: sqlite3.Connection) -> dict[str, Any]:
            old = rows.get(db, ref)
            if old is None and isinstance(patch, objects.Apply) and not subresource:
                named = {
                    "name": ref.name,
                    **({"namespace": ref.namespace} if ref.namespace else {}),
                }
                writing.named(ref.kind, {**patch.body, "metadata": named}, "")
                return self._put(db, ref, None, writing.applied(ref, patch, context))
            old = old or _existing(db, ref)
            new = writing.patched(ref, old, patch, subresource, context)
            if new != old and _is_over(ref, new):
                rows.remove(db, ref, new)
                return new
            return old if new == old else self._put(db, ref, old, new)

        return await self._database.write(write, keep=not dry_run)

    async def delete(
        self,
        ref: objects.Ref,
        *,
        uid: str = "",
        revision: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Remove an object, or ask a pod's node to stop it."""
        now = self._clock()

        def write(db: sqlite3.Connection) -> None:
            old = _existing(db, ref, uid)
            writing.check_revision(ref, old, revision)
            _end(db, ref, old, grace_seconds, now)

        await self._database.write(write, keep=not dry_run)

    async def bind(
        self,
        pod: objects.Ref,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] = objects.NO_ANNOTATIONS,
    ) -> None:
        """Give a pod its node."""
        now = writing.stamp(self._clock())

        def write(db: sqlite3.Connection) -> None:
            old = _existing(db, pod, uid)
            new = pods.bound(old, pod, node, annotations, now)
            new["metadata"]["generation"] = int(new["metadata"].get("generation") or 0) + 1
            rows.put(db, pod, old, new)

        await self._database.write(write)

    async def evict(
        self,
        pod: objects.Ref,
        *,
        uid: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete a pod as its disruption budget allows."""
        now = self._clock()
        stamp = writing.stamp(now)

        def write(db: sqlite3.Connection) -> None:
            old = _existing(db, pod, uid)
            budgets = rows.every(db, kinds.POD_DISRUPTION_BUDGETS, pod.namespace)
            budget = pods.budget_of(old, pod, budgets)
            if budget is not None:
                where = objects.ref(kinds.POD_DISRUPTION_BUDGETS, budget)
                rows.put(db, where, budget, pods.spend(budget, pod, stamp))
            marked = rows.put(db, pod, old, pods.evicted(old, stamp))
            _end(db, pod, marked, grace_seconds, now)

        await self._database.write(write, keep=not dry_run)

    async def compact(self, floor: str) -> None:
        """Forget changes up to a revision: watches from before are ``Gone``."""
        await self._database.write(lambda db: rows.compact(db, int(floor)))

    # What the writes share.

    def _context(self, manager: str) -> writing.WriteContext:
        return writing.WriteContext(
            at=self._clock(), uid=str(uuid.uuid4()), manager=manager or self._manager
        )

    def _put(
        self,
        db: sqlite3.Connection,
        ref: objects.Ref,
        old: dict[str, Any] | None,
        new: dict[str, Any],
    ) -> dict[str, Any]:
        """Write what is admitted of an object."""
        for admit in self._admit:
            new = admit(ref, old, new)
        return rows.put(db, ref, old, new)


def _existing(db: sqlite3.Connection, ref: objects.Ref, uid: str = "") -> dict[str, Any]:
    """An object that must be there, and be the one of a UID where that is given."""
    row = rows.get(db, ref)
    if row is None:
        raise refusals.NotFound("there is none", culprit=str(ref), reason="NotFound")
    writing.check_uid(ref, row, uid)
    return row


def _end(
    db: sqlite3.Connection, ref: objects.Ref, old: dict[str, Any], asked: int | None, now: float
) -> None:
    if ref.kind == kinds.PODS:
        grace = pods.grace_of(old, asked)
        ending = pods.ending(old, grace, writing.stamp(now + grace))
        if ending is not None:
            if ending != old:
                rows.put(db, ref, old, ending)
            return
    elif objects.metadata(old).get("finalizers"):
        # Whoever has put one there has something to do first.
        if objects.metadata(old).get("deletionTimestamp") is None:
            meta = {**old["metadata"], "deletionTimestamp": writing.stamp(now)}
            rows.put(db, ref, old, {**old, "metadata": {**meta, "deletionGracePeriodSeconds": 0}})
        return
    rows.remove(db, ref, old)


def _is_over(ref: objects.Ref, body: dict[str, Any]) -> bool:
    """Whether an object only waited for its finalizers; a pod waits for its node."""
    meta = objects.metadata(body)
    waits = bool(meta.get("finalizers")) or ref.kind == kinds.PODS
    return meta.get("deletionTimestamp") is not None and not waits
