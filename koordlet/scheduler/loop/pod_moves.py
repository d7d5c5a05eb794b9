"""Moves pods on behalf of a person: a node that is drained, one pod that shall go elsewhere.

Covers: cordoning, a migration job for each pod, their progress, giving back what is held.
Does not cover: the life of a job (``migration.flow``), who may be evicted (``disruption.limiter``).

Rules:
1. Room first: a job holds a reservation on another node before its pod is evicted. Only pods of
   schedulers that know no reservations are evicted without one, where that is wanted.
2. The jobs are carried out here, whoever else carries out jobs: each step is written against the
   revision that was decided on, so that two do nothing twice.
3. Whatever ends it (all is done, the time is over, an interrupt) leaves no job and no reservation
   behind: jobs that have not evicted their pod are ended, and give their room back; one whose pod
   is terminating keeps it for the replacement. A cordoned node stays so, unless it was cordoned
   here and nobody has left it.
4. Pods that come to the node meanwhile go, too: those that tolerate that it is cordoned.
5. A request that fails for a while (``_PASSING``) costs one pod a look, and is made again; a pod
   that cannot be read blocks. Neither ends the moves of the others.
6. A pod whose room a sibling took has another job: the rooms of a workload are open to each of its
   replacements, and one may have come for a pod that left before.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.kubeapi.disruption_rates import CountOrPercent
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import traits
from koordlet.scheduler.descheduling.evictor_settings import (
    RESERVATION_FIRST,
    EvictorSettings,
    JobRate,
    MigrationSettings,
)
from koordlet.scheduler.descheduling.traits import PodTraits, Resident
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.loop.binder import ref
from koordlet.scheduler.loop.cluster_watch import ClusterWatch
from koordlet.scheduler.loop.migration_controller import MigrationController
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.loop.runner import Clocks
from koordlet.scheduler.migration import cleanup, flow
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.migration.job import MigrationJob, Phase, PodRef
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.rescheduling.drain import belongs

_LOOK, _GIVE_BACK = 0.2, 15.0
_DIRECTLY = "EvictDirectly"
#: Another try may pass.
_PASSING = (refusals.Unavailable, refusals.TooMany, refusals.Conflict)
#: Every job begins at once: each waits for its own room, and for budgets and rates.
_UNBOUNDED = MigrationSettings(
    max_per_node=None,
    max_per_workload=CountOrPercent(100, percent=True),
    max_unavailable=CountOrPercent(100, percent=True),
    workload_rate=JobRate(),
    arbitration_seconds=_LOOK,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOptions:
    """What somebody wants."""

    #: ``drain/NODE`` or ``evict``, as the limiter knows movers.
    by: str
    reason: str = ""
    #: The node to empty; empty: only ``pod`` goes.
    node: str = ""
    #: ``namespace/name``.
    pod: str = ""
    #: Data on the node may be lost.
    loses_data: bool = False
    #: Pods of other schedulers go without room being held.
    without_room: bool = False
    #: Seconds after which it gives up; ``None``: never.
    timeout: float | None = None
    #: Seconds for which a workload avoids the node that its pod leaves; ``None``: as long as usual.
    avoid_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of one pod."""

    pod: str
    #: ``Waiting``, ``Reserved``, ``Evicting``, ``Moved``, ``Stays`` or ``Blocked``.
    state: str
    node: str = ""
    message: str = ""

    def body(self) -> dict[str, Any]:
        """As a document."""
        return dataclasses.asdict(self)


