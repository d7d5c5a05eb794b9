"""Plans of several moves: making room for a pod that fits nowhere, emptying a node.

Covers: which pods move and where to, the cost, why each step is safe. Does not cover: carrying a
plan out, which holds room on each target before anybody is evicted (``scheduler.migration``).

Rules:
1. A node is worth trying where the pod would fit without its movable pods. The cheapest set of them
   moves: at most ``MOST_MOVES`` of the ``CANDIDATES`` cheapest, found by branch and bound. The
   cheapest ``_SETS_OF_NODE`` of a node are tried, and ``_SETS`` in all: a search ends in seconds.
2. All of them must fit elsewhere, by the filters of their own scheduler, each with those before it
   in place. Nobody goes to the node that is to have room. So each target holds its replacements
   while everything else is where it was: a plan that stops anywhere leaves nothing worse.
3. Nobody moves who is more important than the pod that waits, belongs to its node, would lose data,
   moves already, or may not be evicted for long (``plan_check.PATIENCE``) by whoever carries the
   plan out. Nor do several of whom one, once the others have gone, would have to wait for so long.
   Who is needed by its gang moves with all of it (``move_unit``): each member counts as a move, has
   room before the first leaves, and may be evicted now.
4. The least sum of the costs (``disruption.move_costs``) wins; of equal ones the first name.
5. A pod of a gang whose members share a domain of the topology gets room in that domain. None is
   made for a gang that is gathered in the network; for one that lacks several see ``gang_room``.
6. Only where nobody has a plan without: a pod that has no place may take that of another, which
   moves on to a place of its own first. Chains have two links; two pods that change places do so by
   a third node. ``_CHAINS`` are tried for one pod.
7. Room that is kept ahead (``room_ahead``) is nobody's: no replacement takes it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from koordlet.scheduler.cluster.vectors import Ints
from koordlet.scheduler.descheduling import landing
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Answer, Defer, Deny, Mover
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.disruption.move_costs import MoveCosts
from koordlet.scheduler.framework import Verdict
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import move_sets, move_unit, plan_check
from koordlet.scheduler.rescheduling.drain import belongs
from koordlet.scheduler.rescheduling.move_sets import MOST_MOVES, Candidate, SearchBudget
from koordlet.scheduler.rescheduling.move_unit import MoveUnit
from koordlet.scheduler.rescheduling.plan_check import CAUSE, MOVER
from koordlet.scheduler.rescheduling.room_plan import PlannedMove, RoomPlan

CANDIDATES = 12
#: Chains that are tried for one pod, and sets of pods, of one node and of all.
_CHAINS, _SETS_OF_NODE, _SETS = 256, 16, 512
#: Nodes that are tried for being emptied, and pods that one may have.
_TRIED, _MOST_PODS = 64, 32


#: The least that a node could cost, its name and row, what is lacking there, who may move.
_Bound = tuple[float, str, int, Ints, list[Candidate]]


_NO_CHAINS = SearchBudget(0)
_HAS_ROOM = Verdict(("node(s) have room already",), resolvable=False)


class RoomPlanner:
    """Looks for plans over one state of a cluster, which is as before afterwards."""

    def __init__(
        self,
        state: ClusterState,
        limiter: Limiter,
        mover: Mover = MOVER,
        kept: Mapping[int, Pod] | None = None,
    ) -> None:
        """``mover``: whose moves they would be; ``kept``: who keeps the room of nodes, by row."""
        self._state, self._limiter, self._mover = state, limiter, mover
        self._kept = kept or {}
        self._columns, self._landing = state.columns, Landing(state)
        self._costs = MoveCosts(state.columns, limiter.workloads)
        #: What the limiter says, by UID.
        self._answers: dict[str, Answer] = {}
        #: Plans for other members of a gang, and the sets that may be tried for all of it.
        self._beside: Sequence[RoomPlan] = ()
        self._sets = SearchBudget(_SETS)

    # For a pod.

    def make_room(self, pod: Pod, has_room: Collection[int] = ()) -> RoomPlan | str:
        """The cheapest plan for a pod that waits, or why there is none.

        ``has_room``: nodes that are not meant, as the pod is to fit on one more.
        """
        outside, why = plan_check.outside_gang(self._state, pod)
        if why:
            return f"no move helps {pod.key}: {why}"
        made = self.room(pod, {**outside, **dict.fromkeys(has_room, _HAS_ROOM)})
        if isinstance(made, RoomPlan) and not made.moves:
            return f"{pod.key} fits on node {made.node} as it is"
        return made

    def room(
        self, pod: Pod, outside: Mapping[int, Verdict], beside: Sequence[RoomPlan] | None = None
    ) -> RoomPlan | str:
        """The cheapest plan for a pod, without moves where it fits as it is; or why there is none.

        ``outside``: nodes that are not meant. ``beside``: plans for other members of its gang,
        which the cluster shows as if they were made; chains are not looked for beside them, and
        nobody goes to a node that their moves leave.
        """
        self._beside = beside or ()
        cycle = Cycle(self._columns, self._state.profile(pod.pod_class.scheduler))
        row = cycle.choose(pod, outside)
        if row >= 0:
            return RoomPlan(self._state.node(row).name, ())
        failure = cycle.failure(pod, outside)
        taken = {self._columns.rows[name] for plan in self._beside for name in plan.used}
        potential = [row for row, why in (failure.verdicts or {}).items() if why.resolvable]
        potential = [row for row in potential if row not in taken]
        if not potential:
            return f"no move helps {pod.key}: {failure.message}"
        with cycle.sight(pod) as view:
            bounds = sorted(self._bounds(pod, potential))
            with plan_check.room_kept(self._columns, self._kept):
                sets = SearchBudget(_SETS) if beside is None else self._sets
                best = self._best(view, pod, bounds, sets, _NO_CHAINS)
                if best is None and beside is None:
                    sets, chains = SearchBudget(_SETS), SearchBudget(_CHAINS)
                    best = self._best(view, pod, bounds, sets, chains)
        if best is not None:
            return best
        return (
            f"on no node are there at most {MOST_MOVES} pods that may move, fit elsewhere and make"
            f" room for {pod.key}: {failure.message}"
        )

    def _best(
        self,
        view: View,
        pod: Pod,
        bounds: Sequence[_Bound],
        sets: SearchBudget,
        chains: SearchBudget,
    ) -> RoomPlan | None:
        """The cheapest plan; nodes in the order of the least that they could cost."""
        best: RoomPlan | None = None
        for bound, _, row, lacking, candidates in bounds:
            if best is not None and bound > best.cost:
                break
            below = math.inf if best is None else best.cost
            several = (
                chosen
                for chosen in move_sets.subsets(candidates, lacking, below)
                if len(self._allowed(chosen)) == len(chosen)
            )
            for chosen in itertools.islice(several, _SETS_OF_NODE):
                if not sets.take():
                    return best
                moves = self._moves(view, pod, row, chosen, chains)
                if moves is None:
                    continue
                made = RoomPlan(self._state.node(row).name, moves)
                if best is None or made.cost < best.cost:
                    best = made
                break
        return best

    def _bounds(self, pod: Pod, potential: Sequence[int]) -> Iterator[_Bound]:
        """For each node a cost below which nothing helps, whatever the limiter says of its pods."""
        asked = self._columns.vectors(pod.pod_class)[0]
        for row in potential:
            size = asked.size
            spare = self._columns.allocatable[:size, row] - self._columns.requested[:size, row]
            lacking = np.maximum(np.where(asked > 0, asked - spare, 0), 0)
            candidates = sorted(self._candidates(row, pod.priority), key=move_sets.rank)[
                :CANDIDATES
            ]
            whole = sum((each.amounts[:size] for each in candidates), np.zeros(size, np.int64))
            if not candidates or (whole < lacking).any():
                continue
            fewest = move_sets.fewest(candidates, lacking)
            if fewest <= MOST_MOVES:
                bound = sum(each.cost for each in candidates[:fewest])
                yield bound, self._state.node(row).name, row, lacking, candidates

    def _candidates(self, row: int, priority: int) -> Iterator[Candidate]:
        """The pods of a node that may move but for the limiter (rule 3)."""
        whole: set[str] = set()
        for resident in self._state.residents(row):
            unit = move_unit.unit(self._state, resident)
            if isinstance(unit, str) or unit.gang in whole:
                continue
            if not all(self._may_move(each, priority) for each in unit.residents):
                continue
            whole |= {unit.gang} - {""}
            cost = sum(self._costs.of(each.pod, each.row) for each in unit.residents)
            yield Candidate(unit, cost, self._freed(unit, row))

    def _may_move(self, resident: Resident, priority: int) -> bool:
        stays = (
            belongs(resident) or resident.traits.local_storage or self._state.under_way(resident)
        )
        return not stays and resident.pod.priority <= priority

    def _freed(self, unit: MoveUnit, row: int) -> Ints:
        """What a node has more once these have left."""
        there = (each.pod.pod_class for each in unit.residents if each.row == row)
        return functools.reduce(np.add, (self._columns.vectors(each)[0] for each in there))

    def _allowed(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those that may be evicted before long."""
        return [
            each
            for each in candidates
            if not any(
                plan_check.denies(self._answer(pod, place), self._state.now)
                for place, pod in enumerate(each.unit.pods)
            )
        ]

    def _answer(self, pod: Pod, place: int) -> Answer:
        """What the limiter says of a pod, by its place among those that leave with it."""
        known = self._answers.get(pod.uid)
        if known is None:
            mover = plan_check.asker(self._mover, place)
            known = self._limiter.lasting(pod, CAUSE, mover, self._state.now)
            self._answers[pod.uid] = known
        return known

    def _moves(
        self, view: View, pod: Pod, row: int, chosen: Sequence[Candidate], chains: SearchBudget
    ) -> tuple[PlannedMove, ...] | None:
        """The moves by which these make room; ``None`` where they do not, or have no place."""
        units = [each.unit.pods for each in chosen]
        name = self._state.node(row).name
        leaving = [pod for pods in units for pod in pods if pod.node == name]
        leaving += [self._kept[row]] if row in self._kept else []
        if not plan_check.fits(self._columns, view, row, leaving) or self._rehearsed(units):
            return None
        guest = landing.ghost(pod)
        self._columns.place(guest, row)
        try:
            left = {self._columns.rows[name] for plan in self._beside for name in plan.origins}
            among = set(self._state.rows()) - left if left else None
            moves = self._landed(row, chosen, chains, pod.priority, among)
        finally:
            self._columns.remove(guest)
        if moves is None or len(moves) > MOST_MOVES:
            return None
        return None if self._rehearsed(RoomPlan(name, moves).units) else moves

    def _rehearsed(self, units: Iterable[Sequence[Pod]]) -> bool:
        """Whether the limiter would keep one of them back for long, after those that move."""
        several = [*(pods for plan in self._beside for pods in plan.units), *units]
        return bool(plan_check.rehearse(self._limiter, several, self._state.now, self._mover)[0])

    def _landed(
        self,
        row: int,
        chosen: Sequence[Candidate],
        chains: SearchBudget,
        priority: int,
        among: Collection[int] | None = None,
    ) -> tuple[PlannedMove, ...] | None:
        """Where each would go, the largest first; ``None`` where one has no place (rule 2).

        ``among``: the nodes where they may go; ``None``: all.
        """
        moves: list[PlannedMove] = []
        try:
            for each in sorted(
                chosen, key=lambda each: (-int(each.amounts[0]), *move_sets.rank(each))
            ):
                rows = self._open(each.unit, row, moves, among)
                best = functools.partial(self._landing.best, among=rows)
                if self._depart(each.unit, best, moves):
                    continue
                target = self._vacated(each, chains, priority, moves)
                if target < 0:
                    return None
                self._depart(each.unit, _to(target), moves)
            return tuple(moves)
        finally:
            self._landing.take_back(len(moves))

    def _open(
        self,
        unit: MoveUnit,
        row: int,
        moves: Sequence[PlannedMove],
        among: Collection[int] | None,
    ) -> Collection[int] | None:
        """Where these may go: members of a gang to no node that is emptied or that others leave."""
        if unit.free:
            return among
        several = set(self._state.rows() if unit.rows is None else unit.rows)
        if among is not None:
            several &= set(among)
        left = {row, *(self._columns.rows[move.origin] for move in moves)}
        return several - left if unit.gang else several

    def _depart(
        self, unit: MoveUnit, choose: Callable[[Resident], int], moves: list[PlannedMove]
    ) -> bool:
        """Whether all of these have a place: then they leave, after those that leave it."""
        targets = move_unit.depart(self._landing, unit, choose)
        if len(targets) < len(unit.residents):
            return False
        for number, (resident, target) in enumerate(zip(unit.residents, targets, strict=True)):
            pod, name = resident.pod, self._state.node(target).name
            after = tuple(place for place, move in enumerate(moves) if move.origin == name)
            answer = self._answer(pod, number)
            waits = answer if isinstance(answer, Deny | Defer) else None
            cost = self._costs.of(pod, resident.row)
            more = () if unit.gang else after
            moves.append(PlannedMove(pod, pod.node, name, cost, waits, more, unit.gang))
        return True

    def _vacated(
        self, lacks: Candidate, chains: SearchBudget, priority: int, moves: list[PlannedMove]
    ) -> int:
        """A node that takes a pod once one of its own has moved on; -1: there is none (rule 6)."""
        size = lacks.amounts.size
        several: list[tuple[float, str, int, Candidate]] = []
        for row in self._state.rows() if chains.left and lacks.unit.free else ():
            spare = self._columns.allocatable[:size, row] - self._columns.requested[:size, row]
            for each in self._candidates(row, priority):
                enough = each.amounts[:size] + spare >= lacks.amounts
                if (
                    each.unit.free
                    and row != lacks.resident.row
                    and (enough | (lacks.amounts == 0)).all()
                ):
                    several.append((*move_sets.rank(each), row, each))
        for _, _, row, each in sorted(several, key=lambda entry: entry[:2])[:CANDIDATES]:
            if not chains.take() or not self._allowed([each]):
                continue
            elsewhere = self._landing.best(each.resident)
            if elsewhere in {-1, lacks.resident.row}:
                continue
            self._depart(each.unit, _to(elsewhere), moves)
            if self._landing.fits(lacks.resident, row):
                return row
            self._landing.take_back(1)
            moves.pop()
        return -1

    # For a node.

    def empty_node(self) -> RoomPlan | str:
        """The cheapest plan that leaves a node what belongs to it alone, or why there is none.

        Nobody goes to a node that is empty already: nothing would be gained.
        """
        several, used = [], set()
        for row in self._state.rows():
            movable = list(self._candidates(row, 2**31))
            residents = self._state.residents(row)
            used |= {row for each in residents if not belongs(each)}
            staying = sum(bool(belongs(each)) for each in residents)
            pods = [each for candidate in movable for each in candidate.unit.residents]
            complete = sum(each.row == row for each in pods) + staying == len(residents)
            if movable and complete and len(pods) <= _MOST_PODS:
                cost = sum(each.cost for each in movable)
                several.append((cost, self._state.node(row).name, row, movable))
        bound, tried = 0, sorted(several, key=lambda each: each[:2])[:_TRIED]
        for _, name, row, movable in tried:
            complete = len(self._allowed(movable)) == len(movable)
            if not complete or self._rehearsed(each.unit.pods for each in movable):
                bound += 1
                continue
            with plan_check.room_kept(self._columns, self._kept):
                moves = self._landed(row, movable, _NO_CHAINS, 0, used)
            if moves is not None:
                return RoomPlan(name, moves)
        return (
            f"{len(tried)} of {len(several)} nodes whose pods may move were tried: {bound} have a"
            f" pod that may not be evicted now, {len(tried) - bound} one without room elsewhere"
        )


def _to(target: int) -> Callable[[Resident], int]:
    """A choice that is made."""
    return lambda _resident: target
