"""Deletes what migration jobs leave behind: rooms that nobody will use, jobs long over.

Covers: whether a pod is yet to come that would take a room, deleting by UID. Does not cover: what
is left (``migration.cleanup``), when it is looked for (``migration_controller``).
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.disruption import workloads
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.migration import cleanup, room
from koordlet.scheduler.migration.job import MigrationJob
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.wire import BadObjectError


class MigrationLeftovers:
    """What is left of the jobs of one cluster."""

    def __init__(self, store: objects.Objects, watched: WatchedCluster) -> None:
        self._store, self._watched = store, watched

    def room(self, name: str) -> JobReservation | None:
        """The reservation of a name; ``None``: there is none, or it cannot be read."""
        body = self._watched.sources.informers[kinds.RESERVATIONS].get(name)
        try:
            return None if body is None else room.read(body)
        except BadObjectError:
            return None

    async def sweep(self, jobs: Mapping[str, MigrationJob], now: float) -> None:
        """Delete what nobody needs; ``jobs``: by UID."""
        rooms = [
            held
            for (_, name) in self._watched.sources.informers[kinds.RESERVATIONS].snapshot
            if (held := self.room(name)) is not None and held.job
        ]
        for held in cleanup.leftovers(jobs, rooms, self._is_awaited):
            await self._delete(objects.Ref(kinds.RESERVATIONS, held.name), held.uid)
        for job in cleanup.forgotten(jobs.values(), now):
            await self._delete(objects.Ref(kinds.POD_MIGRATION_JOBS, job.name), job.uid)

    def _is_awaited(self, held: JobReservation) -> bool:
        """Whether a pod waits for a node that may take a room, or its controller lacks pods."""
        pods = self._watched.sources.informers[kinds.PODS].snapshot.values()
        if any(not pod.node and held.serves(pod) for pod in pods):
            return True
        if held.controller is None:
            return False
        known = self._watched.disruptions.limiter.workloads
        members = known.members(known.of_controller(*held.controller))
        return sum(pod.up for pod in workloads.each(members)) < known.expected(members)

    async def _delete(self, ref: objects.Ref, uid: str) -> None:
        try:
            await self._store.delete(ref, uid=uid)
        except refusals.ObjectsError as error:
            self._watched.core.measures.asked("migration_job", error.code)
