"""How many members of a gang fit on each node, one after another.

Covers: slots of all nodes at once, why a node has no more. Does not cover: which nodes are taken
(``network_tree``).

Rules:
1. The slots of a node are the members that fit before the first that does not. Where members are of
   several classes, no more than that fit for sure: each is judged again where it goes.
2. Where amounts alone decide, all nodes are judged in one pass over the columns. Elsewhere, and on
   nodes that are promised to pods before them, members of one class are placed one after another
   and taken away again, on nodes with room for more than one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import FIXED
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.framework import Verdict, dryrun, messages
from koordlet.scheduler.framework.dryrun import ResourceSums
from koordlet.scheduler.gangs.trial import AssumingCore, assume, take_back
from koordlet.scheduler.loop.outcomes import Nominations, Refusal
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.plugins.resources import Fit, NodeResourcesFit

_PODS = FIXED.index(requests.PODS)
_OUTSIDE = "node(s) are outside of the cluster's network topology"


class PlacingCore(AssumingCore, Protocol):
    """The parts of ``loop.core.Core`` that place a pod."""

    nominated: Nominations


def verdict(core: PlacingCore, pod: Pod, row: int) -> Verdict | None:
    """Why a node refuses a pod beside those that it is promised to; ``None``: it does not."""
    cycle, columns = core.cycles[pod.pod_class.scheduler], core.pod_cache.columns
    guests = _guests(core, pod, row)
    with dryrun.joined(columns, row, guests):
        return cycle.verdict(pod, row)


def _guests(core: PlacingCore, pod: Pod, row: int) -> list[Pod]:
    node = core.pod_cache.columns.nodes[row] if core.nominated else None
    return [] if node is None else core.nominated.before(pod, node.name)


@dataclass(frozen=True, slots=True, eq=False)
class _ClassSlots:
    """What a class of members may do on the nodes as they are."""

    #: The first member of the class.
    pod: Pod
    #: By place among the rows: whether the node takes a pod of it, and its score, 0 where not.
    allowed: Bools
    scores: Ints
    #: By kind of resource: what a pod takes of what decides.
    needs: dict[int, int]
    #: Whether amounts alone decide.
    summed: bool


class NodeSlots:
    """The slots of these rows for these members."""

    def __init__(self, core: PlacingCore, members: Sequence[Pod], rows: Rows) -> None:
        self._core, self._members, self._rows = core, members, rows
        #: By place among the rows: what refused the next member (rule 2).
        self._refused: dict[int, Verdict] = {}
        self._classes: dict[PodClass, _ClassSlots] = {}
        number = Counter(pod.pod_class for pod in members)
        for pod in members:
            if pod.pod_class not in self._classes:
                self._classes[pod.pod_class] = self._class_slots(pod)
        self._kinds = sorted({kind for each in self._classes.values() for kind in each.needs})
        columns = core.pod_cache.columns
        several = [self._classes[pod.pod_class].needs for pod in members]
        #: By kind and number of members: what the smallest so many take.
        self._taken: list[Ints] = [
            np.cumsum(sorted(needs.get(kind, 0) for needs in several)) for kind in self._kinds
        ]
        spare = columns.allocatable[:, rows] - columns.requested[:, rows]
        #: What a node lacks already is no obstacle to a pod that asks nothing of it.
        self._spare = [np.maximum(spare[kind], 0) for kind in self._kinds]
        counts = np.zeros(rows.size, np.int64)
        for pod_class, each in self._classes.items():
            counts += np.where(each.allowed, number[pod_class], 0)
        for taken, free in zip(self._taken, self._spare, strict=True):
            counts = np.minimum(counts, np.searchsorted(taken, free, "right"))
        self.counts: Ints = self._walked(counts)
        #: Of the first member, which speaks for all.
        self.scores: Ints = self._classes[members[0].pod_class].scores

    def _class_slots(self, pod: Pod) -> _ClassSlots:
        cycle, columns = self._core.cycles[pod.pod_class.scheduler], self._core.pod_cache.columns
        totals = np.full(columns.size, -1, np.int64)
        needs: dict[int, int] = {}
        summed = False
        with cycle.sight(pod) as view:
            if view.refused is None:
                scored = view.scored()
                totals[scored.rows] = scored.totals
                fits = [fit for _, fit in view.filters if type(fit) is Fit]
                needs = dict(fits[0].pairs) | {_PODS: 1} if fits else {}
                summed = ResourceSums.of(columns, view) is not None
        summed = summed and cycle.class_for(pod) is pod.pod_class
        here = totals[self._rows]
        return _ClassSlots(pod, here >= 0, np.maximum(here, 0), needs, summed)

    def _walked(self, counts: Ints) -> Ints:
        """Counts corrected on the nodes where amounts alone do not decide (rule 2)."""
        columns, first = self._core.pod_cache.columns, self._members[0]
        least = np.full(self._rows.size, 1, np.int64)
        if len(self._classes) > 1:
            return counts
        if all(each.summed for each in self._classes.values()):
            least[:] = len(self._members)
        for name in self._core.nominated:
            row = columns.rows.get(name)
            places = np.flatnonzero(self._rows == row) if row is not None else ()
            if row is not None and _guests(self._core, first, row):
                least[places] = 0
        for place in np.flatnonzero(counts > least).tolist():
            counts[place] = self._walk(place, int(counts[place]))
        return counts

    def _walk(self, place: int, most: int) -> int:
        core, row = self._core, int(self._rows[place])
        placed: list[Pod] = []
        for pod in self._members[:most]:
            refusal = verdict(core, pod, row)
            if refusal is None:
                outcome = assume(core, pod, row)
                if not isinstance(outcome, Refusal):
                    placed.append(pod)
                    continue
                refusal = Verdict((outcome.message,), resolvable=True)
            self._refused[place] = refusal
            break
        for pod in reversed(placed):
            take_back(core, pod)
        return len(placed)

    # Why there are no more.

    def shortage(self) -> tuple[str, frozenset[str]]:
        """Why nodes have no more slots, as the message of a pod, and the plugins that say so."""
        total = len(self._core.pod_cache.columns.rows)
        refusals = list(self._refused.values())
        left = self.counts < len(self._members)
        left[list(self._refused)] = False
        for each in self._classes.values():
            barred = left & ~each.allowed
            refusals += self._refusals(each.pod, np.flatnonzero(barred))
            left &= ~barred
        reasons = [reason for refusal in refusals for reason in refusal.reasons]
        names = {kind: name for name, kind in self._core.pod_cache.columns.resources.items()}
        for kind, taken, spare in zip(self._kinds, self._taken, self._spare, strict=True):
            lacking = taken[self.counts[left]] > spare[left]
            words = "Too many pods" if kind == _PODS else f"Insufficient {names[kind]}"
            reasons += [words] * int(lacking.sum())
        reasons += [_OUTSIDE] * (total - self._rows.size)
        # Room that others give back always helps: it may make a place large enough.
        by = {refusal.plugin for refusal in refusals} - {""} | {NodeResourcesFit.name}
        return messages.histogram(total, reasons), frozenset(by)

    def _refusals(self, pod: Pod, places: Rows) -> list[Verdict]:
        with self._core.cycles[pod.pod_class.scheduler].sight(pod) as view:
            if view.refused is not None:
                plugin, error = view.refused
                return [Verdict((error.reason,), error.resolvable, plugin)] * places.size
            verdicts = view.verdicts(self._rows[places])
        return [verdict for verdict in verdicts if verdict is not None]
