"""Writes the status of PodGroups: phase and counts of the peers' kind, a condition of the own one.

Covers: which PodGroups have changed, members that have ended, writing.
Does not cover: what the status should be (``gangs.status``).

Rules:
1. A status is written when it differs from the stored one, every ``BEAT`` seconds at most: a gang
   that is bound member by member costs a few writes, not one for each.
2. Members that have ended are not watched. They are listed once at the start, and again for a gang
   that has lost a member.
3. A write that fails is derived and written again after ``RETRY`` seconds. A PodGroup that has gone
   is no error.
4. The status is a subresource where the definition of PodGroups has one (scheduler-plugins'), and a
   part of the object where it has none (Koordinator's).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from koordlet import log
from koordlet.kubeapi import kinds, objects, pod_groups, refusals, selectors
from koordlet.model.record import dataclass
from koordlet.scheduler.gangs import status
from koordlet.scheduler.gangs.book import GangEntry
from koordlet.scheduler.loop.core import Core

BEAT, RETRY = 0.5, 10.0
#: Requests under way at once.
_LANES = 4
_ENDED = "status.phase!=Pending,status.phase!=Running"


@dataclass(slots=True, eq=False)
class _Followed:
    """What is remembered of one PodGroup of the peers' kind."""

    members: frozenset[str]
    #: By UID: the phase of each member that has ended.
    ended: dict[str, str]
    #: The UIDs of those that ended before the gang began anew.
    past: frozenset[str] = frozenset()
    #: What was written last of the condition GangBroken; ``None``: nothing.
    broken: bool | None = None

    def take(self, members: frozenset[str], *, over: bool) -> bool:
        """Take in who is there now; whether new ones came, with whom a gang that is over begins."""
        renewed = not members <= self.members
        self.members = members
        if renewed and over:
            self.past = frozenset(self.ended)
        return renewed

    def list_ended(self, bodies: Iterable[objects.Object]) -> None:
        """Replace what is known of those that have ended."""
        self.ended = {objects.text(body, "uid"): _phase(body) for body in bodies}


