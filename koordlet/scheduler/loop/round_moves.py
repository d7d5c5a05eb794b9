"""Answers the proposals of one round: what bounds evictions over time, then what moves the pod.

Covers: the limiter and the bounds of jobs, an eviction, a migration job, a deletion cost, a cordon,
telling what was refused. Does not cover: what is proposed (``descheduling.round``), evicting
(``evictions``), making and carrying out jobs (``migration_controller``).

Rules:
1. A mover that only shows is told what it would be told otherwise, and nothing is sent.
2. One arbiter lives as long as the round: it counts the jobs that were under way when the round
   began, and those that the round makes.
"""

from __future__ import annotations

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.descheduling import traits
from koordlet.scheduler.descheduling.configuration import DeschedulerSettings
from koordlet.scheduler.descheduling.evictor_settings import RESERVATION_FIRST, EvictorSettings
from koordlet.scheduler.descheduling.round import EvictionProposal, RoundResult
from koordlet.scheduler.disruption import answers
from koordlet.scheduler.disruption.answers import Deny, Mover, Refusal
from koordlet.scheduler.loop import evictions, migration_writer
from koordlet.scheduler.loop.event_messages import EventMessage
from koordlet.scheduler.loop.migration_controller import MigrationController
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.migration.arbitration import Candidate
from koordlet.scheduler.migration.job import MigrationJob, PodRef

CAUSE, COMPONENT = migration_writer.CAUSE, migration_writer.COMPONENT


class RoundMoves:
    """The moves of one round."""

    def __init__(
        self,
        store: objects.Objects,
        watched: WatchedCluster,
        migrations: MigrationController,
        settings: DeschedulerSettings,
        *,
        dry_run: bool,
    ) -> None:
        """``dry_run``: nothing is sent, whatever profiles say."""
        self._store, self._watched, self._migrations = store, watched, migrations
        self._settings, self._dry_run = settings, dry_run
        self._arbiter = migrations.arbiter()

    def refusal(self, proposal: EvictionProposal) -> Refusal | None:
        """What keeps a pod, before a landing is searched for it."""
        mover = self._mover(proposal)
        if _needs_jobs(proposal.evictor):
            verdict = self._arbiter.judge(self._candidate(proposal, mover))
            return None if verdict.passes else Deny(verdict.reason, verdict.message)
        disruptions = self._watched.disruptions
        answer = disruptions.limiter.may_evict(
            proposal.resident.pod, CAUSE, mover, disruptions.now()
        )
        return answers.unshadowed(answer)

    async def perform(self, proposal: EvictionProposal) -> Refusal | None:
        """Let a pod go, or rank it; what keeps it where it stays."""
        mover = self._mover(proposal)
        if proposal.stays:
            return await self._keep(proposal, mover) if mover.acts else None
        if not mover.acts:
            disruptions = self._watched.disruptions
            disruptions.limiter.begin(proposal.resident.pod, CAUSE, mover, disruptions.now())
            if self._dry_run:  # else it would take the place of what acts
                self._arbiter.begin(self._candidate(proposal, mover))
            return None
        if proposal.cordon and (refusal := await self._cordon(proposal, on=True)) is not None:
            return refusal
        if _needs_jobs(proposal.evictor):
            result = await self._migrations.move(proposal)
            if result.evicted:
                self._arbiter.begin(self._candidate(proposal, mover))
        else:
            result = await self._watched.evictions.evict(self._request(proposal, mover))
            if result.evicted:
                await self._tell_eviction(proposal)
        if result.evicted:
            return None
        if proposal.cordon:
            await self._cordon(proposal, on=False)
        return Deny(result.reason, result.message)

    async def tell_refusals(self, result: RoundResult) -> None:
        """Tell what was refused before it was proposed."""
        for decision in result.unproposed:
            mover = self._mover(decision.proposal)
            if mover.acts and decision.refusal is not None:
                request = self._request(decision.proposal, mover)
                await self._watched.evictions.refuse(request, decision.refusal)

    def _mover(self, proposal: EvictionProposal) -> Mover:
        acts = not (self._dry_run or proposal.shadow)
        name = f"{COMPONENT}/{proposal.strategy}"
        return migration_writer.mover(name, proposal.evictor, acts=acts)

    def _candidate(self, proposal: EvictionProposal, mover: Mover) -> Candidate:
        """The job that a proposal would be."""
        pod = proposal.resident.pod
        return Candidate(
            job=MigrationJob(
                name="",
                uid="",
                pod=PodRef.of(pod),
                mode=proposal.evictor.migration.mode,
                by=mover.name,
            ),
            resident=proposal.resident,
            signature=self._watched.disruptions.limiter.workloads.signature(pod.pod_class),
            acts=mover.acts,
        )

    def _request(self, proposal: EvictionProposal, mover: Mover) -> evictions.EvictionRequest:
        evictor, resident = proposal.evictor, proposal.resident
        return evictions.EvictionRequest(
            pod=resident.pod,
            mover=mover,
            cause=CAUSE,
            reason=proposal.reason,
            avoid_seconds=proposal.avoid_seconds,
            policy=resident.traits.policy or evictor.policy,
            grace_seconds=evictor.grace(self._settings.grace_seconds),
            evict_only=resident.traits.evict_only and not resident.traits.ended,
            attempts=1,
        )

    async def _tell_eviction(self, proposal: EvictionProposal) -> None:
        """The peers' event on the pod; one on its controller comes with each eviction."""
        text = f"pod evicted by {proposal.reason}"
        note = EventMessage(proposal.resident.pod, CAUSE, "Evicting", text)
        evicting = self._watched.evictions
        await evicting.tell(evicting.events.event(note))

    async def _keep(self, proposal: EvictionProposal, mover: Mover) -> Refusal | None:
        """Rank a pod, or let its workload avoid its node and remove whoever has ended there."""
        if proposal.deletion_cost is not None:
            return await self._rank(proposal, proposal.deletion_cost)
        evicting = self._watched.evictions
        await evicting.keep_away(self._request(proposal, mover))
        for each in proposal.removes or ():
            await evicting.remove(each.pod)
        return None

    async def _rank(self, proposal: EvictionProposal, cost: int) -> Refusal | None:
        """Write a pod's deletion cost, by which its controller scales in."""
        pod = proposal.resident.pod
        notes = {traits.DELETION_COST: str(cost)}
        body = {"metadata": {"uid": pod.uid, "annotations": notes}}
        return await self._patch(objects.Ref(kinds.PODS, pod.name, pod.namespace), body)

    async def _cordon(self, proposal: EvictionProposal, *, on: bool) -> Refusal | None:
        """Keep new pods off a node before its own leave, or let them come again."""
        ref = objects.Ref(kinds.NODES, proposal.node)
        return await self._patch(ref, {"spec": {"unschedulable": on or None}})

    async def _patch(self, ref: objects.Ref, body: objects.Object) -> Refusal | None:
        try:
            await self._store.patch(ref, objects.Merge(body))
        except refusals.ObjectsError as error:
            self._watched.core.measures.asked("descheduler", error.code)
            return Deny("Error", str(error))
        return None


def _needs_jobs(evictor: EvictorSettings) -> bool:
    """Whether pods go by migration jobs, and not by evictions."""
    return evictor.migrates and evictor.migration.mode == RESERVATION_FIRST
