"""Simulation: the loop's own core, queue and hints over objects from files, without a store.

Covers: the order of the pods, placing, preemption, reservations, gangs, the result.
Does not cover: reading and printing.

Time stands still. A pod that preempts is tried again at once: its priority makes it the next one
anyway. Victims are gone for good. Pods that failed are tried again, after all others, when
something happened that one of the plugins that refused them listens to: a pod was placed, a victim
left, a reservation found its node or ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from koordlet.kubeapi import objects
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import devices
from koordlet.scheduler.cluster.inventory import Cluster, name_of
from koordlet.scheduler.cluster.vectors import Rows
from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.queue import Backoff, QueuePlace
from koordlet.scheduler.framework.view import Scored, View
from koordlet.scheduler.gangs import summary
from koordlet.scheduler.loop import reservation_events
from koordlet.scheduler.loop.claim_events import ClaimEvents
from koordlet.scheduler.loop.configuration import Configuration
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Outcome, Refusal
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.loop.recent_decisions import Ranking, RecentDecisions
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources
from koordlet.scheduler.plugins.volume_binding import VolumeBinding
from koordlet.scheduler.quotas import summary as quota_summary
from koordlet.scheduler.reservation import parsing
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.spec import Phase
from koordlet.scheduler.sim import capacity, gang_remedy
from koordlet.scheduler.sim.claims import SimulatedClaims

#: After how many tries the progress is reported.
_STEP = 500


@dataclass(slots=True)
class Result:
    """The document of a simulation, in parts."""

    placements: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    pending: list[dict[str, str]] = dataclasses.field(default_factory=list)
    preemptions: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    reservations: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    gangs: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    quotas: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    #: Pods that ClusterColocationProfiles changed first, with the names of those.
    colocated: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    explanation: dict[str, Any] | None = None
    summary: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The JSON document, without ``version``."""
        parts = {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}
        return {name: value for name, value in parts.items() if value is not None}


class _NewestScores(RecentDecisions):
    """The scores that the newest pod was placed by, where somebody wants them; no history."""

    def __init__(self, *, wanted: bool) -> None:
        super().__init__()
        self._wanted = wanted
        self.scored: dict[str, Scored] = {}

    def ranking(self, cycle: Cycle, pod: Pod, now: float) -> None:  # noqa: ARG002 -- time stands
        if self._wanted:
            self.scored[pod.key] = cycle.scored(pod)

    def note(self, outcome: Outcome, ranking: Ranking | None, now: float) -> None:
        """Nobody asks for decisions of the past here."""


