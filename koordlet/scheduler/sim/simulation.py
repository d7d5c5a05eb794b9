"""A simulation of the scheduler: every pending pod is tried, nothing is written.

Covers: rounds, preemption, the documents of ``koordlet sim``. Does not cover: reading and printing.

A pod that preempts is tried again at once: its priority makes it the next one anyway. Victims are
gone for good. Pods that failed are tried again in a next round, after all others, if somebody
preempted or a reservation found its node or ended meanwhile: nothing else in a simulation helps.

Reservations are placed by their reserve pods, which wait in the same queue. Time stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from koordlet.kubeapi import objects
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import devices
from koordlet.scheduler.cluster.inventory import Cluster, name_of
from koordlet.scheduler.cluster.vectors import Rows
from koordlet.scheduler.framework import RefusedError, dryrun, messages, preemption, profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.queue import Queue
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.loop.configuration import Configuration
from koordlet.scheduler.objects import disruption
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import Body
from koordlet.scheduler.plugins import conversion
from koordlet.scheduler.plugins.reservation import reservation_of
from koordlet.scheduler.reservation import lifecycle
from koordlet.scheduler.reservation import parsing as reservation_parsing
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.info import ReservationInfo

#: After how many tries somebody is told how far it is.
_STEP = 500


@dataclass(slots=True)
class Result:
    """The document of a simulation, in parts."""

    placements: list[dict[str, Any]] = field(default_factory=list)
    pending: list[dict[str, str]] = field(default_factory=list)
    preemptions: list[dict[str, Any]] = field(default_factory=list)
    reservations: list[dict[str, Any]] = field(default_factory=list)
    explained: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The JSON document, without ``version``."""
        found: dict[str, Any] = {
            "placements": self.placements,
            "pending": self.pending,
            "preemptions": self.preemptions,
            "reservations": self.reservations,
        }
        if self.explained is not None:
            found["explanation"] = self.explained
        return found


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
        self._cluster = cluster
        self._now = now
        self._columns = cluster.columns
        self._scores, self._ties, self._explain = scores, ties, explain
        self._any = None if configuration is not None else profile.default()
        profiles = configuration.profiles if configuration is not None else {}
        made = [*profiles.values(), *([self._any] if self._any is not None else [])]
        self._reservations = ReservationCache(
            self._columns,
            cluster.decoder,
            conversion.Chooser({profile.name: profile for profile in made}).ready,
        )
        for one in made:
            cluster.equip(one, self._reservations, now)
        self._cycles: Mapping[str, Cycle] = {one.name: Cycle(self._columns, one) for one in made}
        self._gates = {one.name: one.gates() for one in made}
        sorter = next((one.sorter for one in made if one.sorter is not None), None)
        self._queue = Queue() if sorter is None else Queue(sorter.queue_key)
        self._freed = False
        #: Those that nothing in a simulation helps.
        self._held: set[str] = set()
        self._failed: dict[str, tuple[Pod, str]] = {}
        self.result = Result()

    def run(self, progress: Callable[[int, int], None] = lambda done, total: None) -> Result:
        """Try every pod; ``progress`` hears of it now and then."""
        self.result.pending += [
            {"pod": key, "message": message} for key, message in self._cluster.rejected
        ]
        for body in self._cluster.reservations:
            self._admit(body)
        self._reservations.advance(self._now)
        for each in self._cluster.pending:
            self._enqueue(each)
        total, done = len(self._queue), 0
        while (pod := self._next()) is not None:
            self._try(pod)
            done += 1
            if done % _STEP == 0:
                progress(min(done, total), total)
        waiting = sorted(self._failed.values(), key=lambda one: one[0].position)
        self.result.pending += [
            {"pod": pod.key, "message": why} for pod, why in waiting if not pod.reserve_pod_of
        ]
        self.result.reservations = reservation_documents(self._reservations, self._now)
        return self.result

    def _admit(self, body: Body) -> None:
        """Take in a Reservation that is bound, or enqueue its reserve pod."""
        name = objects.text(body, "name")
        if self._reservations.named(name) is not None or name in self._reservations.rejected:
            self._cluster.warnings.append(
                f"{name_of(body)} is ignored: its name occurs twice, and the first object counts"
            )
            return
        reserve_pod = self._reservations.put(body)
        self._cluster.warnings += [
            f"{name_of(body)}: {warning}" for warning in reservation_parsing.warnings(body)
        ]
        rejected = self._reservations.rejected.get(name)
        if rejected is not None:
            self._cluster.warnings.append(f"{name_of(body)} is not scheduled: {rejected.error}")
        if reserve_pod is None:
            return
        info = self._reservations.of(reserve_pod)
        if info is None or lifecycle.expired(info.spec, info.phase, self._now):
            return
        cycle = self._cycle(reserve_pod)
        if cycle is not None:
            plugin = reservation_of(cycle.profile.plugins)
            reserve_pod.preempts = plugin is not None and plugin.arguments.preempts
        self._enqueue(reserve_pod)

    def _next(self) -> Pod | None:
        """The next pod; when the queue is empty, pods that failed before room was freed."""
        if not len(self._queue) and self._freed:
            self._freed = False
            for waiting, _ in list(self._failed.values()):
                if waiting.key not in self._held:
                    del self._failed[waiting.key]
                    self._queue.add(waiting)
        return self._queue.pop()

    def _cycle(self, pod: Pod) -> Cycle | None:
        if self._any is not None:
            return self._cycles[self._any.name]
        return self._cycles.get(pod.pod_class.scheduler)

    def _enqueue(self, pod: Pod) -> None:
        cycle = self._cycle(pod)
        if cycle is None:
            self._cluster.warnings.append(
                f"Pod {pod.key} is not scheduled: no profile is named {pod.pod_class.scheduler!r}"
            )
            return
        why = next(
            (
                reason
                for plugin in self._gates[cycle.profile.name]
                if (reason := plugin.pre_enqueue(pod))
            ),
            self._cluster.decoder.judge.why(pod),
        )
        if pod.terminating:
            why = f"skip schedule deleting pod: {pod.key}"
        if why:
            self._held.add(pod.key)
            self._fail(pod, why)
        else:
            self._queue.add(pod)

    def _try(self, pod: Pod) -> None:
        cycle = self._cycle(pod)
        if cycle is None:
            return
        if self._explain == pod.key:
            self.result.explained = explanation(cycle, pod)
        row = cycle.choose(pod)
        if row >= 0 and pod.reserve_pod_of:
            self._bind(cycle, pod, row)
            return
        if row >= 0:
            self._place(cycle, pod, row)
            return
        failure = cycle.failure(pod)
        rescue = cycle.profile.rescue(pod, failure, self._columns)
        message = messages.joined(failure.message, rescue.message)
        preempts = cycle.profile.preempts and (pod.preempts or not pod.reserve_pod_of)
        if preempts and self._columns.rows:
            attempt = preemption.attempt(cycle, pod, failure, self._cluster.budgets)
            if isinstance(attempt, dryrun.Candidate):
                self._preempt(pod, attempt)
                return
            message = messages.joined(failure.message, rescue.message, attempt)
        self._fail(pod, message)

    def _fail(self, pod: Pod, message: str) -> None:
        self._failed[pod.key] = pod, message
        if pod.reserve_pod_of:
            self._reservations.failed(pod, message)

    def _place(self, cycle: Cycle, pod: Pod, row: int) -> None:
        names = self._columns.nodes
        node = names[row]
        assert node is not None  # noqa: S101 -- a chosen row has a node
        placed: dict[str, Any] = {
            "pod": pod.key,
            "node": node.name,
            "reservation": None,
            "cpuset": None,
        }
        if self._scores or self._ties:
            found = cycle.scored(pod)
            named = [getattr(names[each], "name", "") for each in found.rows.tolist()]
            if self._scores:
                placed["scores"] = dict(zip(named, found.totals.tolist(), strict=True))
            best = np.flatnonzero(found.totals == found.totals.max())
            placed["ties"] = [named[place] for place in best.tolist()]
        if not self._prepared(cycle, pod, node.name):
            return
        placed["reservation"] = pod.drawn_name or None
        placed["cpuset"] = None if pod.cpus is None else str(pod.cpus)
        if pod.devices:
            placed["devices"] = devices.spelled(pod.devices)
        self._columns.place(pod, row)
        self.result.placements.append(placed)
        # One that may be used once is over now, and what is left of it is free again.
        drawn = self._reservations.by_uid.get(pod.draws_on)
        self._freed |= drawn is not None and self._reservations.step(drawn, self._now)

    def _bind(self, cycle: Cycle, reserve_pod: Pod, row: int) -> None:
        """Bind a reservation; pods that may draw on it may find room now."""
        plugin, info = reservation_of(cycle.profile.plugins), self._reservations.of(reserve_pod)
        node = self._columns.nodes[row]
        if not self._prepared(cycle, reserve_pod, getattr(node, "name", "")):
            return
        adopted = plugin.adopts(info.spec, row) if plugin is not None and info is not None else ()
        self._reservations.placed(reserve_pod, row, adopted)
        self._freed = True

    def _prepared(self, cycle: Cycle, pod: Pod, node: str) -> bool:
        """Whether every plugin could prepare the pod; a refusal keeps it pending."""
        try:
            for plugin in cycle.profile.plugins:
                plugin.prepare(pod, node)
        except RefusedError as refusal:
            for plugin in reversed(cycle.profile.plugins):
                plugin.unreserve(pod, node)
            self._fail(pod, refusal.reason)
            return False
        return True

    def _preempt(self, pod: Pod, candidate: dryrun.Candidate) -> None:
        node = self._columns.nodes[candidate.row]
        disruption.take(self._cluster.budgets, candidate.victims)
        for victim in candidate.victims:
            self._columns.remove(victim)
        pod.nominated = getattr(node, "name", "")
        victims = [victim.key for victim in candidate.victims]
        document = {"pod": pod.key, "node": pod.nominated, "victims": victims}
        info = self._reservations.of(pod)
        if info is not None:
            document |= {"pod": f"reservation/{info.spec.name}", "reservation": info.spec.name}
        self.result.preemptions.append(document)
        self._queue.add(pod)
        self._freed = True


