"""Plans for gangs that wait: room for all members that are lacking, or for nobody.

Covers: who gets room, in which domain of the topology, one member beside the other. Does not cover:
the moves for each (``make_room``), holding the room (``plan_room``).

Rules:
1. A gang gets room for as many of its pending members as it lacks of its minimum: the pod that is
   asked for, and the first of the others in the order in which the scheduler decides them.
2. All of it is in one domain of the topology where the gang has a key: that of its members on
   nodes, else the one where it costs least, of equal ones the first by name.
3. The largest comes first. Each fits as it is, or by moves of its own (``move_sets.MOST_MOVES``),
   with those before it in place; ``kinds.MOST_MOVES`` in all. Chains are not looked for, and as
   many sets of pods are tried for all members as for one pod alone: a search ends in seconds.
4. What a member's moves free is its own: no other member goes there, and nobody who moves. Several
   members are on one node, or beside those who move, only where they fit as they are.
5. Nothing is made for a gang that is gathered in the network, that waits together with another
   gang, or of which fewer pods are there than it lacks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from koordlet.kubeapi import kinds
from koordlet.scheduler.descheduling import landing
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.answers import Mover
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.framework import Verdict
from koordlet.scheduler.gangs import topology
from koordlet.scheduler.gangs.book import GangEntry
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import plan_check
from koordlet.scheduler.rescheduling.make_room import RoomPlanner
from koordlet.scheduler.rescheduling.room_plan import RoomPlan

#: So many times at most is room looked for one member, in all domains that are tried.
_SEARCHES = 64
_ITS_OWN = Verdict(("node(s) whose room is for another member",), resolvable=False)


def find(state: ClusterState, limiter: Limiter, mover: Mover, pod: Pod) -> RoomPlan | str:
    """The cheapest plan for a pod and what its gang lacks with it, or why there is none."""
    planner, lacking = RoomPlanner(state, limiter, mover), plan_check.lacking(state, pod)
    entry = state.gangs.of(pod)
    gang = None if entry is None else entry.gang
    if entry is None or gang is None or lacking < 2:
        return planner.make_room(pod)
    several = _members(state, entry, pod, lacking)
    if isinstance(several, str):
        return f"no move helps {pod.key}: {several}"
    _, why = plan_check.outside_gang(state, pod, len(several) - 1)
    if why:
        return f"no move helps {pod.key}: {why}"
    search, best, refusal = _GangSearch(state, planner), None, ""
    for domain in _domains(state, entry, gang.topology_key)[: max(1, _SEARCHES // lacking)]:
        made = search.room(several, domain)
        if isinstance(made, str):
            refusal = refusal or made
        elif best is None or made.cost < best.cost:
            best = made
    if best is None:
        return f"no room for {lacking} members of gang {gang.id}: {refusal}"
    return best if best.moves else f"{pod.key} and what its gang lacks fit as they are"


def _members(state: ClusterState, entry: GangEntry, pod: Pod, lacking: int) -> list[Pod] | str:
    """Those that get room (rule 1), the pod first; or why nobody does (rule 5)."""
    others = [entry.children[key] for key in entry.children if key not in entry.bound]
    others = sorted((each for each in others if each.key != pod.key), key=_order)
    if len(others) + 1 < lacking:
        return f"its gang lacks {lacking} members, and {len(others) + 1} of them are there"
    if lacking > kinds.MOST_MOVES:
        return f"its gang lacks {lacking} members, and a plan is for {kinds.MOST_MOVES} at most"
    for other in state.gangs.group(entry).entries:
        if other is not entry and (other.gang is None or len(other.bound) < other.gang.min):
            return f"its gang waits together with gang {other.key}"
    return [pod, *others[: lacking - 1]]


def _order(pod: Pod) -> tuple[int, float, int, str]:
    """As the scheduler decides members."""
    index = None if pod.gang is None else pod.gang.index
    return -pod.priority, float("inf") if index is None else index, pod.position, pod.key


def _domains(state: ClusterState, entry: GangEntry, key: str) -> list[Mapping[int, Verdict]]:
    """The nodes outside of each domain that the gang may have (rule 2)."""
    if not key:
        return [{}]
    bound = [(member, entry.children[member].node) for member in sorted(entry.bound)]
    several = topology.domains(state.columns, key, bound)
    return [topology.outside(state.columns, rows) for rows in several.values()]


class _GangSearch:
    """Looks for room for members one beside the other; the columns are as before afterwards."""

    def __init__(self, state: ClusterState, planner: RoomPlanner) -> None:
        self._state, self._columns, self._planner = state, state.columns, planner
        self._landing = Landing(state)

    def room(self, several: Sequence[Pod], domain: Mapping[int, Verdict]) -> RoomPlan | str:
        """Room for all of these within a domain, or why there is none."""
        plans: dict[str, RoomPlan] = {}
        with contextlib.ExitStack() as stack:
            largest_first = sorted(
                several, key=lambda pod: -pod.pod_class.requests.real.get(requests.CPU, 0)
            )
            for pod in largest_first:
                beside = list(plans.values())
                left = (self._columns.rows[name] for plan in beside for name in plan.origins)
                outside = {**domain, **dict.fromkeys(left, _ITS_OWN)}
                plan = self._planner.room(pod, outside, beside)
                if isinstance(plan, str):
                    return plan
                stack.enter_context(self._made(pod, plan))
                plans[pod.key] = plan
        moves = tuple(move for plan in plans.values() for move in plan.moves)
        if len(moves) > kinds.MOST_MOVES:
            return f"{len(moves)} moves would be needed, and a plan has {kinds.MOST_MOVES} at most"
        first, *others = several
        members = tuple((each, plans[each.key].node) for each in others)
        return RoomPlan(plans[first.key].node, moves, members)

    @contextlib.contextmanager
    def _made(self, pod: Pod, plan: RoomPlan) -> Iterator[None]:
        """The cluster shows a plan, and its pod, as if it were made, while the block runs."""
        rows, guest = self._columns.rows, landing.ghost(pod)
        for move in plan.moves:
            residents = self._state.residents(rows[move.origin])
            leaves = next(each for each in residents if each.pod is move.pod)
            self._landing.depart(leaves, rows[move.target])
        self._columns.place(guest, rows[plan.node])
        try:
            yield
        finally:
            self._columns.remove(guest)
            self._landing.take_back(len(plan.moves))