class Simulation:
    """One simulation of one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        configuration: Configuration | None = None,
        *,
        scores: bool = False,
        ties: bool = True,
        explain: str = "",
        now: float = 0.0,
    ) -> None:
        self._cluster, self._now = cluster, now
        self._scores, self._explain = scores, explain
        self._newest = _NewestScores(wanted=scores or ties)
        profiles = _default(cluster) if configuration is None else configuration.profiles
        self._core = Core(
            profiles,
            backoff=Backoff(0.0, 0.0),
            decoder=cluster.decoder,
            pod_cache=PodCache(cluster.columns),
            decisions=self._newest,
        )
        for served in {id(served): served for served in profiles.values()}.values():
            cluster.equip(served, now)
        events = ClaimEvents(self._core, cluster.allocations, lambda: now)
        self._claims = SimulatedClaims(cluster.allocations, cluster.claim_templates, events)
        for plugin in profile.plugins(profiles, DynamicResources):
            plugin.attach(cluster.allocations, self._claims)
        promised: dict[str, tuple[str, str]] = {}
        for binding in profile.plugins(profiles, VolumeBinding):
            binding.attach(None, promised)
        for place, budget in enumerate(cluster.budgets):
            self._core.budgets.put(str(place), budget)
        #: Why each pod was refused last.
        self._refused: dict[str, str] = {}
        self.result = Result()

    def run(self, progress: Callable[[int, int], None] = lambda done, total: None) -> Result:
        """Try every pod; ``progress`` hears of it now and then."""
        core, result = self._core, self.result
        for body in self._cluster.reservations:
            self._admit(body)
        self._advance()
        core.gangs.put_network(self._cluster.network)
        for pod_group in self._cluster.pod_groups:
            core.gangs.put_pod_group(pod_group)
        self._bound()
        for pod in (pod for pods in self._cluster.columns.pods for pod in pods.values()):
            core.gangs.put(pod)
        for pod in self._cluster.pending:
            self._check_profile(pod, f"Pod {pod.key}")
            self._claims.make(pod)
            core.pod(None, pod, self._now)
        total, done = core.queue.count(QueuePlace.ACTIVE), 0
        while (outcome := core.gangs.next(self._now) or self._attempt()) is not None:
            self._take(outcome)
            done += 1
            if done % _STEP == 0:
                progress(min(done, total), total)
        waiting = [entry for entry in core.queue if entry.place is not QueuePlace.TAKEN]
        result.pending += [
            {"pod": key, "message": message} for key, message in self._cluster.rejected
        ]
        result.pending += [
            {"pod": entry.pod.key, "message": entry.why or self._refused.get(entry.pod.key, "")}
            for entry in sorted(waiting, key=lambda entry: entry.pod.position)
            if not entry.pod.reserve_pod_of
        ]
        result.reservations = reservation_documents(core.reservations, self._now)
        result.gangs = [
            gang.document() for gang in summary.summaries(core, core.gangs.book, core.gangs.network)
        ]
        result.quotas = quota_summary.documents(core.quotas.book)
        self._cluster.warnings += [
            f"Pod {notice.pod.key}: {notice.message}" for notice in core.gangs.book.take_notices()
        ]
        self._cluster.warnings += [
            f"{notice.kind.name} {notice.namespace}/{notice.name}: {notice.message}"
            for notice in core.quotas.book.take_notices()
        ]
        result.summary = capacity.summary(
            core.pod_cache.columns, self._cluster.pending, result.placements, result.pending
        )
        if self._explain and result.explanation is None:
            result.explanation = self._gang(self._explain)
        return result

    def _gang(self, name: str) -> dict[str, Any] | None:
        """One gang with its members, and what would let it run; ends what the core knows."""
        core = self._core
        gangs = summary.summaries(core, core.gangs.book, core.gangs.network)
        gang = next((gang for gang in gangs if gang.id == name), None)
        entry = None if gang is None else core.gangs.book.get(gang.key)
        if gang is None or entry is None:
            return None
        members = summary.members(core, entry)
        remedy = None
        if gang.message:
            remedy = gang_remedy.remedy(core, self._cluster, entry, self._now, self._attempt)
        return {**gang.document(), "members": members, "remedy": remedy}

    def _bound(self) -> None:
        """Take in quotas, profiles and what Namespaces say of them."""
        quotas, cluster = self._core.quotas, self._cluster
        for namespace, name in cluster.namespace_quotas.items():
            quotas.name_namespace(namespace, name)
        for quota_profile in cluster.quota_profiles:
            quotas.put_profile(quota_profile)
        for quota in cluster.quotas:
            quotas.put_quota(quota)

    def _admit(self, body: Body) -> None:
        """Take in a Reservation that is bound, or enqueue its reserve pod."""
        reservations, warnings = self._core.reservations, self._cluster.warnings
        name = objects.text(body, "name")
        if reservations.named(name) is not None or name in reservations.rejected:
            warnings.append(
                f"{name_of(body)} is ignored: its name occurs twice, and the first object counts"
            )
            return
        reservation_events.changed(self._core, None, body, self._now)
        warnings += [f"{name_of(body)}: {warning}" for warning in parsing.warnings(body)]
        if (rejected := reservations.rejected.get(name)) is not None:
            warnings.append(f"{name_of(body)} is not scheduled: {rejected.error}")
        info = reservations.named(name)
        if info is not None and info.phase is Phase.PENDING and info.reserve_pod is not None:
            self._check_profile(info.reserve_pod, name_of(body))

    def _check_profile(self, pod: Pod, culprit: str) -> None:
        """Warn where no profile serves a pod."""
        if pod.pod_class.scheduler not in self._core.cycles:
            self._cluster.warnings.append(
                f"{culprit} is not scheduled: no profile is named {pod.pod_class.scheduler!r}"
            )

    def _advance(self) -> None:
        """Bring reservations to the phases that are due."""
        for info in reservation_events.due(self._core, self._now):
            reservation_events.step(self._core, info, self._now, self._now)

    def _attempt(self) -> Outcome | None:
        """Try the next pod, which is explained before that where it shall be."""
        core = self._core
        core.quotas.settle(self._now)
        pod = core.queue.pop(self._now)
        if pod is None:
            return None
        if self._explain == pod.key and not core.why_never(pod):
            cycle = core.cycles[pod.pod_class.scheduler]
            self.result.explanation = explanation(cycle, pod)
        return core.attempt(pod, self._now)

    def _take(self, outcome: Outcome) -> None:
        core, pod = self._core, outcome.pod
        if isinstance(outcome, Refusal):
            self._refused[pod.key] = outcome.message
            if pod.reserve_pod_of:
                core.reservations.failed(pod, outcome.message)
            if outcome.leaving:
                self._preempt(outcome)
        elif isinstance(outcome, Bind):
            self._place(outcome)
        elif (info := core.reservations.of(pod)) is not None:
            core.queue.forget(pod)
            reservation_events.woken(core, info, self._now)

    def _place(self, bind: Bind) -> None:
        pod, scored = bind.pod, self._newest.scored.pop(bind.pod.key, None)
        placed: dict[str, Any] = {
            "pod": pod.key,
            "node": bind.node,
            "reservation": pod.drawn_name or None,
            "cpuset": None if pod.cpus is None else str(pod.cpus),
        }
        # The best of many nodes is taken without a look at those whose devices cannot be judged.
        if scored is not None and scored.rows.size:
            nodes = self._cluster.columns.nodes
            names = [getattr(nodes[row], "name", "") for row in scored.rows.tolist()]
            if self._scores:
                placed["scores"] = dict(zip(names, scored.totals.tolist(), strict=True))
            best = np.flatnonzero(scored.totals == scored.totals.max())
            placed["ties"] = [names[place] for place in best.tolist()]
        if pod.devices:
            placed["devices"] = devices.spelled(pod.devices)
        if claimed := self._claims.settle(pod):
            placed["claims"] = claimed
        self.result.placements.append(placed)
        # A reservation that may be used once is over now, and what is left of it is free again.
        drawn = self._core.reservations.by_uid.get(pod.draws_on)
        if drawn is not None:
            reservation_events.step(self._core, drawn, self._now, self._now)

    def _preempt(self, refusal: Refusal) -> None:
        core, pod = self._core, refusal.pod
        document = {
            "pod": pod.key,
            "node": refusal.node,
            "victims": [victim.key for victim in refusal.leaving],
        }
        if (info := core.reservations.of(pod)) is not None:
            document |= {"pod": f"reservation/{info.spec.name}", "reservation": info.spec.name}
        self.result.preemptions.append(document)
        for victim in refusal.leaving:
            core.pod(victim, None, self._now)
        self._claims.ended(refusal.leaving)
        core.queue.add(pod, self._now)
        self._advance()


def _default(cluster: Cluster) -> dict[str, profile.Profile]:
    """Kubernetes' default profile, under every name that pods and reservations ask for."""
    names = {pod.pod_class.scheduler for pod in cluster.pending}
    for body in cluster.reservations:
        with contextlib.suppress(BadObjectError):
            names.add(parsing.read(body).scheduler)
    return dict.fromkeys(sorted(names), profile.default())


