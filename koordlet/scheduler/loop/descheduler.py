"""The descheduler over a watched cluster: rounds at an interval, what it says of them.

Covers: the state of a round, leading, what is kept of the last round. Does not cover: deciding
(``descheduling``), answering what a round proposes (``round_moves``), carrying out migration jobs
(``migration_controller``), watching (``cluster_watch``, or the scheduler that it is a part of).

Rules:
1. One thread: a round decides between two awaits, and suspends its decisions while it waits.
2. An error in a round never ends the process: the next round comes.
3. Nobody is evicted and no job is carried out while another descheduler leads.
4. A job that somebody makes by hand is carried out whatever the profiles do; with ``dry_run`` none
   is.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import koordlet
from koordlet import log
from koordlet.kubeapi import informer, kinds, objects
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import dump, explanation, traits
from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
from koordlet.scheduler.descheduling.evictability import Evictability
from koordlet.scheduler.descheduling.evictor_settings import EvictorSettings
from koordlet.scheduler.descheduling.prometheus_source import QueryAnswer
from koordlet.scheduler.descheduling.round import DeschedulingRound, RoundResult
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import PodTraits, Resident
from koordlet.scheduler.disruption.answers import Clock, Mover, unshadowed
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import (
    election,
    migration_controller,
    migration_writer,
    plan_controller,
    round_book,
    round_moves,
)
from koordlet.scheduler.loop.cluster_watch import ClusterWatch
from koordlet.scheduler.loop.metrics import Gauges
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.loop.runner import Clocks
from koordlet.scheduler.migration import summary
from koordlet.scheduler.migration.job import BY_HAND, MigrationJob
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.pods import Pod

#: Between two rounds where the configuration does not say: that of the peers' shipped files.
INTERVAL = 120.0
#: Nobody asks for it: the profile that pods of unknown schedulers are judged by.
_OWN = "koordlet-descheduler"


@dataclass(frozen=True, slots=True)
class _PodRecord:
    """What is kept of a pod beside what the scheduler's part keeps."""

    traits: PodTraits
    #: A pod that has ended, which the scheduler's part has forgotten.
    ended: Pod | None