class PodMoves:
    """Moves the pods of one node, or one pod."""

    def __init__(
        self,
        store: objects.Objects,
        options: MoveOptions,
        profiles: Mapping[str, Profile],
        disruption: DisruptionSettings,
        *,
        instance: str,
        tell: Callable[[Progress], None],
        watched: WatchedCluster | None = None,
    ) -> None:
        """``watched``: what is watched already, such as a scheduler; ``None``: all is, here."""
        self._store, self._options, self._tell = store, options, tell
        self._watches = watched is None
        self._watch: WatchedCluster = watched or ClusterWatch(
            store, profiles, disruption, Clocks(wall=store.now), instance=instance,
            leads=lambda: True,
        )  # fmt: skip
        self._reserving = frozenset(profiles)
        settings = dataclasses.replace(_UNBOUNDED, scheduler_names=self._reserving)
        self._migrations = MigrationController(
            store,
            self._watch,
            EvictorSettings(migration=settings),
            instance=instance,
            only=lambda job: job.by == options.by,
        )
        #: By UID, and the jobs that were made, by UID of their pod.
        self._traits: dict[str, PodTraits] = {}
        self._made: dict[str, str] = {}
        #: UIDs of pods whose job may have been made: nobody answered.
        self._unanswered: set[str] = set()
        #: What was last told of each pod.
        self.states: dict[str, Progress] = {}
        self._cordoned = False

    async def run(self) -> bool:
        """Move them; whether nobody is left who was to go."""
        parts = [asyncio.ensure_future(self._watch.sources.run())] if self._watches else []
        try:
            await self._check_jobs()
            await self._cordon()
            await self._watch.sources.synced()
            parts.append(asyncio.ensure_future(self._migrations.run()))
            await self._migrations.synced()
            await self._resume()
            try:
                async with asyncio.timeout(self._options.timeout):
                    return await self._work(parts)
            except TimeoutError:
                return False
            finally:
                await asyncio.shield(self._give_back())
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _check_jobs(self) -> None:
        try:
            await objects.collect(self._store.list(kinds.POD_MIGRATION_JOBS))
        except refusals.NotServed as error:
            raise errors.HostError(
                "the cluster does not know migration jobs",
                culprit=str(kinds.POD_MIGRATION_JOBS),
                fix="install them: koordlet crds | kubectl apply --server-side -f -",
            ) from error

    async def _cordon(self) -> None:
        if not self._options.node:
            return
        where = objects.Ref(kinds.NODES, self._options.node)
        body = await self._store.get(where)
        if objects.part(body, "spec").get("unschedulable") is not True:
            self._cordoned = True
            await self._store.patch(where, objects.Merge({"spec": {"unschedulable": True}}))

    async def _resume(self) -> None:
        """Go on with jobs of a drain that was killed."""
        for job in self._mine():
            if job.active:
                self._made[job.pod.uid] = job.uid

    def _mine(self) -> list[MigrationJob]:
        """Its jobs: of this drain, or of this pod, as several may be evicted at one time."""
        by, pod = self._options.by, self._options.pod
        return [
            job
            for job in self._migrations.jobs()
            if job.by == by and (not pod or str(job.pod) == pod)
        ]

    async def _work(self, parts: Sequence[asyncio.Future[None]]) -> bool:
        while True:
            for part in parts:
                if part.done():
                    part.result()  # the error of whoever must not end
            by_uid = {job.uid: job for job in self._mine()}
            waiting = await self._look(
                {
                    pod
                    for pod, uid in self._made.items()
                    if uid not in by_uid or not flow.lost_room(by_uid[uid])
                }
            )
            several = [by_uid[uid] for uid in self._made.values() if uid in by_uid]
            for job in several:
                self._show(job)
            unseen = any(uid not in by_uid for uid in self._made.values())
            if not waiting and not unseen and not any(job.active for job in several):
                return not any(each.state == "Blocked" for each in self.states.values())
            await asyncio.sleep(_LOOK)

    def _chosen(self) -> Iterator[Pod]:
        """The pods that shall go, as the store shows them now."""
        cache, options = self._watch.core.pod_cache, self._options
        if options.pod:
            pod = cache.get(options.pod)
            if pod is None and not self._made:
                raise errors.ConfigError("no such pod has a node", culprit=options.pod)
            yield from [] if pod is None or (self._made and pod.uid not in self._made) else [pod]
            return
        row = cache.columns.rows.get(options.node)
        for pod in [] if row is None else list(cache.columns.pods[row].values()):
            if not pod.reserve_pod_of:
                yield pod

    async def _look(self, provided: set[str]) -> bool:
        """Make the jobs that are missing; whether any pod waits for one.

        ``provided``: the UIDs of pods that need no more than the job that they have, or had.
        """
        waiting = False
        for pod in sorted(self._chosen(), key=lambda pod: (pod.priority, pod.key)):
            if pod.uid in provided or pod.terminating:
                continue
            try:
                await self._ask_for(pod)
            except refusals.NotFound:
                waiting = True
            except _PASSING as error:
                waiting = True
                self._note(_progress(pod, "Waiting", str(error)))
            except BadObjectError as error:
                self._note(_progress(pod, "Blocked", str(error)))
        return waiting

    async def _ask_for(self, pod: Pod) -> None:
        """Make the job of a pod, unless it stays."""
        known = self._traits.get(pod.uid)
        if known is None:
            known = self._traits[pod.uid] = traits.decode(await self._store.get(ref(pod)))
        if why := belongs(Resident(pod, known, -1)):
            self._note(_progress(pod, "Stays", why))
        elif why := self._forbids(pod, known):
            self._note(_progress(pod, "Blocked", why))
        else:
            await self._request(pod)

    def _forbids(self, pod: Pod, known: PodTraits) -> str:
        if known.local_storage and not self._options.loses_data:
            return "it has data on its node, which would be lost (--delete-local-data)"
        scheduler = pod.pod_class.scheduler
        if scheduler not in self._reserving and not self._options.without_room:
            return (
                f"its scheduler {scheduler} makes no reservations: no room can be held for it"
                " (--without-room evicts it all the same)"
            )
        return ""

    async def _request(self, pod: Pod) -> None:
        reserves = pod.pod_class.scheduler in self._reserving
        body = jobs.request(
            PodRef.of(pod),
            mode=RESERVATION_FIRST if reserves else _DIRECTLY,
            reason=self._options.reason or self._options.by,
            by=self._options.by,
            avoid_seconds=self._options.avoid_seconds,
        )
        try:
            made = await self._answered(pod) or await self._store.create(
                kinds.POD_MIGRATION_JOBS, body
            )
        except refusals.Unavailable:
            self._unanswered.add(pod.uid)
            raise
        self._made[pod.uid] = objects.text(made, "uid")
        self._note(_progress(pod, "Waiting"))

    async def _answered(self, pod: Pod) -> objects.Object | None:
        """The job of a pod whose creation got no answer; ``None``: there is none."""
        if pod.uid not in self._unanswered:
            return None
        listing = await objects.collect(self._store.list(kinds.POD_MIGRATION_JOBS))
        for body in listing.items:
            job = jobs.read(body)
            if job.active and job.by == self._options.by and job.pod.uid == pod.uid:
                return body
        return None

    # What is told.

    def _show(self, job: MigrationJob) -> None:
        status, why = job.status, self._migrations.refusal(job)
        state, message = "Waiting", why or status.message
        if status.phase is Phase.SUCCEEDED:
            state = "Moved"
        elif status.phase.over:
            state = "Blocked"
        elif status.condition(flow.EVICTION) is not None and not why:
            state = "Evicting"
        elif status.node:
            state = "Reserved"
        node = status.node or self._options.node
        self._note(Progress(pod=str(job.pod), state=state, node=node, message=message))

    def _note(self, progress: Progress) -> None:
        old = self.states.get(progress.pod)
        if old is None or (old.state, old.message) != (progress.state, progress.message):
            self.states[progress.pod] = progress
            self._tell(progress)

    # The way back.

    async def _give_back(self) -> None:
        """End the jobs that have evicted nobody, and wait until their room is free (rule 3)."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GIVE_BACK):
                while left := [job for job in self._mine() if _held(job) and not self._leaves(job)]:
                    for job in left:
                        if not job.aborts:
                            with contextlib.suppress(*_PASSING):
                                await _end(self._store, job)
                    await asyncio.sleep(_LOOK)
        for job in self._mine():
            if job.status.phase is Phase.ABORTED:
                with contextlib.suppress(refusals.NotFound, *_PASSING):
                    await self._store.delete(objects.Ref(kinds.RESERVATIONS, job.uid))
        await self._migrations.sweep()
        moved = any(cleanup.has_evicted(job) or self._leaves(job) for job in self._mine())
        if self._cordoned and not moved and any(s.state != "Stays" for s in self.states.values()):
            await uncordon(self._store, self._options.node)

    def _leaves(self, job: MigrationJob) -> bool:
        """Whether the eviction of a job's pod was accepted: its replacement needs the room."""
        pod = self._watch.core.pod_cache.get(str(job.pod))
        asked = job.status.condition(flow.EVICTION) is not None
        return asked and pod is not None and pod.uid == job.pod.uid and pod.terminating