class PodGroupController:
    """Writes the status of PodGroups."""

    def __init__(
        self,
        store: objects.Objects,
        core: Core,
        steady: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._store, self._core, self._steady, self._wall = store, core, steady, wall
        self._followed: dict[str, _Followed] = {}
        #: Members that had ended at the start, by gang; ``None``: not read yet.
        self._before: dict[str, dict[str, str]] | None = None
        #: When PodGroups whose write failed are looked at again.
        self._again: dict[str, float] = {}
        self._lanes = asyncio.Semaphore(_LANES)
        #: Codes of failures that are logged already.
        self._logged: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled."""
        book = self._core.gangs.book
        book.touched.update(dict.fromkeys(entry.key for entry in book))
        while True:
            await self.look()
            await asyncio.sleep(BEAT)

    async def look(self) -> None:
        """Write the statuses that differ, of the gangs that have changed."""
        book, now = self._core.gangs.book, self._steady()
        due = [key for key, at in self._again.items() if at <= now]
        for key in due:
            del self._again[key]
        keys = dict.fromkeys((*book.touched, *due))
        book.touched.clear()
        entries = []
        for key in keys:
            entry = book.get(key)
            if entry is None or entry.pod_group is None:
                self._followed.pop(key, None)
            else:
                entries.append(entry)
        if self._before is None and entries:
            await self._start(entries)
        if self._before is not None:
            await asyncio.gather(*map(self._follow, entries))
            # Gangs without a PodGroup have no use for theirs.
            self._before.clear()

    async def _start(self, entries: list[GangEntry]) -> None:
        """List the members that had ended before; without them no status is written."""
        before: dict[str, dict[str, str]] = {}
        try:
            for body in await self._ended("", pod_groups.POD_GROUP):
                key = f"{objects.text(body, 'namespace')}/{_pod_group(body)}"
                before.setdefault(key, {})[objects.text(body, "uid")] = _phase(body)
        except refusals.ObjectsError as error:
            for entry in entries:
                self._failed(entry, error)
        else:
            self._before = before

    async def _follow(self, entry: GangEntry) -> None:
        async with self._lanes:
            pod_group = entry.pod_group
            if pod_group is None:
                return
            try:
                wanted = self._native(entry) if pod_group.native else await self._peers(entry)
                if wanted:
                    await self._write(pod_group, wanted)
            except refusals.ObjectsError as error:
                self._failed(entry, error)

    def _failed(self, entry: GangEntry, error: refusals.ObjectsError) -> None:
        """Count a failure, and look again later (rule 3)."""
        self._core.measures.asked("podgroup", error.code)
        if type(error) is refusals.NotFound:
            return  # the watch says so as well
        self._again[entry.key] = self._steady() + RETRY
        if error.code not in self._logged:
            self._logged.add(error.code)
            log.get().warning("scheduler.pod_group_status", detail=str(error))

    async def _write(self, pod_group: pod_groups.PodGroup, wanted: Mapping[str, Any]) -> None:
        kind = kinds.NATIVE_POD_GROUPS if pod_group.native else kinds.POD_GROUPS
        ref = objects.Ref(kind, pod_group.name, pod_group.namespace)
        body = {"metadata": {"uid": pod_group.uid}, "status": wanted}
        patch = objects.Strategic(body) if pod_group.native else objects.Merge(body)
        try:
            await self._store.patch(ref, patch, subresource="status")
        except refusals.NotFound:
            # Rule 4: a server says the same of a missing subresource as of a missing object.
            if pod_group.native:
                raise
            await self._store.patch(ref, patch)
        self._core.measures.asked("podgroup", "ok")

    def _native(self, entry: GangEntry) -> dict[str, Any]:
        gang, pod_group = entry.gang, entry.pod_group
        if gang is None or pod_group is None:
            return {}
        group = self._core.gangs.book.group(entry)
        scheduled = len(entry.bound) >= max(1, gang.min)
        wall = self._wall()
        several = (
            status.condition(pod_group, group.obstacle, scheduled=scheduled, now=wall),
            self._broken(entry, pod_group),
        )
        changed = [condition for condition in several if condition is not None]
        return {"conditions": changed} if changed else {}

    def _broken(self, entry: GangEntry, pod_group: pod_groups.PodGroup) -> Mapping[str, Any] | None:
        """The condition GangBroken where it differs; a restart knows it by the stored one."""
        gang, group = entry.gang, self._core.gangs.book.group(entry)
        left = len(entry.children) - self._core.gangs.undecided(entry)
        below = gang is not None and left < gang.min and group.satisfied
        entry.broken = below and (entry.broken or status.broken(pod_group))
        return status.broken_condition(
            pod_group, is_broken=entry.broken, left=left, now=self._wall()
        )

    # The peers' kind.

    async def _peers(self, entry: GangEntry) -> dict[str, Any]:
        followed = await self._remembered(entry)
        stored = entry.pod_group.status if entry.pod_group is not None else {}
        over = stored.get("phase") in status.ENDED
        renewed = followed.take(frozenset(entry.members), over=over)
        phases = [phase for uid, phase in followed.ended.items() if uid not in followed.past]
        group = self._core.gangs.book.group(entry)
        counts = status.PodGroupCounts(
            children=len(entry.children),
            scheduled=len(entry.bound),
            running=sum(entry.children[key].running for key in entry.bound),
            succeeded=phases.count("Succeeded"),
            failed=phases.count("Failed"),
            tried=group.obstacle is not None,
            renewed=renewed,
        )
        wanted = status.changes(entry, counts, self._wall())
        pod_group = entry.pod_group
        changed = self._broken(entry, pod_group) if pod_group is not None else None
        # A definition without conditions drops them: each change is written once.
        if pod_group is not None and changed is not None and entry.broken != followed.broken:
            followed.broken = entry.broken
            wanted["conditions"] = status.with_condition(pod_group, changed)
        return wanted

    async def _remembered(self, entry: GangEntry) -> _Followed:
        """What is known of the members that have ended, read again where one has left."""
        followed = self._followed.get(entry.key)
        if followed is None:
            ended = self._before.pop(entry.key, {}) if self._before is not None else {}
            followed = _Followed(frozenset(entry.members), ended)
            self._followed[entry.key] = followed
        elif followed.members - entry.members.keys():
            namespace, _, name = entry.key.partition("/")
            followed.list_ended(await self._ended(namespace, f"{pod_groups.POD_GROUP}={name}"))
        return followed

    async def _ended(self, namespace: str, labels: str) -> tuple[objects.Object, ...]:
        wanted = selectors.Selector(labels=labels, fields=_ENDED)
        pages = self._store.list(kinds.PODS, namespace=namespace, selector=wanted)
        return (await objects.collect(pages)).items


def _phase(body: objects.Object) -> str:
    return str(objects.part(body, "status").get("phase") or "")


def _pod_group(body: objects.Object) -> str:
    labels = objects.part(objects.metadata(body), "labels")
    return str(labels.get(pod_groups.POD_GROUP) or "")
