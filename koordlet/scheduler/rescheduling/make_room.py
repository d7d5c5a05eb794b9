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
   moves already, is needed by its gang, or may not be evicted for long (``plan_check.PATIENCE``) by
   whoever carries the plan out. Nor do several of whom one, once the others have gone, would have
   to wait for so long.
4. The least sum of the costs (``plan_check.MoveCosts``) wins; of equal ones the first name.
5. A pod of a gang whose members share a domain of the topology gets room in that domain. None is
   made for a gang that lacks several, or is gathered in the network.
6. Only where nobody has a plan without: a pod that has no place may take that of another, which
   moves on to a place of its own first. Chains have two links; two pods that change places do so by
   a third node. ``_CHAINS`` are tried for one pod.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.vectors import Ints
from koordlet.scheduler.descheduling import landing
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Answer, Defer, Deny, Mover
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.migration import gang
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import plan_check
from koordlet.scheduler.rescheduling.drain import belongs
from koordlet.scheduler.rescheduling.plan_check import CAUSE, MOVER

MOST_MOVES, CANDIDATES = 5, 12
#: Chains that are tried for one pod, and sets of pods, of one node and of all.
_CHAINS, _SETS_OF_NODE, _SETS = 256, 16, 512
#: Nodes that are tried for being emptied, and pods that one may have.
_TRIED, _MOST_PODS = 64, 32


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A pod, the node that it leaves, and the one where room for it is held."""

    pod: Pod
    origin: str
    target: str
    cost: float
    #: What the limiter says now: ``None``: it may go.
    waits_for: Deny | Defer | None
    #: Places of the moves that free its room.
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """Moves in order, and the node that has room, or nothing, in the end."""

    node: str
    moves: tuple[PlannedMove, ...]

    @property
    def cost(self) -> float:
        """The sum over its moves."""
        return sum(move.cost for move in self.moves)


@dataclass(frozen=True, slots=True)
class _Candidate:
    resident: Resident
    cost: float
    amounts: Ints


#: The least that a node could cost, its name and row, what is lacking there, who may move.
_Bound = tuple[float, str, int, Ints, list[_Candidate]]


class _Budget:
    """So many chains, or sets, are tried in one search."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self) -> bool:
        """Whether one more may be tried."""
        self.left -= 1
        return self.left >= 0


_NO_CHAINS = _Budget(0)


