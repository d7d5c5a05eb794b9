"""Plans of several moves: making room for a pod that fits nowhere, emptying a node.

Covers: which pods move and where to, the cost, why each step is safe. Does not cover: carrying a
plan out, which holds room on each target before anybody is evicted (``scheduler.migration``).

Rules:
1. A node is worth trying where the pod would fit without its movable pods. The cheapest set of them
   moves: at most ``MOST_MOVES`` of the ``CANDIDATES`` cheapest, found by branch and bound.
2. All of them must fit elsewhere, by the filters of their own scheduler, each with those before it
   in place. Nobody goes to the node that is to have room. So each target holds its replacements
   while everything else is where it was: a plan that stops anywhere leaves nothing worse.
3. Nobody moves who is more important than the pod that waits, belongs to its node, would lose data,
   or may not be evicted now for a reason that waiting for others does not end. Nor do several of
   whom one, once the others have gone, would have to wait longer than ``PATIENCE``.
4. The cost of a move: 1, and its priority in thousands of millions, and one share of the replicas,
   and its share of the node's CPU. The least sum wins; of equal ones the first name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.vectors import Ints
from koordlet.scheduler.descheduling import landing
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Allow, Answer, Defer, Deny, Mover
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.disruption.workloads import Signature
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.rescheduling.drain import belongs
from koordlet.scheduler.rescheduling.move_plan import PlanMove

CAUSE = "Defragmented"
MOVER = Mover(name="plan", acts=True)
MOST_MOVES, CANDIDATES = 5, 12
#: Seconds for which a plan may wait for the budgets of a move.
PATIENCE = 600.0
#: Nodes that are tried for being emptied, and pods that one may have.
_TRIED, _MOST_PODS = 64, 32
_PRIORITY = 1e9


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A pod, the node that it leaves, and the one where room for it is held."""

    pod: Pod
    origin: str
    target: str
    cost: float
    #: What the limiter says now: ``None``: it may go.
    waits_for: Defer | None


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


