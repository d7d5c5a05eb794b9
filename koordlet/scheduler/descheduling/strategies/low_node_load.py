"""LowNodeLoad: from nodes that use too much to nodes that use little, by Koordinator's rules.

Covers: two rounds (all pods, then production pods), the pods of a source in their order, what the
targets have left. Does not cover: arguments (``load_settings``), what nodes use and their classes
(``node_load``), how often a node must be too full (``anomaly``).

Rules:
1. A node belongs to the first pool that means it, and to one class (``node_load``).
2. Pods leave ``high`` nodes that were so several times in a row for ``low`` and ``bothLow`` ones,
   as long as those together have room below their high thresholds; then production pods leave
   ``prodHigh`` nodes for ``prodLow`` and ``bothLow`` ones.
3. From a node that suffers (``pressures``) and is not too full, one pod goes in a round: whether
   that helped, the next report says.
4. With ``nodeFit`` a pod goes only where one target takes it and stays below its threshold, with
   all that was sent there in this round.

Of the pods of a source go first:
* Koordinator's order (``order.rank``);
* the smallest pod that alone brings the node below its threshold, then the largest of the others;
* younger ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from koordlet.scheduler.cluster.vectors import Rows
from koordlet.scheduler.descheduling import order, selection
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.strategies import load_settings, node_load
from koordlet.scheduler.descheduling.strategies.anomaly import AnomalyDetectors
from koordlet.scheduler.descheduling.strategies.node_load import LoadClass, NodeLoad
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import requests, terms


class LowNodeLoad:
    """The strategy; it remembers which nodes were too full in the rounds before."""

    name = "LowNodeLoad"

    def __init__(self, fields: Fields) -> None:
        self.settings = load_settings.read(fields)
        self._detectors = {
            (pool.name, prod): AnomalyDetectors(pool.anomaly, self.settings.memory_seconds)
            for pool in self.settings.pools
            for prod in (False, True)
        }

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Pool by pool."""
        if self.settings.paused:
            scene.note("it is paused")
            return
        seen: set[int] = set()
        for pool in self.settings.pools:
            rows = [
                row
                for row in scene.rows
                if row not in seen
                and selection.matches(pool.selector, scene.state.node(row).labels)
            ]
            seen.update(rows)
            kept: dict[str, Counter[str]] = {}
            yield from self._pool(scene, pool, rows, kept)
            if kept:
                scene.note(f"pool {pool.name}: no pod leaves {_kept(kept)}")

    def _reported(
        self, scene: rounds.Scene, pool: load_settings.NodePool, rows: Sequence[int]
    ) -> list[NodeLoad]:
        """What the nodes use of which that is known; a note has those that are left out."""
        loads, unknown = [], []
        for row in rows:
            load = node_load.read(scene.state, pool, row, self.settings.expiration_seconds)
            if load is None:
                unknown.append(scene.state.node(row).name)
            else:
                loads.append(load)
        if not loads:
            scene.note(f"pool {pool.name}: no node has a report that is new enough")
        elif unknown:
            why = "left alone without a report that is new enough"
            scene.note(f"pool {pool.name}: node {_first(unknown)}: {why}")
        return loads

    def _pool(
        self,
        scene: rounds.Scene,
        pool: load_settings.NodePool,
        rows: Sequence[int],
        kept: dict[str, Counter[str]],
    ) -> rounds.Intents:
        loads = self._reported(scene, pool, rows)
        if not loads:
            return
        node_load.bound(pool, loads)
        classes: dict[LoadClass, list[NodeLoad]] = {each: [] for each in LoadClass}
        for load in loads:
            classes[load.load_class()].append(load)
        sources = {
            prod: self._abnormal(pool, classes[kind], scene, prod=prod)
            for prod, kind in ((False, LoadClass.HIGH), (True, LoadClass.PROD_HIGH))
        }
        low, both, prod_low = _targets(classes)
        scene.relieve(sum(map(len, sources.values())))
        if any(sources.values()):
            self._reset(pool, (*low, *both), prod=False)
            self._reset(pool, prod_low, prod=True)
        why = self._idle(classes, sources, len(low) + len(both) + len(prod_low), len(rows))
        if why:
            scene.note(f"pool {pool.name}: {why}")
            return
        yield from self._rounds(scene, pool, classes, sources, kept)

    def _rounds(
        self,
        scene: rounds.Scene,
        pool: load_settings.NodePool,
        classes: Mapping[LoadClass, list[NodeLoad]],
        sources: Mapping[bool, list[NodeLoad]],
        kept: dict[str, Counter[str]],
    ) -> rounds.Intents:
        """All pods of sources first, then production pods (rule 2)."""
        low, both, prod_low = _targets(classes)
        left = node_load.room((*low, *both), prod=False)
        shared = node_load.room(both, prod=False)
        try:
            yield from self._balance(
                scene, pool, sources[False], (*low, *both), left, kept=kept, prod=False
            )
            for name, amount in node_load.room(both, prod=True).items():
                # What the first round has left of the nodes that both rounds may use.
                shared[name] = min(amount, shared[name], left[name])
            prod_room = node_load.room(prod_low, prod=True)
            left = {name: prod_room.get(name, 0.0) + shared.get(name, 0.0) for name in pool.names}
            yield from self._balance(
                scene, pool, sources[True], (*prod_low, *both), left, kept=kept, prod=True
            )
        finally:  # a limit may end it at any pod
            for prod, abnormal in sources.items():
                for load in abnormal:
                    if load.over(prod=prod):
                        self._detectors[pool.name, prod].normal(load.name, scene.state.now.steady)

    def _reset(
        self, pool: load_settings.NodePool, loads: Sequence[NodeLoad], *, prod: bool
    ) -> None:
        """Nodes that are not full at all begin anew."""
        for load in loads:
            self._detectors[pool.name, prod].reset(load.name)

    def _abnormal(
        self,
        pool: load_settings.NodePool,
        loads: Sequence[NodeLoad],
        scene: rounds.Scene,
        *,
        prod: bool,
    ) -> list[NodeLoad]:
        """The nodes that are too full for good, the fullest first."""
        detectors, now = self._detectors[pool.name, prod], scene.state.now.steady
        abnormal = [load for load in loads if detectors.abnormal(load.name, now)]

        def mean(load: NodeLoad) -> float:
            used = load.side(prod=prod)[0]
            weights = {name: pool.weights.get(name, 0) for name in pool.names}
            summed = sum(weight * load.percent(used, name) for name, weight in weights.items())
            return summed / max(1, sum(weights.values()))

        return sorted(abnormal, key=mean, reverse=True)

    def _idle(
        self,
        classes: dict[LoadClass, list[NodeLoad]],
        sources: dict[bool, list[NodeLoad]],
        low: int,
        every: int,
    ) -> str:
        """Why nothing is to be done."""
        if not classes[LoadClass.HIGH] and not classes[LoadClass.PROD_HIGH]:
            return "all nodes are under target utilization"
        if not any(sources.values()):
            return "no node was overutilized often enough in a row"
        if not low:
            return "no node is underutilized"
        if low <= self.settings.least_nodes:
            return f"{low} nodes are underutilized, no more than numberOfNodes"
        return "all nodes are underutilized" if low == every else ""

    def _balance(
        self,
        scene: rounds.Scene,
        pool: load_settings.NodePool,
        sources: Sequence[NodeLoad],
        targets: Sequence[NodeLoad],
        left: node_load.Amounts,
        *,
        kept: dict[str, Counter[str]],
        prod: bool,
    ) -> rounds.Intents:
        """Move pods from the sources while they are too full and the targets have room."""
        if not targets:
            return
        room = _TargetRoom(targets, pool.names, prod=prod)
        for source in sources:
            for resident, target in self._leaving(scene, pool, source, room, kept, prod=prod):
                if any(amount <= 0 for amount in left.values()):
                    return
                reason = _reason(source, prod=prod)
                intent = rounds.Intent(resident, reason, target, shadow=self.settings.dry_run)
                answer = yield intent
                if answer is EvictionAnswer.NODE_LIMIT:
                    break
                if answer.evicted:
                    taken = source.leave(resident.pod.key, prod=prod)
                    room.take(target, taken)
                    for name in left if taken else ():
                        left[name] -= taken[name]
            if not source.over(prod=prod) and not source.suffers:
                self._detectors[pool.name, prod].reset(source.name)

    def _leaving(
        self,
        scene: rounds.Scene,
        pool: load_settings.NodePool,
        source: NodeLoad,
        room: _TargetRoom,
        kept: dict[str, Counter[str]],
        *,
        prod: bool,
    ) -> Iterator[tuple[Resident, int]]:
        """The pods that may leave a node while it is too full, and where they would go.

        Where none may, ``kept`` has the node, and its pods by what keeps them.
        """
        stays: Counter[str] = Counter()
        chosen = False
        several = scene.evictable(source.row, self._wanted(prod=prod))
        several.sort(key=_order(source, pool, prod=prod))
        for resident in several:
            if not source.over(prod=prod) and not source.suffers:
                return
            target = -1
            if self.settings.node_fit:
                taken = source.pods.get(resident.pod.key)
                target = -1 if taken is None else room.find(scene, resident, taken)
                if target < 0:
                    stays["not measured" if taken is None else "without room elsewhere"] += 1
                    continue
            chosen = True
            yield resident, target
        if not chosen:
            kept[source.name] = stays

    def _wanted(self, *, prod: bool) -> Callable[[Resident], bool]:
        def wanted(resident: Resident) -> bool:
            pod_class = resident.pod.pod_class
            if prod and pod_class.band != node_load.PROD:
                return False
            if not self.settings.namespaces.admits(pod_class.namespace):
                return False
            several = self.settings.selectors
            return not several or any(terms.holds(each, pod_class.labels) for each in several)

        return wanted


