"""Whether moves could be made now, in their order: budgets, filters, who may move; their worth.

Covers: moves that somebody else has chosen, the limiter's answers in a row, the cost of a move.
Does not cover: choosing (``make_room``), carrying out (``plan_flow``).

Two pods cannot change places where neither fits beside the other, however their room is held: when
the first has left, its room is still the other's, and where the plan stops then, its replacement
has no place. A third node with room for one of them makes it a plan of two moves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from koordlet.model import resources
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.descheduling import landing
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Answer, Clock, Deny, Mover
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.disruption.move_costs import MoveCosts
from koordlet.scheduler.framework import Verdict
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.gangs import topology
from koordlet.scheduler.objects.disruption import Protection
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import move_unit
from koordlet.scheduler.rescheduling.drain import belongs
from koordlet.scheduler.rescheduling.move_plan import STARTER, PlanMove
from koordlet.scheduler.rescheduling.move_unit import MoveUnit
from koordlet.scheduler.rescheduling.plan_status import PlanWorth

CAUSE = "Defragmented"
#: Who moves the pods of a plan: what a person wants, or what began by itself.
MOVER, STARTED = Mover(name="plan", acts=True), Mover(name=STARTER, acts=True)
#: Seconds for which a plan may wait for the budgets of a move.
PATIENCE = 600.0


def fits(columns: Columns, view: View, row: int, leaving: Sequence[Pod]) -> bool:
    """Whether the pod of a view fits on a node without those."""
    for pod in leaving:
        columns.remove(pod)
    passes = view.passes(row)
    for pod in leaving:
        columns.place(pod, row)
    return passes


@contextlib.contextmanager
def room_kept(columns: Columns, kept: Mapping[int, Pod]) -> Iterator[None]:
    """Those who keep the room of nodes are there while the block runs; ``kept``: by row."""
    for row, keeper in kept.items():
        columns.place(keeper, row)
    try:
        yield
    finally:
        for keeper in kept.values():
            columns.remove(keeper)


def denies(answer: Answer, now: Clock) -> bool:
    """Whether an answer keeps a pod from going for longer than a plan may wait."""
    return isinstance(answer, Deny) and answer.lasts - now.wall > PATIENCE


def asker(mover: Mover, place: int) -> Mover:
    """Whose question it is, of pods that leave together: all that bounds moves is for the first."""
    return dataclasses.replace(mover, follows=True) if place else mover


def rehearse(
    limiter: Limiter, units: Iterable[Sequence[Pod]], now: Clock, mover: Mover = MOVER
) -> tuple[str, str]:
    """What would keep one of them from going, the ones before it gone: reason and sentence.

    Nothing is debited in the end. Those that leave together must be let go at once; they are taken
    to be replaced before the next go.
    """
    asked: list[Pod] = []
    try:
        for leaving in units:
            for place, pod in enumerate(leaving):
                answer = limiter.lasting(pod, CAUSE, asker(mover, place), now)
                if isinstance(answer, Deny) and (place or denies(answer, now)):
                    return answer.reason, answer.message
                limiter.begin(pod, CAUSE, mover, now)
                asked.append(pod)
            if len(leaving) > 1 and (why := _breaks_budget(limiter, leaving, now)):
                return "PDB", why
            for pod in leaving:
                limiter.pace.gone(pod.uid, now.steady, replaced=True)
        return "", ""
    finally:
        for pod in reversed(asked):
            limiter.refused(pod)


def _breaks_budget(limiter: Limiter, leaving: Sequence[Pod], now: Clock) -> str:
    """Why pods may not be down at once; empty: their PodDisruptionBudgets let them."""
    up = [pod for pod in leaving if pod.up]  # of one that is not, the server knows better
    broken, _ = Protection(tuple(limiter.budgets.at(now.steady))).split(up)
    if not broken:
        return ""
    return (
        f"a PodDisruptionBudget in {broken[0].namespace} does not let {len(leaving)} pods of its"
        f" gang go at once: {broken[0].key} would be one too many"
    )


def lacking(state: ClusterState, pod: Pod) -> int:
    """How many members the gang of a pod lacks of its minimum; 0: none, or it has no gang."""
    entry = state.gangs.of(pod)
    gang = None if entry is None else entry.gang
    return 0 if entry is None or gang is None else max(0, gang.min - len(entry.bound))


def outside_gang(
    state: ClusterState, pod: Pod, others: int = 0
) -> tuple[Mapping[int, Verdict], str]:
    """The nodes where a place would not help a pod, as its gang is not there; why none helps.

    ``others``: so many more members get room with it.
    """
    entry = state.gangs.of(pod)
    known = None if entry is None else entry.gang
    if entry is None or known is None:
        return {}, ""
    if (lacks := lacking(state, pod)) > 1 + others:
        return {}, f"its gang {known.id} lacks {lacks} members"
    if known.gathers and any(layer.must for layer in known.gather):
        return {}, f"its gang {known.id} is gathered in the network, where its members are"
    try:
        rows = move_unit.domain(state, entry)
    except ValueError as error:
        return {}, str(error)
    return ({} if rows is None else topology.outside(state.columns, rows)), ""


class PlanCheck:
    """Judges moves over one state of a cluster, which is as before afterwards."""

    def __init__(
        self,
        state: ClusterState,
        limiter: Limiter,
        mover: Mover = MOVER,
        kept: Mapping[int, Pod] | None = None,
    ) -> None:
        """``kept``: who keeps the room of nodes ahead, by row."""
        self._state, self._limiter, self._mover = state, limiter, mover
        self._columns, self._landing = state.columns, Landing(state)
        self._kept = kept or {}

    def objection(
        self,
        pod: Pod | None,
        node: str,
        moves: Sequence[PlanMove],
        members: Sequence[tuple[Pod, str]] = (),
    ) -> tuple[str, str]:
        """Why moves cannot be made now, in their order: reason and sentence; empty: they can.

        ``members``: the others of the pod's gang that are to fit, each with its node.
        """
        columns, residents = self._columns, {}
        guests = [] if pod is None else [(pod, node), *members]
        if pod is not None and (why := self._away(guests)):
            return "GangStays", f"no move helps {pod.key}: {why}"
        for move in moves:
            row = columns.rows.get(move.origin, -1)
            there = [] if row < 0 else self._state.residents(row)
            resident = next((each for each in there if each.pod.key == str(move.pod)), None)
            if resident is None or move.target not in columns.rows:
                what = f"pod {move.pod}" if resident is None else f"node {move.target}"
                return "WorldChanged", f"{what} is not there, or not known yet"
            if why := belongs(resident):
                return "Protected", f"pod {move.pod} belongs to its node: {why}"
            residents[resident.pod.key] = resident
        several: list[tuple[MoveUnit, Sequence[PlanMove]]] = []
        for places in move_unit.places(move.gang for move in moves):
            together = [moves[place] for place in places]
            there = [residents[str(move.pod)] for move in together]
            leaving = move_unit.unit(self._state, there[0])
            why = leaving if isinstance(leaving, str) else self._splits(leaving, together)
            if isinstance(leaving, str) or why:
                return "GangStays", f"pod {together[0].pod}: {why}"
            several.append((dataclasses.replace(leaving, residents=tuple(there)), together))
        units = [leaving.pods for leaving, _ in several]
        reason, why = rehearse(self._limiter, units, self._state.now, self._mover)
        if reason:
            return reason, why
        with room_kept(self._columns, self._kept):
            return self._no_place(guests, several)

    def _away(self, places: Sequence[tuple[Pod, str]]) -> str:
        """Why places do not help the gang of their pods; empty: they do, or they have none."""
        (pod, _), *others = places
        outside, why = outside_gang(self._state, pod, len(others))
        if why:
            return why
        entry, rows = self._state.gangs.of(pod), self._columns.rows
        for other, _ in others:
            if entry is None or self._state.gangs.of(other) is not entry:
                return f"{other.key} is not of its gang"
        for _, node in places:
            if rows.get(node, -1) in outside:
                return f"node {node} is outside of the topology domain of its gang"
        key = "" if entry is None or entry.gang is None else entry.gang.topology_key
        nodes = (self._state.node(rows[node]) for _, node in places if node in rows)
        values = sorted({node.labels.get(key, "") for node in nodes}) if key else []
        return f"{key} would be {' and '.join(values)}" if len(values) > 1 else ""

    def _splits(self, leaving: MoveUnit, together: Sequence[PlanMove]) -> str:
        """What moves would do to a gang; empty: it stays whole, and in its domain."""
        wanted, pods = together[0].gang, [pod.key for pod in leaving.pods]
        if leaving.gang and (wanted, pods) != (leaving.gang, sorted(str(m.pod) for m in together)):
            return (
                f"gang {leaving.gang} moves whole: moves with gang {leaving.gang} are needed for"
                f" all its members on nodes, {', '.join(pods)}"
            )
        if wanted != leaving.gang:
            return f"it moves alone, and not with gang {wanted}"
        inside, rows = leaving.rows, self._columns.rows
        away = [m.target for m in together if inside is not None and rows[m.target] not in inside]
        return f"node {away[0]} is outside of the topology domain of its gang" if away else ""

    def worth(self, node: str, moves: Sequence[PlanMove]) -> PlanWorth:
        """What moves gain and cost; those whose pod is not there count for nothing."""
        columns, costs = self._columns, MoveCosts(self._state.columns, self._limiter.workloads)
        asked: dict[str, int] = {}
        freed: dict[str, int] = {}
        disruption = 0.0
        for move in moves:
            row = columns.rows.get(move.origin, -1)
            pod = None if row < 0 else columns.pods[row].get(str(move.pod))
            if pod is None:
                continue
            amounts = pod.pod_class.requests.real
            asked = resources.total((asked, amounts))
            disruption += costs.of(pod, row)
            if move.origin == node:
                freed = resources.total((freed, amounts))
        spelled = resources.canonical({name: asked.get(name, 0) for name in ("cpu", "memory")})
        return PlanWorth(
            improvement=f"{self._share(node, freed):.2f}",
            pods=len(moves),
            cpu=spelled["cpu"],
            memory=spelled["memory"],
            disruption=f"{disruption:.3f}",
        )

    def _share(self, node: str, amounts: Mapping[str, int]) -> float:
        """The part of a node that amounts are, of the resource of which it is most."""
        columns, row = self._columns, self._columns.rows.get(node, -1)
        if row < 0:
            return 0.0
        wholes = {
            name: int(columns.allocatable[columns.resources[name], row])
            for name in amounts
            if name in columns.resources
        }
        return max((amounts[name] / whole for name, whole in wholes.items() if whole), default=0.0)

    def _no_place(
        self,
        places: Sequence[tuple[Pod, str]],
        several: Sequence[tuple[MoveUnit, Sequence[PlanMove]]],
    ) -> tuple[str, str]:
        """Whose replacement has no room where it is to be held, or who is to fit and does not."""
        columns, guests = self._columns, []
        try:
            for number, (pod, node) in enumerate(places):
                taken = any(node == other for _, other in places[:number])
                leaving = [] if taken else self._leaving(node, several)
                row = columns.rows.get(node, -1)
                cycle = Cycle(columns, self._state.profile(pod.pod_class.scheduler))
                with cycle.sight(pod) as view:
                    if row < 0 or not fits(columns, view, row, leaving):
                        return "NoRoom", f"{pod.key} would not fit on node {node} without them"
                guests.append(landing.ghost(pod))
                columns.place(guests[-1], row)
            return self._no_target(several)
        finally:
            for guest in guests:
                columns.remove(guest)

    def _leaving(
        self, node: str, several: Sequence[tuple[MoveUnit, Sequence[PlanMove]]]
    ) -> list[Pod]:
        """Those that leave a node, and who keeps its room."""
        row = self._columns.rows.get(node, -1)
        leaving = [pod for unit, _ in several for pod in unit.pods if pod.node == node]
        return leaving + ([self._kept[row]] if row in self._kept else [])

    def _no_target(self, several: Sequence[tuple[MoveUnit, Sequence[PlanMove]]]) -> tuple[str, str]:
        """Whose replacement has no room where it is to be held."""
        departed = 0
        try:
            for unit, together in several:
                targets = {str(move.pod): self._columns.rows[move.target] for move in together}
                landed = move_unit.depart(self._landing, unit, functools.partial(self._at, targets))
                if len(landed) < len(together):
                    moves = [move for _, others in several for move in others]
                    return _refusal(together[len(landed)], moves)
                departed += len(landed)
            return "", ""
        finally:
            self._landing.take_back(departed)

    def _at(self, targets: Mapping[str, int], resident: Resident) -> int:
        """The row where a pod is to go; -1: it does not take it."""
        target = targets[resident.pod.key]
        return target if self._landing.fits(resident, target) else -1


def _refusal(move: PlanMove, moves: Sequence[PlanMove]) -> tuple[str, str]:
    """Why a node does not take a pod: it would have to change places, or there is no room."""
    there = (move.target, move.origin)
    other = next((each for each in moves if (each.origin, each.target) == there), None)
    if other is None:
        return "NoRoom", f"node {move.target} does not take {move.pod}"
    return "SwapNeedsRoom", (
        f"{move.pod} and {other.pod} would change places, and neither fits beside the other: when"
        " one has left, the other still has its room; move one of them by a third node"
    )
