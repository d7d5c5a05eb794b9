"""RemovePodsViolatingTopologySpreadConstraint: domains that have too many of some pods.

Covers: the domains of each distinct constraint, how many pods move between two of them. Does not
cover: where they go (the scheduler spreads them).

Rules:
1. All pods that a constraint means are counted; evictable ones are taken. (The peer counts only
   evictable ones, so that protected pods distort the skew.) Those on nodes that the policies of
   the constraint leave out count where they are; a domain of such nodes is one while it has pods.
2. From the largest domain to the smallest, as many as the least of: what the large one has above
   the average, what the small one lacks to it, half of the skew beyond what is allowed; each up to
   a whole pod.
3. A pod that fits no node of a domain below the average stays, and counts as moved.

In a domain go first, of its pods:
* those that fit a domain below the average;
* evictable ones;
* without node selector and node affinity;
* lower priority.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from koordlet.kubeapi import shapes
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.vectors import Bools
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.plugins import node as node_plugins

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


@dataclass(frozen=True, slots=True)
class _Spread:
    """A constraint, and the class whose node rules it counts by."""

    constraint: terms.SpreadConstraint
    pod_class: PodClass

    @property
    def identity(self) -> Hashable:
        """What tells two apart."""
        constraint, pod_class = self.constraint, self.pod_class
        affinity = (tuple(sorted(pod_class.node_selector.items())), pod_class.required)
        return (
            constraint,
            affinity if constraint.honor_affinity else None,
            pod_class.tolerations if constraint.honor_taints else None,
        )


class RemovePodsViolatingTopologySpreadConstraint:
    """Evens out domains, constraint by constraint."""

    name = "RemovePodsViolatingTopologySpreadConstraint"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.pods(fields)
        actions = fields.read("constraints", shapes.listing(shapes.choice(*_ACTIONS)), ()) or (
            "DoNotSchedule",
        )
        self._hard = {action == "DoNotSchedule" for action in actions}
        self._fits = fields.flag("topologyBalanceNodeFit", default=True)
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """All constraints are looked at before the first pod goes."""
        chosen: dict[str, rounds.Intent] = {}
        for several in self._by_namespace(scene).values():
            for spread in self._spreads(several):
                for intent in _Balance(scene, spread, several, fits=self._fits).intents():
                    chosen.setdefault(intent.resident.pod.uid, intent)
        full: set[int] = set()
        for intent in chosen.values():
            if intent.resident.row not in full and (yield intent) is EvictionAnswer.NODE_LIMIT:
                full.add(intent.resident.row)

    def _by_namespace(self, scene: rounds.Scene) -> dict[str, list[Resident]]:
        """The pods of each namespace in which any has a constraint."""
        spread = {
            pod_class.namespace
            for pod_class, rows in scene.state.columns.classes().items()
            if rows and pod_class.spread and self._pods.admits(pod_class)
        }
        residents: dict[str, list[Resident]] = defaultdict(list)
        for row in scene.rows if spread else ():
            for resident in scene.state.residents(row):
                pod_class = resident.pod.pod_class
                if pod_class.namespace in spread and self._pods.admits(pod_class):
                    residents[pod_class.namespace].append(resident)
        return residents

    def _spreads(self, residents: Sequence[Resident]) -> list[_Spread]:
        classes = dict.fromkeys(resident.pod.pod_class for resident in residents)
        several = (
            _Spread(constraint, pod_class)
            for pod_class in classes
            for constraint in pod_class.spread
            if constraint.hard in self._hard
        )
        distinct: dict[Hashable, _Spread] = {}
        for spread in several:
            distinct.setdefault(spread.identity, spread)
        return list(distinct.values())


class _Balance:
    """One constraint."""

    def __init__(
        self, scene: rounds.Scene, spread: _Spread, several: Sequence[Resident], *, fits: bool
    ) -> None:
        self._scene, self._spread, self._fits = scene, spread, fits
        constraint, index = spread.constraint, scene.state.columns.index
        self._ids = index.label(constraint.key).ids
        self._eligible = self._inclusion()
        domains: dict[int, list[Resident]] = {
            int(self._ids[row]): []
            for row in scene.rows
            if self._ids[row] >= 0 and self._eligible[row]
        }
        means: dict[PodClass, bool] = {}
        for resident in several:
            pod_class, domain = resident.pod.pod_class, int(self._ids[resident.row])
            meant = means.get(pod_class)
            if meant is None:
                meant = means[pod_class] = terms.holds(constraint.selector, pod_class.labels)
            if meant and domain >= 0 and not resident.pod.terminating:
                domains.setdefault(domain, []).append(resident)
        self._domains = domains
        self._known: dict[tuple[PodClass, int], int] = {}

    def _inclusion(self) -> Bools:
        """The nodes that count, by the policies of the constraint."""
        constraint, pod_class = self._spread.constraint, self._spread.pod_class
        columns = self._scene.state.columns
        eligible = np.ones(columns.size, np.bool_)
        if constraint.honor_affinity:
            eligible &= node_plugins.matching(pod_class, columns)
        if constraint.honor_taints:
            eligible &= ~node_plugins.untolerated(pod_class, columns)
        return eligible

    def intents(self) -> Iterator[rounds.Intent]:
        """The pods that move, from the largest domains to the smallest."""
        skew = self._spread.constraint.skew
        sizes = [len(several) for several in self._domains.values()]
        if not sizes or max(sizes) - min(sizes) <= skew:
            return
        ideal = sum(sizes) / len(sizes)
        self._below = [
            row
            for row in self._scene.rows
            if self._eligible[row]
            and self._ids[row] >= 0
            and len(self._domains[int(self._ids[row])]) < ideal
        ]
        ordered = sorted(
            (sorted(several, key=self._rank) for several in self._domains.values()), key=len
        )
        low, high = 0, len(ordered) - 1
        while low < high:
            large, small = ordered[high], ordered[low]
            if len(large) <= ideal:
                high -= 1
                continue
            difference = len(large) - len(small)
            moves = min(
                math.ceil(len(large) - ideal),
                math.ceil(ideal - len(small)),
                math.ceil((difference - skew) / 2),
            )
            if difference <= skew or moves <= 0:
                low += 1
                continue
            if self._fits:
                large.sort(key=lambda resident: self._target(resident) >= 0)
            leaving = large[-moves:]
            del large[-moves:]
            small += leaving
            yield from self._leave(leaving, difference)

    def _leave(self, leaving: Sequence[Resident], difference: int) -> Iterator[rounds.Intent]:
        constraint = self._spread.constraint
        for resident in leaving:
            if self._fits and self._target(resident) < 0:
                continue
            if self._scene.judge.allows(resident):
                reason = (
                    f"its domain of {constraint.key} has {difference} pods more than another,"
                    f" maxSkew is {constraint.skew}"
                )
                yield rounds.Intent(resident, reason)

    def _rank(self, resident: Resident) -> tuple[bool, bool, int]:
        """Who goes last stands first."""
        pod_class = resident.pod.pod_class
        chooses = bool(
            pod_class.node_selector or pod_class.required is not None or pod_class.preferred
        )
        return self._scene.judge.allows(resident), not chooses, -resident.pod.priority

    def _target(self, resident: Resident) -> int:
        """A node of a domain below the average that takes a pod; -1 where none does."""
        key = resident.pod.pod_class, resident.row
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._scene.landing.best(resident, self._below)
        return known
