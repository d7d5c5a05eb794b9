"""ScaleDownBinPack: which replicas should go first, so that scaling in empties nodes.

Covers: the rank of pods by their nodes. Does not cover: writing it (whoever plays the round).

Rules:
1. The score of a node is what other pods request there over what the pods in view request, both
   as weighted shares of the node: a node that little else needs comes first.
2. Then nodes with fewer pods in view, then by name; inside a node larger pods first, then younger
   ones, then by name.
3. ``CalculateOnly`` writes the rank as the pods' deletion cost, by which their controllers choose.
   Pods of the same workloads that may not be evicted get the highest: without a cost they would be
   the first. ``EvictDirectly`` evicts the first ``maxPodsToEvict``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from koordlet.kubeapi import shapes
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.strategies import candidates
from koordlet.scheduler.descheduling.traits import NEVER, Resident
from koordlet.scheduler.objects import requests

CALCULATE_ONLY, EVICT_DIRECTLY = "CalculateOnly", "EvictDirectly"


class ScaleDownBinPack:
    """The strategy."""

    name = "ScaleDownBinPack"

    def __init__(self, fields: Fields) -> None:
        self._settings = candidates.read(fields)
        modes = CALCULATE_ONLY, EVICT_DIRECTLY
        self._evicts = fields.word("strategy", modes, CALCULATE_ONLY) == EVICT_DIRECTLY
        self._most = fields.count("maxPodsToEvict")
        if self._evicts and not self._most:
            fields.fail("maxPodsToEvict", f"must be at least 1 with strategy {EVICT_DIRECTLY}")
        usual = dict.fromkeys((requests.CPU, requests.MEMORY), 1.0)
        above_0 = shapes.number(sys.float_info.min, sys.float_info.max)
        self._weights: dict[str, float] = dict(
            fields.read("resourceWeights", shapes.table(above_0), usual)
        )
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """All pods in view by their rank."""
        if self._settings.paused:
            scene.note("it is paused")
            return
        ranked = self._ranked(scene)
        if not ranked:
            scene.note("no pod is in view")
        evicted, shadow = 0, self._settings.dry_run
        if not self._evicts:
            for resident, cost, reason in self._costs(scene, ranked):
                if resident.traits.deletion_cost != cost:
                    yield rounds.Intent(resident, reason, shadow=shadow, deletion_cost=cost)
            return
        for rank, resident in enumerate(ranked):
            if evicted >= self._most:
                return
            reason = f"rank {rank} of {len(ranked)} of the pods whose nodes are emptied first"
            answer = yield rounds.Intent(resident, reason, shadow=shadow)
            evicted += answer.evicted

    def _costs(
        self, scene: rounds.Scene, ranked: Sequence[Resident]
    ) -> Iterator[tuple[Resident, int, str]]:
        """Pods with their deletion costs, and why."""
        for rank, resident in enumerate(ranked):
            yield resident, rank, f"rank {rank} of {len(ranked)} when its workload is scaled in"
        workload = scene.state.workloads.signature
        scaled = {workload(resident.pod.pod_class) for resident in ranked} - {None}
        for row in self._settings.rows(scene):
            for resident in scene.state.residents(row):
                if workload(resident.pod.pod_class) not in scaled:
                    continue
                refusal = scene.judge.refusal(resident)
                if refusal and self._settings.wants(resident):
                    yield resident, NEVER, f"last when its workload is scaled in: {refusal}"

    def _ranked(self, scene: rounds.Scene) -> list[Resident]:
        groups = []
        for row in self._settings.rows(scene):
            several = scene.evictable(row, self._settings.wants)
            if several:
                own = sum(self._share(scene, row, resident) for resident in several)
                every = self._requested(scene, row)
                others = max(0.0, every - own)
                score = others / own if own else (float("inf") if others else 0.0)
                name = scene.state.node(row).name
                groups.append((score, len(several), name, self._inside(scene, row, several)))
        groups.sort(key=lambda group: group[:3])
        return [resident for *_, several in groups for resident in several]

    def _inside(self, scene: rounds.Scene, row: int, several: Sequence[Resident]) -> list[Resident]:
        return sorted(
            several,
            key=lambda resident: (
                -self._share(scene, row, resident),
                -resident.traits.created,
                resident.pod.key,
            ),
        )

    def _share(self, scene: rounds.Scene, row: int, resident: Resident) -> float:
        asked = resident.pod.pod_class.requests.real
        return self._weighted(scene, row, {name: asked.get(name, 0) for name in self._weights})

    def _requested(self, scene: rounds.Scene, row: int) -> float:
        columns = scene.state.columns
        lines = {name: columns.resource(name) for name in self._weights}
        used = {name: int(columns.requested[line, row]) for name, line in lines.items()}
        return self._weighted(scene, row, used)

    def _weighted(self, scene: rounds.Scene, row: int, amounts: dict[str, int]) -> float:
        columns, summed = scene.state.columns, 0.0
        for name, amount in amounts.items():
            room = int(columns.allocatable[columns.resource(name), row])
            summed += self._weights[name] * amount / room if room else 0.0
        return summed