class Descheduler:
    """One descheduler over one store."""

    def __init__(
        self,
        store: objects.Objects,
        settings: DeschedulerSettings,
        *,
        instance: str,
        dry_run: bool = False,
        clocks: Clocks | None = None,
        profiles: Mapping[str, profile.Profile] | None = None,
        disruption: DisruptionSettings | None = None,
        watched: WatchedCluster | None = None,
        ask: Callable[[Iterable[str]], Awaitable[dict[str, QueryAnswer]]] | None = None,
    ) -> None:
        """``watched``: the cluster as a scheduler watches it that this is a part of.

        ``ask``: a Prometheus, what strategies want to know of it; ``None``: nobody is to be asked.
        ``dry_run``: nothing is sent, so that nobody need be elected.
        """
        self._clocks = Clocks(wall=store.now) if clocks is None else clocks
        steady, wall = self._clocks.steady, self._clocks.wall
        self._settings, self._sends = settings, not dry_run
        self._dry_run = dry_run or settings.dry_run
        self._profiles = dict(profiles or {}) or {_OWN: profile.default(_OWN)}
        self._own: ClusterWatch | None = None
        if watched is None:
            watched = self._own = ClusterWatch(
                store, self._profiles, disruption or DisruptionSettings(), self._clocks,
                instance=instance, leads=lambda: self.leading,
            )  # fmt: skip
        self._watched, self._store = watched, store
        self.core, self.disruptions = watched.core, watched.disruptions
        self._records: informer.Informer[_PodRecord] = informer.Informer(
            store, kinds.PODS, self._record
        )
        self.election = (
            None
            if settings.election is None or dry_run
            else election.Election(store, instance, steady, wall, settings.election)
        )
        migrating = (each.evictor for each in settings.profiles if each.evictor.migrates)
        self._evictor = next(migrating, EvictorSettings())
        self.migrations = migration_controller.MigrationController(
            store,
            watched,
            self._evictor,
            instance=instance,
            grace_seconds=settings.grace_seconds,
            leads=lambda: self.leading,
            in_plan=lambda job: self.plans.has_made(job),  # noqa: PLW0108 -- made below
            protection=self._protection,
        )
        self.plans = plan_controller.PlanController(
            store, watched, self.migrations, self.state, leads=lambda: self.leading
        )
        self._ask = ask
        #: By query, of the last round.
        self._answers: dict[str, QueryAnswer] = {}
        self.ready = False
        self.book = round_book.RoundBook(self.core.measures)
        #: When the last round ended, by the steady clock.
        self.beat: float | None = None

    @property
    def leading(self) -> bool:
        """Whether this descheduler is the leader now."""
        return self.election is None or self.election.leading

    def _now(self) -> Clock:
        return Clock(wall=self._clocks.wall(), steady=self._clocks.steady())

    async def run(self, *, once: bool = False) -> None:
        """Rounds until cancelled, or one; raises the error of the first part that ends."""
        interval = self._settings.interval_seconds
        interval = INTERVAL if interval is None else interval
        parts: list[asyncio.Task[None]] = []
        try:
            async with asyncio.TaskGroup() as group:
                parts.append(group.create_task(self._records.run()))
                if self._own is not None:
                    parts.append(group.create_task(self._own.sources.run()))
                await self._watched.sources.synced()
                await self._records.synced()
                if self.election is not None:
                    await self.election.acquire()
                    parts.append(group.create_task(self.election.hold()))
                if self._sends:
                    parts.append(group.create_task(self.migrations.run()))
                    await self.migrations.synced()
                    parts.append(group.create_task(self.plans.run()))
                self.ready = True
                while True:
                    await self.round()
                    if once or not interval:
                        break
                    await asyncio.sleep(interval)
                await self.migrations.finished()
                for part in parts:
                    part.cancel()
        finally:
            self.ready, self.beat = False, None
            if self.election is not None:
                await self.election.release()

    async def round(self) -> RoundResult:
        """One round over the cluster as it is now."""
        clock = time.perf_counter
        began = clock()
        try:
            if self._own is not None:
                self._own.tidy()
            if self._ask is not None:
                self._answers = await self._ask(self._settings.queries)
            moves = round_moves.RoundMoves(
                self._store, self._watched, self.migrations, self._settings, dry_run=self._dry_run
            )
            played = DeschedulingRound(
                self._settings.profiles, self._settings.limits, self.state(),
                waits=True, asks=moves.refusal, clock=clock,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 -- rule 2: the last round stays what it was
            self._failed(error)
            self.beat = self._now().steady
            return RoundResult()
        proposals = played.proposals()
        try:
            with contextlib.suppress(StopIteration):
                proposal = next(proposals)
                while True:
                    proposal = proposals.send(await moves.perform(proposal))
            await moves.tell_refusals(played.result)
        except Exception as error:  # noqa: BLE001 -- rule 2: it costs this round
            self._failed(error)
        finally:
            proposals.close()
        now, seconds = self._now(), clock() - began
        self.beat = now.steady
        self.book.end(played.result, seconds, now)
        log.get().info(
            "descheduler.round",
            evicted=len(played.result.evicted),
            refused=len(played.result.decisions) - len(played.result.evicted),
            dry_run=self._dry_run,
            seconds=round(seconds, 3),
            notes=[
                "/".join(filter(None, note[:2])) + f": {note[2]}" for note in played.result.notes
            ],
            failures=[
                f"{name}/{strategy}: {why}" for name, strategy, why in played.result.failures
            ],
        )
        return played.result

    @staticmethod
    def _failed(error: Exception) -> None:
        log.get().error("descheduler.round_failed", detail=f"{type(error).__name__}: {error}")

    def state(self) -> ClusterState:
        """The cluster now."""
        core, now = self.core, self._now()
        usual = next(iter(self._profiles.values()))
        records = self._records.snapshot
        known = {record.traits.uid: record.traits for record in records.values()}
        ended: dict[str, list[Pod]] = {}
        for record in records.values():
            if record.ended is not None:
                ended.setdefault(record.ended.node, []).append(record.ended)
        claims = self._watched.sources.informers[kinds.PERSISTENT_VOLUME_CLAIMS].snapshot
        return ClusterState(
            columns=core.pod_cache.columns,
            profile=lambda name: self._profiles.get(name, usual),
            workloads=self.disruptions.limiter.workloads,
            now=now,
            traits=known,
            ended=ended,
            budgets=list(core.budgets.at(now.steady)),
            usages=self._watched.agents.usages,
            answers=self._answers,
            pressures=self._watched.agents.suffering(),
            reports=self._watched.agents.reporting(),
            pressed=self.disruptions.tracker.pressed,
            avoids=self.disruptions.avoidances.of,
            priorities={name: priority.value for name, priority in core.priorities.items()},
            claim_classes=dict(map(dump.claim_class, claims.values())),
            held=self.migrations.held,
            evacuating=self._watched.evictions.evacuating(
                lambda uid: known[uid].evicting if uid in known else None
            ),
            gangs=core.gangs.book,
            aggressiveness=self.disruptions.limiter.settings.aggressiveness,
        )

    def _record(self, body: wire.Body) -> _PodRecord:
        known = traits.decode(body)
        ended = None
        if known.ended and wire.text(wire.mapping(body, "spec"), "nodeName"):
            ended = self.core.decoder.decode(body, 0)
        return _PodRecord(known, ended)

    def _protection(self) -> Callable[[MigrationJob, Resident], str]:
        """What keeps pods of jobs by the rules of the MigrationController, where there is one.

        Strategies have asked them before; drains, plans and gangs have rules of their own. Many
        jobs are asked about at once: the state of the cluster is made for the first that needs it.
        """
        evictability = functools.cache(lambda: Evictability(self._evictor, self.state()))

        def protection(job: MigrationJob, resident: Resident) -> str:
            asked = self._evictor.migrates and job.by == BY_HAND and not (job.plan or job.leader)
            return evictability().protection(resident) if asked else ""

        return protection

    def moves(self, name: str = "") -> list[dict[str, Any]]:
        """The migration jobs, or the one of a name."""
        return [
            summary.document(job, self.migrations.refusal(job))
            for job in self.migrations.jobs()
            if name in {"", job.name}
        ]

    def explain(self, key: str) -> dict[str, Any] | None:
        """Every check of one pod, with its job; ``None`` where there is no such pod."""
        state = self.state()
        pod = explanation.resident(state, key)
        jobs = [move for move in self.moves() if move["pod"] == key]
        if pod is None and not jobs:
            return None
        if pod is None:
            return {"pod": key, "node": None, "jobs": jobs}
        limiter = self.disruptions.limiter
        by = Mover(name=migration_writer.COMPONENT, acts=True)
        answer = limiter.may_evict(pod.pod, migration_writer.CAUSE, by, self._now())
        return {
            **explanation.document(state, self._settings.profiles, pod, unshadowed(answer)),
            "bounds": [": ".join(each) for each in self.migrations.bounds(pod)],
            "jobs": jobs,
        }

    def round_document(self) -> dict[str, Any]:
        """The last round, and what this descheduler is."""
        mode = {"leading": self.leading, "dryRun": self._dry_run}
        return {**mode, **self.book.document(self._now())}

    def gauges(self) -> Gauges:
        """What ``/metrics`` has of rounds and jobs."""
        return {
            **self.migrations.gauges(),
            **self.plans.gauges(),
            **self.book.gauges(self._now()),
            ("descheduler_build_info", (("version", koordlet.__version__),)): 1,
            ("leader_election_master_status", (("name", "koordlet-descheduler"),)): int(
                self.leading
            ),
        }

    def metrics(self) -> str:
        """The text of ``/metrics``."""
        return self.core.measures.text(self.gauges())