class RoomPlanner:
    """Looks for plans over one state of a cluster, which is as before afterwards."""

    def __init__(self, state: ClusterState, limiter: Limiter, mover: Mover = MOVER) -> None:
        """``mover``: whose moves they would be, as the limiter knows it."""
        self._state, self._limiter, self._mover = state, limiter, mover
        self._columns, self._landing = state.columns, Landing(state)
        self._costs = plan_check.MoveCosts(state.columns, limiter)
        #: What the limiter says, by UID.
        self._answers: dict[str, Answer] = {}

    # For a pod.

    def make_room(self, pod: Pod) -> RoomPlan | str:
        """The cheapest plan for a pod that waits, or why there is none."""
        outside, why = plan_check.outside_gang(self._state, pod)
        if why:
            return f"no move helps {pod.key}: {why}"
        cycle = Cycle(self._columns, self._state.profile(pod.pod_class.scheduler))
        row = cycle.choose(pod, outside)
        if row >= 0:
            return f"{pod.key} fits on node {self._state.node(row).name} as it is"
        failure = cycle.failure(pod, outside)
        potential = [row for row, why in (failure.verdicts or {}).items() if why.resolvable]
        if not potential:
            return f"no move helps {pod.key}: {failure.message}"
        with cycle.sight(pod) as view:
            bounds = sorted(self._bounds(pod, potential))
            best = self._best(view, pod, bounds, _NO_CHAINS)
            best = best or self._best(view, pod, bounds, _Budget(_CHAINS))
        if best is not None:
            return best
        return (
            f"on no node are there at most {MOST_MOVES} pods that may move, fit elsewhere and make"
            f" room for {pod.key}: {failure.message}"
        )

    def _best(
        self, view: View, pod: Pod, bounds: Sequence[_Bound], chains: _Budget
    ) -> RoomPlan | None:
        """The cheapest plan; nodes in the order of the least that they could cost."""
        best: RoomPlan | None = None
        sets = _Budget(_SETS)
        for bound, _, row, lacking, candidates in bounds:
            if best is not None and bound > best.cost:
                break
            below = math.inf if best is None else best.cost
            several = (
                chosen
                for chosen in _subsets(candidates, lacking, below)
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
            candidates = sorted(self._candidates(row, pod.priority), key=_rank)[:CANDIDATES]
            whole = sum((each.amounts[:size] for each in candidates), np.zeros(size, np.int64))
            if not candidates or (whole < lacking).any():
                continue
            fewest = _fewest(candidates, lacking)
            if fewest <= MOST_MOVES:
                bound = sum(each.cost for each in candidates[:fewest])
                yield bound, self._state.node(row).name, row, lacking, candidates

    def _candidates(self, row: int, priority: int) -> Iterator[_Candidate]:
        """The pods of a node that may move but for the limiter (rule 3)."""
        for resident in self._state.residents(row):
            pod = resident.pod
            if belongs(resident) or resident.traits.local_storage or pod.priority > priority:
                continue
            if self._state.held(resident) or gang.leaves_alone(self._state.gangs.of(pod)):
                continue
            amounts = self._columns.vectors(pod.pod_class)[0]
            yield _Candidate(resident, self._costs.of(pod, row), amounts)

    def _allowed(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """Those that may be evicted before long."""
        return [
            each
            for each in candidates
            if not plan_check.denies(self._answer(each.resident), self._state.now)
        ]

    def _answer(self, resident: Resident) -> Answer:
        known = self._answers.get(resident.pod.uid)
        if known is None:
            known = self._limiter.lasting(resident.pod, CAUSE, self._mover, self._state.now)
            self._answers[resident.pod.uid] = known
        return known

    def _moves(
        self, view: View, pod: Pod, row: int, chosen: Sequence[_Candidate], chains: _Budget
    ) -> tuple[PlannedMove, ...] | None:
        """The moves by which these make room; ``None`` where they do not, or have no place."""
        several = [each.resident.pod for each in chosen]
        if not plan_check.fits(self._columns, view, row, several) or self._rehearsed(several):
            return None
        guest = landing.ghost(pod)
        self._columns.place(guest, row)
        try:
            moves = self._landed(chosen, chains, pod.priority)
        finally:
            self._columns.remove(guest)
        if moves is None or len(moves) > MOST_MOVES:
            return None
        return moves if not self._rehearsed([move.pod for move in moves]) else None

    def _rehearsed(self, several: Sequence[Pod]) -> bool:
        """Whether the limiter would keep one of them back for long."""
        return bool(plan_check.rehearse(self._limiter, several, self._state.now, self._mover)[0])

    def _landed(
        self, chosen: Sequence[_Candidate], chains: _Budget, priority: int
    ) -> tuple[PlannedMove, ...] | None:
        """Where each would go, the largest first; ``None`` where one has no place (rule 2)."""
        moves: list[PlannedMove] = []
        try:
            for each in sorted(chosen, key=lambda each: (-int(each.amounts[0]), *_rank(each))):
                target = self._landing.best(each.resident)
                if target < 0:
                    target = self._vacated(each, chains, priority, moves)
                if target < 0:
                    return None
                self._depart(each, target, moves)
            return tuple(moves)
        finally:
            self._landing.take_back(len(moves))

    def _depart(self, candidate: _Candidate, target: int, moves: list[PlannedMove]) -> None:
        """One more move, after those that leave its target."""
        self._landing.depart(candidate.resident, target)
        pod, name = candidate.resident.pod, self._state.node(target).name
        after = tuple(place for place, move in enumerate(moves) if move.origin == name)
        answer = self._answer(candidate.resident)
        waits = answer if isinstance(answer, Deny | Defer) else None
        moves.append(PlannedMove(pod, pod.node, name, candidate.cost, waits, after))

    def _vacated(
        self, lacks: _Candidate, chains: _Budget, priority: int, moves: list[PlannedMove]
    ) -> int:
        """A node that takes a pod once one of its own has moved on; -1: there is none (rule 6)."""
        size = lacks.amounts.size
        several: list[tuple[float, str, int, _Candidate]] = []
        for row in self._state.rows() if chains.left else ():
            spare = self._columns.allocatable[:size, row] - self._columns.requested[:size, row]
            for each in self._candidates(row, priority):
                enough = each.amounts[:size] + spare >= lacks.amounts
                if row != lacks.resident.row and (enough | (lacks.amounts == 0)).all():
                    several.append((*_rank(each), row, each))
        for _, _, row, each in sorted(several, key=lambda entry: entry[:2])[:CANDIDATES]:
            if not chains.take() or not self._allowed([each]):
                continue
            elsewhere = self._landing.best(each.resident)
            if elsewhere in {-1, lacks.resident.row}:
                continue
            self._depart(each, elsewhere, moves)
            if self._landing.fits(lacks.resident, row):
                return row
            self._landing.take_back(1)
            moves.pop()
        return -1

    # For a node.

    def empty_node(self) -> RoomPlan | str:
        """The cheapest plan that leaves a node what belongs to it alone, or why there is none."""
        several = []
        for row in self._state.rows():
            movable = list(self._candidates(row, 2**31))
            staying = sum(bool(belongs(each)) for each in self._state.residents(row))
            complete = len(movable) + staying == len(self._state.residents(row))
            if movable and complete and len(movable) <= _MOST_PODS:
                cost = sum(each.cost for each in movable)
                several.append((cost, self._state.node(row).name, movable))
        bound, tried = 0, sorted(several, key=lambda each: each[:2])[:_TRIED]
        for _, name, movable in tried:
            complete = len(self._allowed(movable)) == len(movable)
            if not complete or self._rehearsed([each.resident.pod for each in movable]):
                bound += 1
                continue
            moves = self._landed(movable, _NO_CHAINS, 0)
            if moves is not None:
                return RoomPlan(name, moves)
        return (
            f"{len(tried)} of {len(several)} nodes whose pods may move were tried: {bound} have a"
            f" pod that may not be evicted now, {len(tried) - bound} one without room elsewhere"
        )


def _rank(candidate: _Candidate) -> tuple[float, str]:
    return candidate.cost, candidate.resident.pod.key


def _fewest(candidates: Sequence[_Candidate], lacking: Ints) -> int:
    """So many pods at least have to go, by the largest of each resource."""
    fewest = 1
    for place in np.flatnonzero(lacking).tolist():
        largest = sorted((int(each.amounts[place]) for each in candidates), reverse=True)
        summed = np.cumsum(largest)
        fewest = max(fewest, 1 + int(np.searchsorted(summed, int(lacking[place]))))
    return fewest


def _subsets(
    candidates: Sequence[_Candidate], lacking: Ints, below: float
) -> Iterator[tuple[_Candidate, ...]]:
    """The sets that free what is lacking and cost less, the cheapest first."""
    lines = np.flatnonzero(lacking)
    # In plain integers: arrays of so few elements cost ten times that.
    frees = [tuple(each.amounts[lines].tolist()) for each in candidates]
    enough: list[tuple[float, tuple[int, ...]]] = []

    def grow(start: int, chosen: tuple[int, ...], cost: float, left: Sequence[int]) -> None:
        if chosen and max(left, default=0) <= 0:
            enough.append((cost, chosen))
            return  # one more would only cost more
        if len(chosen) == MOST_MOVES:
            return
        for place in range(start, len(candidates)):
            if cost + candidates[place].cost >= below:
                return  # those that follow cost as much
            rest = [need - much for need, much in zip(left, frees[place], strict=True)]
            grow(place + 1, (*chosen, place), cost + candidates[place].cost, rest)

    grow(0, (), 0.0, lacking[lines].tolist())
    for _, chosen in sorted(enough):
        yield tuple(candidates[place] for place in chosen)
