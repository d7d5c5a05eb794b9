"""The informer: a list/watch cache of one kind of objects, with recovery from every failure.

Covers: the source of objects that every room reads from, over any adapter of ``objects``.
Does not cover: what the objects mean (``convert`` makes of them what the caller keeps).

Rules:
1. An object that a list does not contain is deleted here, even where the list is empty. A list
   that fails half-way changes nothing.
2. A watch resumes at the last revision; only ``Gone`` makes a new list. An outage of any length
   costs at most one list.
3. Failures are retried with full jitter, up to ``Pace.most_seconds``; a kind that is not served, at
   ``Pace.slow_seconds``. Refused credentials: soon at first, because a server that has just started
   refuses before it has read its roles and accounts; at ``Pace.slow_seconds`` in the end. A store
   that says when is obeyed.
4. Where the store does not select by a field (``Malformed``, and it names the field), everything is
   watched and selected here; ``health.local`` says so, because it costs the store more.
5. A kind that is not served twice in a row, a minute or two apart, is not installed any more: its
   objects are forgotten. Once may be one of several servers that does not serve it yet.
6. An object that ``convert`` refuses costs only itself: its last good value stays, a new one is
   left out, and ``rejected`` says why.
7. The event of an own write (``wrote``) is not converted where its value is still the one that it
   was made of: each change of others has an event of its own, and makes another value.
"""

from __future__ import annotations

import asyncio
import enum
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Generic, TypeVar

from koordlet.kubeapi import kinds, objects, refusals, selectors
from koordlet.model.record import dataclass

Value = TypeVar("Value")

#: Namespace and name.
Key = tuple[str, str]


class State(enum.Enum):
    """The state of an informer."""

    #: Nothing was ever listed.
    STARTING = "starting"
    WATCHING = "watching"
    #: What is here ages until the next success.
    FAILING = "failing"
    #: The store has no such kind: its CRD is not installed.
    NOT_SERVED = "not_served"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of an informer, for operators."""

    state: State = State.STARTING
    #: The last failure, while it lasts.
    error: str = ""
    #: Since something new was last heard.
    failures: int = 0
    lists: int = 0
    #: Selected here, because the store does not select by the field.
    local: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The delays between attempts after failures."""

    first_seconds: float = 0.5
    most_seconds: float = 30.0
    slow_seconds: float = 120.0

    def wait(self, failures: int, error: refusals.ObjectsError, chance: float) -> float:
        """Seconds to the next attempt after so many; ``chance`` is between 0 and 1."""
        if error.retry_after is not None:
            return error.retry_after * (1 + 0.5 * chance)
        grown = self.first_seconds * (1 << min(failures, 16))
        if isinstance(error, refusals.NotServed):
            return self.slow_seconds * (0.5 + 0.5 * chance)
        if isinstance(error, _DENIED):
            return min(self.slow_seconds, grown) * (0.5 + 0.5 * chance)
        return max(self.first_seconds / 10, min(self.most_seconds, grown) * chance)


_DENIED = (refusals.Unauthorized, refusals.Forbidden)
#: Attempts at a watch that makes no sense before there is a new list instead.
_GARBLED = 4


@dataclass(frozen=True, slots=True)
class Rejected:
    """An object that could not be converted: which one, and why."""

    uid: str
    why: str


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Value]):
    uid: str
    revision: str
    value: Value