def explanation(cycle: Cycle, pod: Pod) -> dict[str, Any]:
    """Each filter's verdict and each score, node by node, before the pod is placed."""
    with cycle.sight(pod) as view:
        if view.refused is None:
            return {"pod": pod.key, "nodes": _explained(cycle, view)}
        plugin, why = view.refused
    return {"pod": pod.key, "refused": {plugin: why.reason}, "nodes": {}}


def _explained(cycle: Cycle, view: View) -> dict[str, dict[str, Any]]:
    columns = cycle.columns
    rows: Rows = np.flatnonzero(columns.alive)
    found: dict[str, dict[str, Any]] = {
        node.name: {"filters": {}, "scores": {}, "total": None}
        for node in columns.nodes
        if node is not None
    }
    names = list(found)
    for name, filtering in view.filters:
        for place, code in enumerate(filtering.codes(rows).tolist()):
            reason = list(filtering.verdict(code).reasons) if code else []
            found[names[place]]["filters"][name] = reason
    _explain_scores(view, dict(zip(rows.tolist(), names, strict=True)), found)
    return found


def _explain_scores(
    view: View, names: Mapping[int, str], found: Mapping[str, dict[str, Any]]
) -> None:
    scored = view.scored()
    for name, weight, score in view.scores:
        finals = score.final(score.raw(scored.rows), scored.rows)
        for row, value in zip(scored.rows.tolist(), finals.tolist(), strict=True):
            found[names[row]]["scores"][name] = {"score": value, "weight": weight}
    for row, total in zip(scored.rows.tolist(), scored.totals.tolist(), strict=True):
        found[names[row]]["total"] = total


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
            **_chosen_devices(cache.named(name)),
        }
        for name, status in statuses
    ]


def _chosen_devices(info: ReservationInfo | None) -> dict[str, object]:
    chosen = info.reserve_pod if info is not None and info.row >= 0 else None
    return (
        {"devices": devices.spelled(chosen.devices)}
        if chosen is not None and chosen.devices
        else {}
    )