def explanation(cycle: Cycle, pod: Pod) -> dict[str, Any]:
    """Each filter's verdict and each score, node by node, before the pod is placed."""
    with cycle.sight(pod) as view:
        if view.refused is None:
            return {"pod": pod.key, "nodes": _explained(cycle, view, pod)}
        plugin, why = view.refused
    return {"pod": pod.key, "refused": {plugin: why.reason}, "nodes": {}}


def _explained(cycle: Cycle, view: View, pod: Pod) -> dict[str, dict[str, Any]]:
    columns = cycle.columns
    rows: Rows = np.flatnonzero(columns.alive)
    explained: dict[str, dict[str, Any]] = {
        node.name: {"filters": {}, "scores": {}, "total": None}
        for node in columns.nodes
        if node is not None
    }
    detailing = {plugin.name: plugin for plugin in cycle.profile.having("details")}
    for name, filtering in view.filters:
        codes = filtering.codes(rows).tolist()
        for row, shown, code in zip(rows.tolist(), explained.values(), codes, strict=True):
            shown["filters"][name] = list(filtering.verdict(code).reasons) if code else []
            if code and name in detailing:
                shown.setdefault("details", []).extend(detailing[name].details(pod, columns, row))
    by_row, scored = dict(zip(rows.tolist(), explained.values(), strict=True)), view.scored()
    several = [by_row[row] for row in scored.rows.tolist()]
    for name, weight, score in view.scores:
        finals = score.final(score.raw(scored.rows), scored.rows)
        for shown, value in zip(several, finals.tolist(), strict=True):
            shown["scores"][name] = {"score": value, "weight": weight}
    for shown, row, total in zip(
        several, scored.rows.tolist(), scored.totals.tolist(), strict=True
    ):
        shown["total"] = total
        outlooks = (
            (plugin.name, plugin.outlook(view.pod_class, columns, row))
            for plugin in cycle.profile.having("outlook")
        )
        if gets := {name: outlook for name, outlook in outlooks if outlook}:
            shown["gets"] = gets
    return explained


def reservation_documents(cache: ReservationCache, now: float) -> list[dict[str, object]]:
    """Every reservation as ``koordlet sim`` shows it, in the order of the input."""
    ordered = sorted(cache.by_uid.values(), key=lambda info: info.position)
    statuses = [(info.spec.name, cache.status(info, now)) for info in ordered]
    statuses += [(rejected.name, rejected.status(now)) for rejected in cache.rejected.values()]
    return [
        {
            "name": name,
            "phase": status.phase.value,
            "node": status.node or None,
            "allocatable": dict(status.allocatable),
            "allocated": dict(status.allocated),
            "currentOwners": [dict(owner) for owner in status.owners],
            "conditions": [condition.body() for condition in status.conditions],
            **({"devices": devices.spelled(chosen.devices)} if chosen and chosen.devices else {}),
        }
        for name, status in statuses
        for info in (cache.named(name),)
        for chosen in (info.reserve_pod if info is not None and info.row >= 0 else None,)
    ]