class Informer(Generic[Value]):
    """A list/watch cache of one kind, or of the objects that a selector matches."""

    def __init__(
        self,
        store: objects.Objects,
        kind: kinds.Kind,
        convert: Callable[[objects.Object], Value],
        *,
        namespace: str = "",
        selector: selectors.Selector = selectors.EVERYTHING,
        changed: Callable[[Key, Value | None, Value | None], None] | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.kind = kind
        self._store = store
        self._convert = convert
        self._namespace = namespace
        self._wanted = selector
        self._compiled = selector.compiled()
        self._changed = changed
        self._pace = Pace() if pace is None else pace
        self._entries: dict[Key, _Entry[Value]] = {}
        self._rejected: dict[Key, Rejected] = {}
        #: Of the value that is held: the revision of an own write whose event has yet to come.
        self._written: dict[Key, str] = {}
        self._health = Health()
        self._revision = ""
        self._heard: float | None = None
        self._synced = asyncio.Event()
        #: The revision of the last list, to see a store that cannot go on from its own lists.
        self._listed = ""
        #: How often in a row a watch from this revision made no sense.
        self._garbled = 0
        #: How often in a row the credentials were refused.
        self._denied = 0

    # What readers see.

    @property
    def snapshot(self) -> Mapping[Key, Value]:
        """A copy of everything that is cached now."""
        return MappingProxyType({key: entry.value for key, entry in self._entries.items()})

    def get(self, name: str, namespace: str = "") -> Value | None:
        """The cached value of one object."""
        entry = self._entries.get((namespace, name))
        return None if entry is None else entry.value

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def rejected(self) -> Mapping[Key, Rejected]:
        """Objects that could not be converted."""
        return MappingProxyType(self._rejected)

    @property
    def health(self) -> Health:
        """The health of the informer."""
        return self._health

    def age(self) -> float | None:
        """Seconds since the store was last heard; ``None``: never.

        A quiet watch is heard once a minute (bookmarks), so up to 70 s are no reason to worry.
        """
        return None if self._heard is None else asyncio.get_running_loop().time() - self._heard

    async def synced(self) -> None:
        """Wait for the first list."""
        await self._synced.wait()

    def wrote(self, key: Key, value: Value, revision: str) -> None:
        """The store answered a write with this revision; all of it that counts is in the value."""
        entry = self._entries.get(key)
        if entry is not None and entry.value is value:
            self._written[key] = revision

    # The source.

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._revision:
                    await self._list()
                await self._watch()
            except refusals.ObjectsError as error:
                if self._recovered(error):
                    continue
                await asyncio.sleep(self._failed(error))

    async def _list(self) -> None:
        entries: dict[Key, _Entry[Value]] = {}
        rejected: dict[Key, Rejected] = {}
        revision = ""
        pages = self._store.list(self.kind, namespace=self._namespace, selector=self._selector)
        async for page in pages:
            for body in page.items:
                if self._matches(body):
                    self._take(objects.key(body), body, entries, rejected)
            revision = page.revision
        # Values change here that are not of the events.
        self._rejected, self._written = rejected, {}
        for key in self._entries.keys() - entries.keys():
            self._set(key, None)
        for key, entry in entries.items():
            self._set(key, entry)
        self._revision = self._listed = revision
        self._health = replace(self._health, lists=self._health.lists + 1)
        self._ok()
        self._synced.set()

    async def _watch(self) -> None:
        started, seen = asyncio.get_running_loop().time(), self._revision
        watch = self._store.watch(
            self.kind, self._revision, namespace=self._namespace, selector=self._selector
        )
        begun = False
        try:
            async for change in watch:
                begun = True
                self._follow(change)
                # A watch that only began proves nothing yet of its end: failures go on counting.
                self._ok(self._health.failures if change.revision == self._revision else 0)
                self._garbled = self._garbled if change.revision == self._revision else 0
                self._revision = change.revision
        except refusals.Failed:
            # Said within the stream: the server cannot read what comes next itself.
            self._garbled += begun
            raise
        finally:
            await watch.aclose()
        # A server that ends every watch at once must not be asked a thousand times a second.
        if self._revision == seen and asyncio.get_running_loop().time() - started < 1:
            raise refusals.Unavailable("the watch was closed at once", culprit=str(self.kind))

    def _follow(self, change: objects.Change) -> None:
        if change.verb is objects.Verb.BOOKMARK:
            return
        key = objects.key(change.object)
        if self._written.pop(key, "") == change.revision:
            self._entries[key] = replace(self._entries[key], revision=change.revision)
            return
        self._rejected.pop(key, None)
        entries: dict[Key, _Entry[Value]] = {}
        if change.verb is not objects.Verb.DELETED and self._matches(change.object):
            self._take(key, change.object, entries, self._rejected)
        self._set(key, entries.get(key))

    def _set(self, key: Key, entry: _Entry[Value] | None) -> None:
        """Set or delete the entry of a name, and call ``changed``."""
        old = self._entries.get(key)
        if old is entry:
            return
        if old is not None and entry is not None and old.uid != entry.uid:
            # Another object under the same name: the one went, the other came.
            self._set(key, None)
            old = None
        if entry is None:
            del self._entries[key]
        else:
            self._entries[key] = entry
        if self._changed is not None:
            self._changed(
                key, None if old is None else old.value, None if entry is None else entry.value
            )

    def _clear(self) -> None:
        """Forget everything: the kind is not installed any more (rule 5)."""
        self._revision, self._rejected = "", {}
        for key in list(self._entries):
            self._set(key, None)

    def _take(
        self,
        key: Key,
        body: objects.Object,
        entries: dict[Key, _Entry[Value]],
        rejected: dict[Key, Rejected],
    ) -> None:
        """Convert one object; where that fails, its last good value stays."""
        uid, revision = objects.text(body, "uid"), objects.revision(body)
        old = self._entries.get(key)
        if old is not None and (old.uid, old.revision) == (uid, revision):
            entries[key] = old
            return
        try:
            entries[key] = _Entry(uid, revision, self._convert(body))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            rejected[key] = Rejected(uid, f"{type(error).__name__}: {error}"[:300])
            if old is not None and old.uid == uid:
                entries[key] = old

    @property
    def _selector(self) -> selectors.Selector:
        return replace(self._wanted, fields="") if self._health.local else self._wanted

    def _matches(self, body: objects.Object) -> bool:
        return not self._health.local or self._compiled.matches(body)

    # How it is.

    def _ok(self, failures: int = 0) -> None:
        self._heard, self._denied = asyncio.get_running_loop().time(), 0
        if self._health.state is not State.WATCHING or self._health.failures != failures:
            self._health = replace(self._health, state=State.WATCHING, error="", failures=failures)

    def _recovered(self, error: refusals.ObjectsError) -> bool:
        """Whether an error is answered by another request at once."""
        if isinstance(error, refusals.Gone) and self._revision:
            fresh, self._revision = self._revision == self._listed, ""
            return not fresh
        self._garbled += isinstance(error, refusals.Garbled)
        if self._garbled >= _GARBLED:
            # What comes next in the history cannot be read, and would stand in the way for ever.
            self._revision, self._garbled = "", 0
        if not self._health.local and self._unselectable(error):
            self._health = replace(self._health, local=True)
            self._revision = ""
            return True
        return False

    def _unselectable(self, error: refusals.ObjectsError) -> bool:
        """Rule 4: the store names the field. Any other 400 (a proxy's) is a failure like others.

        Else a moment of that would have each agent watch all pods of its cluster.
        """
        named = any(requirement.path in error.message for requirement in self._compiled.fields)
        return named and isinstance(error, refusals.Malformed) and error.reason == "BadRequest"

    def _failed(self, error: refusals.ObjectsError) -> float:
        """Note a failure; seconds until the next attempt."""
        denied = isinstance(error, _DENIED)
        # A server that comes back after an hour, and refuses, has refused for the first time.
        count = self._denied if denied else self._health.failures
        self._denied = self._denied + 1 if denied else 0
        # By chance, so that a cluster of agents does not come back all at once.
        wait = self._pace.wait(count, error, random.random())  # noqa: S311
        absent = isinstance(error, refusals.NotServed)
        if absent and self._health.state is State.NOT_SERVED:
            self._clear()
        self._health = replace(
            self._health,
            state=State.NOT_SERVED if absent else State.FAILING,
            error=str(error),
            failures=self._health.failures + 1,
        )
        return wait