def _order(
    source: NodeLoad, pool: load_settings.NodePool, *, prod: bool
) -> Callable[[Resident], tuple[tuple[int, ...], float, float]]:
    used, high = source.side(prod=prod)
    over = source.over(prod=prod)
    excess = {name: used[name] - high[name] for name in over}

    def score(resident: Resident) -> float:
        """Higher goes first; a pod that nobody measures goes last."""
        amounts = source.pods.get(resident.pod.key)
        if amounts is None:
            return -1.0
        summed = 0.0
        for name, beyond in excess.items():
            ratio = (1.0 if name == requests.PODS else amounts.get(name, 0.0)) / beyond
            summed += pool.weights.get(name, 0) * (1 / ratio + 1 if ratio >= 1 else ratio)
        return summed

    return lambda resident: (order.rank(resident), -score(resident), -resident.traits.created)


def _targets(classes: Mapping[LoadClass, list[NodeLoad]]) -> tuple[list[NodeLoad], ...]:
    """The nodes that are low, for all pods, for both rounds, and for production pods."""
    several = (LoadClass.LOW, LoadClass.BOTH_LOW, LoadClass.PROD_LOW)
    return tuple(classes[each] for each in several)


def _kept(kept: Mapping[str, Counter[str]]) -> str:
    """Nodes that no pod leaves, and why."""
    why = sum(kept.values(), Counter[str]())
    pods = ", ".join(f"{count} {what}" for what, count in why.items())
    return f"node {_first(list(kept))}: {pods or 'none may be evicted'}"


