"""Watches: the changes after a revision, delivered to every watcher in order.

Covers: waking watchers after a commit, selectors, bookmarks, what is gone.
Does not cover: the statements (``rows``).

Every watcher reads the events from the file: it is told neither what was rolled back nor anything
twice, whatever happens to the task that wrote, and a slow one costs no memory.
"""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections.abc import AsyncGenerator

from koordlet.kubeapi import kinds, objects, refusals, selectors
from koordlet.scheduler.store import database, rows, rules

#: Read in one go.
_MOST = 500
#: A watcher that nothing concerns learns this often how far it is.
BOOKMARK_SECONDS = 60.0


class Watches:
    """All watchers of one file."""

    def __init__(self, file: database.Database) -> None:
        self._file = file
        self._open = False
        self._moved = asyncio.Event()

    async def start(self) -> None:
        """Start delivering events."""
        self._open = True
        self._file.on_commit(self._wake)

    def stop(self) -> None:
        """End every watch."""
        self._open = False
        self._wake()

    async def follow(
        self, kind: kinds.Kind, since: str, namespace: str, selector: selectors.Selector
    ) -> AsyncGenerator[objects.Change, None]:
        """The events of one watcher, until it closes the generator."""
        compiled = rules.compiled(kind, selector)
        if not since.isascii() or not since.isdigit():
            raise refusals.Malformed(f"not a revision: {since[:40]!r}", culprit=str(kind))
        place = int(since)
        while True:
            if not self._open:
                raise refusals.Unavailable("the store is closed", culprit=str(self._file.path))
            # Taken before reading: what is committed after the read wakes this very event.
            moved = self._moved
            read = functools.partial(_after, kind=kind, namespace=namespace, place=place)
            events, newest = await self._file.read(read)
            for event in events:
                place = event.revision
                change = _change(event, compiled)
                if change is not None:
                    yield change
            if len(events) == _MOST:
                continue
            # Nothing of this kind lies between the last event and the newest revision.
            place = max(place, newest)
            try:
                # Not wait_for: in Python 3.11 it swallows a cancellation that meets the event.
                async with asyncio.timeout(BOOKMARK_SECONDS):
                    await moved.wait()
            except TimeoutError:
                yield objects.Change(objects.Verb.BOOKMARK, {}, str(place))

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


def _after(
    db: sqlite3.Connection, kind: kinds.Kind, namespace: str, place: int
) -> tuple[list[rows.StoredEvent], int]:
    newest = rows.revision(db)
    why = "is too old" if place < rows.compacted(db) else ""
    if place > newest:
        # The file was put back to an older state: what the watcher knows is not so any more.
        why = f"does not exist yet (newest: {newest})"
    if why:
        raise rows.gone(kind, f"revision {place} {why}")
    return rows.since(db, kind, namespace, place, _MOST), newest


def _change(event: rows.StoredEvent, selector: selectors.Compiled) -> objects.Change | None:
    """What a watcher with a selector sees of an event."""
    was = bool(event.before) and selector.matches(event.before)
    now = bool(event.after) and selector.matches(event.after)
    revision = str(event.revision)
    if now:
        verb = objects.Verb.MODIFIED if was else objects.Verb.ADDED
        return objects.Change(verb, event.after, revision)
    if was:
        last = event.before
        deleted = {**last, "metadata": {**last["metadata"], "resourceVersion": revision}}
        return objects.Change(objects.Verb.DELETED, deleted, revision)
    return None
