"""Where a pod would land if it left its node: the scheduler's own filters, without that pod.

Covers: feasible nodes of a pod, and what a round has decided already: pods that leave, and the
places that their replacements are expected to take. Does not cover: choosing pods.

Rules:
1. A pod fits where every filter of its scheduler's profile lets it, not where a few rules would:
   spreading, the affinity of others, volumes and reservations have their say. The devices of claims
   that were made for it are free; a claim that others may use keeps its own.
2. Filters that cost much for each node (what agents report, pod by pod) are asked of the chosen
   node alone, and of the next best where they refuse it. Scores that cost much are left out.
3. What was decided changes the columns only between ``resume`` and ``suspend``: whoever waits for
   an answer suspends, so that the watch finds the cluster as the store shows it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator

import numpy as np

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Bools, Rows
from koordlet.scheduler.descheduling.state import GHOST, ClusterState, is_ready
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.framework import Filter
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.view import Scored, View
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources
from koordlet.scheduler.plugins.load_aware import LoadAwareScheduling
from koordlet.scheduler.plugins.resources import NodeResourcesFit


class _Move:
    """A pod that leaves, or stays for now, and its replacement where one is expected."""

    def __init__(self, pod: Pod, target: int, *, stays: bool = False) -> None:
        self._pod, self._target, self._stays = pod, target, stays
        self._ghost = None if target < 0 else ghost(pod)
        #: Whether the columns show the departure, and the replacement.
        self._applied = self._placed = False

    def apply(self, columns: Columns) -> None:
        """Show it, unless the watch was faster and the pod is gone."""
        if self._applied or (not self._stays and take(columns, self._pod) < 0):
            return
        self._applied = True
        if self._ghost is None or columns.nodes[self._target] is None:
            return
        with contextlib.suppress(BadObjectError):
            columns.place(self._ghost, self._target)
            self._placed = True

    def undo(self, columns: Columns) -> None:
        """Show the cluster without it."""
        if not self._applied:
            return
        if self._placed and self._ghost is not None:
            columns.remove(self._ghost)
        if not self._stays:
            columns.place(self._pod, columns.rows[self._pod.node])
        self._applied = self._placed = False


def take(columns: Columns, pod: Pod) -> int:
    """Take a pod off its node; its row, or -1 where it holds no room (any more)."""
    row = columns.rows.get(pod.node, -1)
    if row < 0 or columns.pods[row].get(pod.key) is not pod:
        return -1
    columns.remove(pod)
    return row


class Landing:
    """The places of pods after the decisions of one round."""

    def __init__(self, state: ClusterState) -> None:
        self._state, self._columns = state, state.columns
        self._moves: list[_Move] = []
        #: By name of a scheduler, and whether they are whole.
        self._cycles: dict[tuple[str, bool], Cycle] = {}
        self._costly: dict[PodClass, list[Filter]] = {}
        self._seen, self._alive = -1, np.zeros(0, np.bool_)

    def feasible(self, resident: Resident, *, own: bool = False) -> Rows:
        """The nodes that would take a pod, in the order of rows; its own only where wanted."""
        return self._sorted(resident, own=own)[0]

    def best(self, resident: Resident, among: Collection[int] | None = None) -> int:
        """The row that the scheduler would choose (of these); -1 where nothing takes the pod."""
        rows, totals = self._sorted(resident, own=False)
        if among is not None:
            inside = np.isin(rows, np.fromiter(among, np.intp, len(among)))
            rows, totals = rows[inside], totals[inside]
        ordered = rows[np.argsort(-totals, kind="stable")] if self._filters(resident) else rows
        if ordered is rows:
            return int(rows[int(totals.argmax())]) if rows.size else -1
        return next((row for row in ordered.tolist() if self.accepts(resident, row)), -1)

    def fits(self, resident: Resident, row: int) -> bool:
        """Whether one node would take a pod."""
        return row in self.feasible(resident, own=True) and self.accepts(resident, row)

    def accepts(self, resident: Resident, row: int) -> bool:
        """Whether the filters that cost much let a feasible node take a pod (rule 2)."""
        return all(filtering.allows(row) for filtering in self._filters(resident))

    def _filters(self, resident: Resident) -> list[Filter]:
        pod_class = resident.pod.pod_class
        known = self._costly.get(pod_class)
        if known is None:
            served = self._state.profile(pod_class.scheduler)
            several = (
                plugin.filter(pod_class, self._columns)
                for plugin in served.filters
                if isinstance(plugin, LoadAwareScheduling)
            )
            known = self._costly[pod_class] = [each for each in several if each is not None]
        return known

    def _cycle(self, name: str, *, whole: bool = False) -> Cycle:
        """The cycle of a scheduler; unless it is to be whole, without what costs much."""
        known = self._cycles.get((name, whole))
        if known is None:
            served = self._state.profile(name)
            light = (
                served
                if whole
                else dataclasses.replace(
                    served,
                    filters=tuple(
                        plugin
                        for plugin in served.filters
                        if not isinstance(plugin, LoadAwareScheduling)
                    ),
                    scores=tuple(
                        (plugin, weight)
                        for plugin, weight in served.scores
                        if isinstance(plugin, NodeResourcesFit)
                    ),
                )
            )
            known = self._cycles[name, whole] = Cycle(self._columns, light)
        return known

    @contextlib.contextmanager
    def sight(self, resident: Resident, *, whole: bool = True) -> Iterator[View]:
        """What the scheduler sees of a replacement, its own node included, without the pod."""
        cycle = self._cycle(resident.pod.pod_class.scheduler, whole=whole)
        taken = take(self._columns, resident.pod)
        try:
            with self._without_claims(resident.pod), cycle.sight(ghost(resident.pod)) as view:
                yield view
        finally:
            if taken >= 0:
                self._columns.place(resident.pod, taken)

    def _sorted(self, resident: Resident, *, own: bool) -> tuple[Rows, Rows]:
        with self.sight(resident, whole=False) as view:
            scored = self.scored(view, shunned=() if own else (resident.row,))
        return scored.rows, scored.totals

    def scored(self, view: View, shunned: Collection[int] = ()) -> Scored:
        """The feasible nodes that are ready, and their scores."""
        if view.refused is not None:
            return Scored(np.zeros(0, np.intp), np.zeros(0, np.int64))
        scored = view.scored(shunned=shunned)
        inside = self._ready()[scored.rows]
        return Scored(scored.rows[inside], scored.totals[inside])

    def _without_claims(self, pod: Pod) -> contextlib.AbstractContextManager[None]:
        """Free what only this pod has of devices, while the block runs."""
        if pod.claims or pod.pod_class.extended:
            plugin = self._state.profile(pod.pod_class.scheduler).find(DynamicResources)
            if plugin is not None:
                return plugin.state.without(pod)
        return contextlib.nullcontext()

    def _ready(self) -> Bools:
        """The rows of nodes that are ready, found once a round and again when nodes come or go."""
        if self._seen != self._columns.generation:
            self._seen = self._columns.generation
            nodes = self._columns.nodes
            self._alive = np.array(
                [node is not None and is_ready(node) for node in nodes], np.bool_
            )
        return self._alive

    def depart(self, resident: Resident, target: int = -1) -> None:
        """A pod leaves; its replacement is expected on a node, where one is named."""
        self._moves.append(_Move(resident.pod, target))
        self._moves[-1].apply(self._columns)

    def hold(self, resident: Resident, target: int) -> None:
        """Room is held for the replacement of a pod that stays for now."""
        self._moves.append(_Move(resident.pod, target, stays=True))
        self._moves[-1].apply(self._columns)

    def take_back(self, departures: int) -> None:
        """Undo the last departures, or room that was held, as if nobody had thought of them."""
        for _ in range(departures):
            self._moves.pop().undo(self._columns)

    def suspend(self) -> None:
        """Show the cluster as it is."""
        for move in reversed(self._moves):
            move.undo(self._columns)

    def resume(self) -> None:
        """Show the cluster as it will be."""
        for move in self._moves:
            move.apply(self._columns)


def ghost(pod: Pod) -> Pod:
    """The replacement of a pod, as the scheduler will be asked to place it."""
    return dataclasses.replace(
        pod,
        name=f"{GHOST}{pod.name}",
        uid=f"{GHOST}{pod.uid}",
        replaces=pod.uid,
        node="",
        nominated="",
        terminating=False,
        draws_on="",
        drawn_name="",
        operates=False,
        cpus=None,
        parts={},
        devices=(),
        gang=None,
    )