def _first(names: Sequence[str]) -> str:
    """One of several nodes, and how many more."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _reason(source: NodeLoad, *, prod: bool) -> str:
    used, _ = source.side(prod=prod)
    who = "prod" if prod else "node"
    spelled = [
        f"{who} {name} usage({source.percent(used, name):.2f}%)"
        f">threshold({source.percents[prod][name]:.2f}%)"
        for name in sorted(source.over(prod=prod))
    ]
    if source.suffers and not prod:
        suffering = f"node is under pressure: {', '.join(sorted(source.suffers))}"
        return ", ".join((suffering, *spelled))
    return ", ".join(("node is overutilized", *spelled))


class _TargetRoom:
    """What each target has below its high bound, less what was sent there."""

    def __init__(self, targets: Sequence[NodeLoad], names: Sequence[str], *, prod: bool) -> None:
        self._rows: Rows = np.array([target.row for target in targets], np.intp)
        self._places = {target.row: place for place, target in enumerate(targets)}
        self._left = {
            name: np.array(
                [
                    target.side(prod=prod)[1][name] - target.side(prod=prod)[0][name]
                    for target in targets
                ]
            )
            for name in names
        }

    def find(self, scene: rounds.Scene, resident: Resident, taken: node_load.Amounts) -> int:
        """The first target that takes a pod and stays below its bound; -1 where none does."""
        enough = np.ones(self._rows.size, np.bool_)
        for name, left in self._left.items():
            enough &= left >= (1.0 if name == requests.PODS else taken.get(name, 0.0))
        if not enough.any():
            return -1
        enough &= np.isin(self._rows, scene.landing.feasible(resident))
        several = self._rows[enough].tolist()
        return next((row for row in several if scene.landing.accepts(resident, row)), -1)

    def take(self, row: int, taken: node_load.Amounts) -> None:
        """A pod was sent there."""
        if row < 0 or not taken:
            return
        for name, left in self._left.items():
            left[self._places[row]] -= 1.0 if name == requests.PODS else taken.get(name, 0.0)