class RoomPlanner:
    """Looks for plans over one state of a cluster, which is as before afterwards."""

    def __init__(self, state: ClusterState, limiter: Limiter) -> None:
        self._state, self._limiter = state, limiter
        self._columns, self._landing = state.columns, Landing(state)
        #: What the limiter says, by UID, and the pods that each workload wants.
        self._answers: dict[str, Answer] = {}
        self._expected: dict[Signature, int] = {}

    # For a pod.

    def make_room(self, pod: Pod) -> RoomPlan | str:
        """The cheapest plan for a pod that waits, or why there is none."""
        cycle = Cycle(self._columns, self._state.profile(pod.pod_class.scheduler))
        row = cycle.choose(pod)
        if row >= 0:
            return f"{pod.key} fits on node {self._state.node(row).name} as it is"
        failure = cycle.failure(pod)
        potential = [row for row, why in (failure.verdicts or {}).items() if why.resolvable]
        if not potential:
            return f"no move helps {pod.key}: {failure.message}"
        best: RoomPlan | None = None
        with cycle.sight(pod) as view:
            bounds = sorted(self._bounds(pod, potential))
            for bound, _, row, lacking, candidates in bounds:
                if best is not None and bound > best.cost:
                    break
                for chosen in _subsets(self._allowed(candidates), lacking):
                    if best is not None and sum(each.cost for each in chosen) >= best.cost:
                        break
                    moves = self._moves(view, pod, row, chosen)
                    if moves is not None:
                        best = RoomPlan(self._state.node(row).name, moves)
                        break
        if best is not None:
            return best
        return (
            f"on no node are there at most {MOST_MOVES} pods that may move, fit elsewhere and make"
            f" room for {pod.key}: {failure.message}"
        )

    def _bounds(
        self, pod: Pod, potential: Sequence[int]
    ) -> Iterator[tuple[float, str, int, Ints, list[_Candidate]]]:
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
        whole = max(1, int(self._columns.allocatable[0, row]))
        for resident in self._state.residents(row):
            pod = resident.pod
            if belongs(resident) or resident.traits.local_storage or pod.priority > priority:
                continue
            amounts = self._columns.vectors(pod.pod_class)[0]
            share = int(amounts[0]) / whole
            replicas = self._replicas(pod.pod_class)
            cost = 1 + max(0, pod.priority) / _PRIORITY + 1 / replicas + share
            yield _Candidate(resident, cost, amounts)

    def _replicas(self, pod_class: PodClass) -> int:
        signature = self._limiter.workloads.signature(pod_class)
        if signature is None:
            return 1
        known = self._expected.get(signature)
        if known is None:
            members = self._limiter.workloads.members(signature)
            known = self._expected[signature] = self._limiter.workloads.expected(members)
        return max(1, known)

    def _allowed(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """Those that may be evicted now, or once others have done something."""
        return [
            each for each in candidates if isinstance(self._answer(each.resident), Allow | Defer)
        ]

    def _answer(self, resident: Resident) -> Answer:
        known = self._answers.get(resident.pod.uid)
        if known is None:
            known = self._limiter.may_evict(resident.pod, CAUSE, MOVER, self._state.now)
            self._answers[resident.pod.uid] = known
        return known

    def _moves(
        self, view: View, pod: Pod, row: int, chosen: Sequence[_Candidate]
    ) -> tuple[PlannedMove, ...] | None:
        """The moves by which these make room; ``None`` where they do not, or have no place."""
        several = [each.resident.pod for each in chosen]
        if not self._fits(view, row, several) or self._rehearse(several)[0]:
            return None
        guest = landing.ghost(pod)
        self._columns.place(guest, row)
        try:
            return self._landed(chosen)
        finally:
            self._columns.remove(guest)

    def _fits(self, view: View, row: int, leaving: Sequence[Pod]) -> bool:
        """Whether the pod of a view fits on a node without those."""
        for pod in leaving:
            self._columns.remove(pod)
        fits = view.passes(row)
        for pod in leaving:
            self._columns.place(pod, row)
        return fits

    def _rehearse(self, several: Sequence[Pod]) -> tuple[str, str]:
        """What would keep the last of them from going, the others gone: reason and sentence.

        Nothing is debited in the end. Each is taken to be replaced before the next goes.
        """
        limiter, now = self._limiter, self._state.now
        asked: list[Pod] = []
        try:
            for pod in several:
                answer = limiter.may_evict(pod, CAUSE, MOVER, now)
                if isinstance(answer, Deny) and not (
                    answer.until is not None and answer.until - now.wall <= PATIENCE
                ):
                    return answer.reason, answer.message
                limiter.begin(pod, CAUSE, MOVER, now)
                asked.append(pod)
                limiter.pace.gone(pod.uid, now.steady)
            return "", ""
        finally:
            for pod in reversed(asked):
                limiter.refused(pod)

    def _landed(self, chosen: Sequence[_Candidate]) -> tuple[PlannedMove, ...] | None:
        """Where each would go, the largest first; ``None`` where one has no place (rule 2)."""
        moves: list[PlannedMove] = []
        try:
            for each in sorted(chosen, key=lambda each: (-int(each.amounts[0]), *_rank(each))):
                target = self._landing.best(each.resident)
                if target < 0:
                    return None
                self._landing.depart(each.resident, target)
                pod, name = each.resident.pod, self._state.node(target).name
                answer = self._answer(each.resident)
                waits = answer if isinstance(answer, Defer) else None
                moves.append(PlannedMove(pod, pod.node, name, each.cost, waits))
            return tuple(moves)
        finally:
            self._landing.take_back(len(moves))

    # Of somebody else.

    def objection(self, pod: Pod | None, node: str, moves: Sequence[PlanMove]) -> tuple[str, str]:
        """Why moves cannot be made now, in their order: reason and sentence; empty: they can."""
        columns, residents = self._columns, []
        for move in moves:
            row = columns.rows.get(move.origin, -1)
            there = [] if row < 0 else self._state.residents(row)
            resident = next((each for each in there if each.pod.key == str(move.pod)), None)
            if resident is None or move.target not in columns.rows:
                what = f"pod {move.pod}" if resident is None else f"node {move.target}"
                return "WorldChanged", f"{what} is not there, or not known yet"
            if why := belongs(resident):
                return "Protected", f"pod {move.pod} belongs to its node: {why}"
            residents.append(resident)
        reason, why = self._rehearse([each.pod for each in residents])
        if reason:
            return reason, why
        return self._no_place(pod, node, list(zip(residents, moves, strict=True)))

    def _no_place(
        self, pod: Pod | None, node: str, several: Sequence[tuple[Resident, PlanMove]]
    ) -> tuple[str, str]:
        """Whose replacement has no room where it is to be held, or the pod itself."""
        columns, guest = self._columns, None
        if pod is not None:
            row = columns.rows.get(node, -1)
            leaving = [each.pod for each, move in several if move.origin == node]
            cycle = Cycle(columns, self._state.profile(pod.pod_class.scheduler))
            with cycle.sight(pod) as view:
                if row < 0 or not self._fits(view, row, leaving):
                    return "NoRoom", f"{pod.key} would not fit on node {node} without them"
            guest = landing.ghost(pod)
            columns.place(guest, row)
        departed = 0
        try:
            for resident, move in several:
                if not self._landing.fits(resident, columns.rows[move.target]):
                    return "NoRoom", f"node {move.target} does not take {move.pod}"
                self._landing.depart(resident, columns.rows[move.target])
                departed += 1
            return "", ""
        finally:
            self._landing.take_back(departed)
            if guest is not None:
                columns.remove(guest)

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
        for _, name, movable in sorted(several, key=lambda each: each[:2])[:_TRIED]:
            complete = len(self._allowed(movable)) == len(movable)
            if complete and self._rehearse([each.resident.pod for each in movable])[0]:
                continue
            moves = self._landed(movable) if complete else None
            if moves is not None:
                return RoomPlan(name, moves)
        return (
            f"of {len(several)} nodes whose pods may move, none has room for all of them elsewhere"
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


def _subsets(candidates: Sequence[_Candidate], lacking: Ints) -> Iterator[tuple[_Candidate, ...]]:
    """The sets that free what is lacking, the cheapest first."""
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
            rest = [need - much for need, much in zip(left, frees[place], strict=True)]
            grow(place + 1, (*chosen, place), cost + candidates[place].cost, rest)

    grow(0, (), 0.0, lacking[lines].tolist())
    for _, chosen in sorted(enough):
        yield tuple(candidates[place] for place in chosen)
