"""CustomPriority: from expensive nodes to cheaper ones, by Koordinator's rules.

Covers: levels of nodes, both modes. Does not cover: cordoning (whoever plays the round).

Rules:
1. Levels go from expensive to cheap; a node belongs to the first that means it. The pods of a level
   go to nodes of all cheaper ones; of the cheapest none goes.
2. ``BestEffort``: the smallest pod first, each that some target takes.
3. ``DrainNode``: a node's pods go only where the targets take all of them together, beside what
   this round has moved there; the first that is refused ends it, and the next round goes on.
   ``autoCordon`` cordons the node first.
4. A node with at most ``keepThreshold`` of every resource requested is left alone; one with more
   than ``rejectThreshold`` of any is no target. (The peer reads both and uses neither.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from koordlet.kubeapi import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.state import is_cordoned
from koordlet.scheduler.descheduling.strategies import candidates
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import requests

BEST_EFFORT, DRAIN_NODE = "BestEffort", "DrainNode"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityLevel:
    """Nodes of one price."""

    name: str
    selector: selectors.Compiled | None
    keep: Mapping[str, float]
    reject: Mapping[str, float]


class CustomPriority:
    """The strategy."""

    name = "CustomPriority"

    def __init__(self, fields: Fields) -> None:
        self._settings = candidates.read(fields)
        self._levels = tuple(map(_level, fields.children("evictionOrder")))
        self._drains = fields.word("mode", (BEST_EFFORT, DRAIN_NODE), BEST_EFFORT) == DRAIN_NODE
        self._cordons = fields.flag("autoCordon")
        if len(self._levels) < 2:
            fix = "name the levels, from expensive to cheap"
            fields.fail("evictionOrder", f"{len(self._levels)} levels, and two are needed", fix)
        if len({level.name for level in self._levels}) < len(self._levels):
            fields.fail("evictionOrder", "two levels have the same name")
        if self._cordons and not self._drains:
            fields.fail("autoCordon", f"needs mode {DRAIN_NODE}")
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Level by level, the most expensive first."""
        if self._settings.paused:
            scene.note("it is paused")
            return
        rows = self._rows(scene)
        if sum(map(bool, rows)) < 2:
            scene.note("fewer than two levels have nodes")
            return
        for place, level in enumerate(self._levels[:-1]):
            targets = [
                row
                for later, cheaper in zip(self._levels[place + 1 :], rows[place + 1 :], strict=True)
                for row in cheaper
                if not is_cordoned(scene.state.node(row)) and not _above(scene, row, later.reject)
            ]
            for row in rows[place] if targets else ():
                if level.keep and not _above(scene, row, level.keep):
                    continue
                if self._drains:
                    yield from self._drain(scene, row, targets, level.name)
                else:
                    yield from self._relieve(scene, row, targets, level.name)

    def _rows(self, scene: rounds.Scene) -> list[list[int]]:
        """The nodes of each level (rule 1)."""
        rows: list[list[int]] = [[] for _ in self._levels]
        for row in self._settings.rows(scene):
            labels = scene.state.node(row).labels
            for level, several in zip(self._levels, rows, strict=True):
                if selection.matches(level.selector, labels):
                    several.append(row)
                    break
        return rows

    def _pods(self, scene: rounds.Scene, row: int) -> list[Resident]:
        """The pods that may go, the smallest first."""

        def size(resident: Resident) -> tuple[int, int, str]:
            asked = resident.pod.pod_class.requests.real
            cpu, memory = (asked.get(name, 0) for name in (requests.CPU, requests.MEMORY))
            return cpu, memory, resident.pod.key

        return sorted(scene.evictable(row, self._settings.wants), key=size)

    def _relieve(
        self, scene: rounds.Scene, row: int, targets: Sequence[int], level: str
    ) -> rounds.Intents:
        reason = f"evicting from {level} priority resource to lower priority resource"
        for resident in self._pods(scene, row):
            target = -1
            if self._settings.node_fit:
                target = scene.landing.best(resident, targets)
                if target < 0:
                    continue
            intent = rounds.Intent(resident, reason, target, shadow=self._settings.dry_run)
            if (yield intent) is EvictionAnswer.NODE_LIMIT:
                return

    def _drain(
        self, scene: rounds.Scene, row: int, targets: Sequence[int], level: str
    ) -> rounds.Intents:
        node = scene.state.node(row)
        places = self._places(scene, self._pods(scene, row), targets)
        if places is None:
            scene.note(f"node {node.name} is not drained: its pods do not all fit on cheaper nodes")
            return
        reason = f"drain node {node.name} (sourcePriority={level})"
        cordon = self._cordons and not is_cordoned(node)
        for resident, target in places:
            intent = rounds.Intent(
                resident, reason, target, shadow=self._settings.dry_run, cordon=cordon
            )
            if not (yield intent).evicted:
                return
            cordon = False

    def _places(
        self,
        scene: rounds.Scene,
        several: Iterable[Resident],
        targets: Sequence[int],
    ) -> list[tuple[Resident, int]] | None:
        """A place for each pod, or none at all."""
        columns = scene.state.columns
        taken: dict[int, dict[str, int]] = {}
        places = []
        for resident in several:
            asked = {**resident.pod.pod_class.requests.real, requests.PODS: 1}
            fits = None
            if self._settings.node_fit:
                fits = set(scene.landing.feasible(resident).tolist())
            for row in targets:
                known = taken.setdefault(row, {})
                room = all(
                    columns.allocatable[line, row] - columns.requested[line, row]
                    >= amount + known.get(name, 0)
                    for name, amount in asked.items()
                    if amount
                    for line in (columns.resource(name),)
                )
                if room and (fits is None or row in fits):
                    for name, amount in asked.items():
                        known[name] = known.get(name, 0) + amount
                    places.append((resident, row))
                    break
            else:
                return None
        return places


def _level(fields: Fields) -> PriorityLevel:
    level = PriorityLevel(
        name=fields.text("name"),
        selector=fields.selector("nodeSelector"),
        keep=fields.percentages("keepThreshold"),
        reject=fields.percentages("rejectThreshold"),
    )
    for key in ("name", "nodeSelector"):
        if not fields.get(key) and fields.get(key) != {}:
            fields.fail(key, "is missing")
    fields.done()
    return level


def _above(scene: rounds.Scene, row: int, bounds: Mapping[str, float]) -> bool:
    """Whether more than its percentage of some resource of a node is requested."""
    columns = scene.state.columns
    above = (
        100 * columns.requested[columns.resource(name), row]
        > bound * columns.allocatable[columns.resource(name), row]
        for name, bound in bounds.items()
    )
    return any(above)