def _progress(pod: Pod, state: str, message: str = "") -> Progress:
    return Progress(pod=pod.key, state=state, node=pod.node, message=message)


def _held(job: MigrationJob) -> bool:
    """Whether a job is under way and has evicted nobody."""
    return job.active and not cleanup.has_evicted(job)


async def _end(store: objects.Objects, job: MigrationJob) -> None:
    """Let a job end; whoever carries it out gives its room back."""
    body = {"metadata": {"annotations": {jobs.ABORT: "true"}}}
    with contextlib.suppress(refusals.NotFound):
        await store.patch(objects.Ref(kinds.POD_MIGRATION_JOBS, job.name), objects.Merge(body))


async def uncordon(store: objects.Objects, node: str) -> None:
    """Let pods come to a node again."""
    body = objects.Merge({"spec": {"unschedulable": None}})
    await store.patch(objects.Ref(kinds.NODES, node), body)


async def undo(store: objects.Objects, node: str) -> int:
    """Uncordon a node, and end what a drain of it has left under way; how many jobs that were."""
    await uncordon(store, node)
    with contextlib.suppress(refusals.NotServed):
        listing = await objects.collect(store.list(kinds.POD_MIGRATION_JOBS))
        several = [job for job in map(jobs.read, listing.items) if job.by == f"drain/{node}"]
        left = list(filter(_held, several))
        for job in left:
            with contextlib.suppress(refusals.NotFound):
                await store.delete(objects.Ref(kinds.POD_MIGRATION_JOBS, job.name))
            if job.reservation:
                with contextlib.suppress(refusals.NotFound):
                    await store.delete(objects.Ref(kinds.RESERVATIONS, job.reservation))
        return len(left)
    return 0
