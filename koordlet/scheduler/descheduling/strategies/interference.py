"""Interference: parts latency-sensitive pods from the neighbour that slows them.

Covers: who of them moves. Does not cover: who is slowed and by whom, which agents tell
(``policy.best_effort.interference``), nodes that suffer whoever does it (``low_node_load``).

Rules:
1. Local measures come first: best-effort work yields, and its cache and bandwidth are limited where
   the agent is configured so. A pod that is still suspected after ``LASTS`` seconds, in each round
   meanwhile, is due.
2. A best-effort suspect moves. Where none is one, the cheapest moves of those who are due and those
   who are slowed; to move one with CPUs of its own costs ``_OWN_CPUS`` more.
3. One pod of a node at a time: while one of them is leaving, also by a migration job, nobody else
   goes. Its workload avoids the node for an hour; where the one that is slowed moves, the suspect's
   workload does as well: they are not to meet there again.
4. It only shows what it would do unless ``dryRun: false``.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import classes
from koordlet.model import qos
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.strategies import candidates
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.move_costs import MoveCosts
from koordlet.scheduler.objects.pods import PodClass

LASTS = 300.0
_AVOIDS = 3600.0
_OWN_CPUS = 10.0
#: Conditions of an agent's report, about pods.
SLOWED, SUSPECTED = "LatencySensitiveSlowed", "DisturbsNeighbours"


class Interference:
    """The strategy."""

    name = "Interference"

    def __init__(self, fields: Fields) -> None:
        self._settings = candidates.read(fields, dry_run=True)
        fields.done()
        #: Since when pods have been suspected in each round, monotonic, by UID.
        self._since: Mapping[str, float] = {}

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Node by node."""
        if self._settings.paused:
            scene.note("it is paused")
            return
        now = scene.state.now.steady
        by_row = {row: self._about(scene, row, SUSPECTED) for row in self._settings.rows(scene)}
        self._since = {
            each.pod.uid: self._since.get(each.pod.uid, now)
            for suspects in by_row.values()
            for each in suspects
        }
        early = 0
        for row, suspects in by_row.items():
            due = [each for each in suspects if now - self._since[each.pod.uid] >= LASTS]
            early += len(suspects) - len(due)
            if due:
                yield from self._of(scene, row, due)
        if early:
            scene.note(f"{early} pods are suspected, for less than {LASTS / 60:.0f} minutes")

    def _about(self, scene: rounds.Scene, row: int, condition: str) -> list[Resident]:
        """The pods of a node of which its agent says so now."""
        report = scene.state.reports.get(scene.state.node(row).name)
        named = frozenset[str]() if report is None else report.about_pods(condition)
        if not named:
            return []  # of nearly all nodes: their pods are not looked at
        return [each for each in scene.state.residents(row) if each.pod.key in named]

    def _of(self, scene: rounds.Scene, row: int, due: list[Resident]) -> rounds.Intents:
        """Move one of a node."""
        slowed, shadow = self._about(scene, row, SLOWED), self._settings.dry_run
        if any(each.pod.terminating or scene.state.under_way(each) for each in (*due, *slowed)):
            return
        yielding = [each for each in due if _is_best_effort(each.pod.pod_class)]
        costs = MoveCosts(scene.state.columns, scene.state.workloads)

        def cost(resident: Resident) -> tuple[float, str]:
            own = classes.raw_qos(resident.pod.pod_class.labels, [])
            more = _OWN_CPUS if own is not None and own.exclusive else 0.0
            return costs.of(resident.pod, row) + more, resident.pod.key

        chosen = {each.pod.uid for each in yielding or (*due, *slowed)}
        several = scene.evictable(row, lambda each: each.pod.uid in chosen)
        names = ", ".join(sorted(each.pod.key for each in slowed)) or "neighbours"
        for resident in sorted(filter(self._settings.wants, several), key=cost):
            is_suspect = resident in due
            reason = f"it may have slowed {names} for {LASTS / 60:.0f} minutes"
            if not is_suspect:
                reason = f"{', '.join(sorted(each.pod.key for each in due))} may slow it"
            answer = yield rounds.Intent(resident, reason, shadow=shadow, avoid_seconds=_AVOIDS)
            if not answer.evicted:
                continue
            for each in () if is_suspect else due:
                yield rounds.Intent(
                    each,
                    f"it may have slowed {resident.pod.key}, which left",
                    shadow=shadow,
                    avoid_seconds=_AVOIDS,
                    removes=(),
                )
            return


def _is_best_effort(pod_class: PodClass) -> bool:
    own = classes.raw_qos(pod_class.labels, [])
    return own is qos.Qos.BE or pod_class.requests.kube_qos is qos.KubeQos.BEST_EFFORT
