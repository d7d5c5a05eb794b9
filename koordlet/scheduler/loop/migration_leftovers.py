"""Deletes what migration jobs leave behind: rooms that nobody will use, jobs long over.

Covers: whether a pod is yet to come that would take a room, deleting by UID. Does not cover: what
is left (``migration.cleanup``), when it is looked for (``migration_controller``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from koordlet.kubeapi import informer, kinds, objects, refusals
from koordlet.scheduler.disruption import workloads
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.migration import cleanup, room
from koordlet.scheduler.migration.job import MigrationJob
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.owners import PodOwner
from koordlet.scheduler.objects.wire import BadObjectError

#: Controllers that say how many pods they want, by kind.
_CONTROLLERS = {
    kind.name: kind
    for kind in (kinds.REPLICATION_CONTROLLERS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS)
}


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

    async def sweep(
        self,
        jobs: Mapping[str, MigrationJob],
        now: float,
        only: Callable[[MigrationJob], bool] | None = None,
    ) -> None:
        """Delete what nobody needs; ``jobs``: by UID; ``only``: no more than the rooms of these."""
        rooms = [
            held
            for (_, name) in self._watched.sources.informers[kinds.RESERVATIONS].snapshot
            if (held := self.room(name)) is not None and held.job
            if only is None or ((job := jobs.get(held.name)) is not None and only(job))
        ]
        for held in cleanup.leftovers(jobs, rooms, self._is_awaited):
            await self._delete(objects.Ref(kinds.RESERVATIONS, held.name), held.uid)
        for job in cleanup.forgotten(jobs.values(), now) if only is None else ():
            await self._delete(objects.Ref(kinds.POD_MIGRATION_JOBS, job.name), job.uid)

    def may_be_replaced(self, held: JobReservation) -> bool:
        """Whether a pod may yet come for a room; so, too, while nobody knows what its owner wants.

        The controller of a pod that left may have no other one: it alone says how many there shall
        be.
        """
        wanted = self._wanted(held.controller)
        return wanted is None or self._is_awaited(held)

    def _is_awaited(self, held: JobReservation) -> bool:
        """Whether its controller lacks pods, or a pod waits for a node that may take a room."""
        if held.controller is not None:
            known = self._watched.disruptions.limiter.workloads
            members = known.members(known.of_controller(*held.controller))
            up = [pod for pod in workloads.each(members) if pod.up]
            own = sum(pod.pod_class.owner == held.controller[1:] for pod in up)
            if len(up) < known.expected(members) or own < (self._wanted(held.controller) or 0):
                return True
        pods = self._watched.sources.informers[kinds.PODS].snapshot.values()
        return any(not pod.node and held.serves(pod) for pod in pods)

    def _wanted(self, controller: tuple[str, str, str] | None) -> int | None:
        """How many pods a controller wants: none once it is deleted; ``None``: nobody says."""
        namespace, kind, name = controller or ("", "", "")
        if kind not in _CONTROLLERS:
            return None
        source: informer.Informer[PodOwner] = self._watched.sources.informers[_CONTROLLERS[kind]]
        if source.health.state is not informer.State.WATCHING:
            return None
        if owner := source.get(name, namespace):
            return owner.replicas
        # Without a cluster pods need no object that says how many there shall be.
        unsaid = self._watched.alone or (namespace, name) in source.rejected
        return None if unsaid else 0

    async def _delete(self, ref: objects.Ref, uid: str) -> None:
        try:
            await self._store.delete(ref, uid=uid)
        except refusals.ObjectsError as error:
            self._watched.core.measures.asked("migration_job", error.code)
