"""Whether moves could be made now, in their order: budgets, filters, who may move.

Covers: moves that somebody else has chosen, the limiter's answers in a row. Does not cover:
choosing (``make_room``), carrying out (``plan_flow``).
"""

from __future__ import annotations

from collections.abc import Sequence

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.descheduling import landing
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption.answers import Clock, Deny, Mover
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling.drain import belongs
from koordlet.scheduler.rescheduling.move_plan import PlanMove

CAUSE = "Defragmented"
MOVER = Mover(name="plan", acts=True)
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


def rehearse(limiter: Limiter, several: Sequence[Pod], now: Clock) -> tuple[str, str]:
    """What would keep one of them from going, the ones before it gone: reason and sentence.

    Nothing is debited in the end. Each is taken to be replaced before the next goes.
    """
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


class PlanCheck:
    """Judges moves over one state of a cluster, which is as before afterwards."""

    def __init__(self, state: ClusterState, limiter: Limiter) -> None:
        self._state, self._limiter = state, limiter
        self._columns, self._landing = state.columns, Landing(state)

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
        reason, why = rehearse(self._limiter, [each.pod for each in residents], self._state.now)
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
                if row < 0 or not fits(columns, view, row, leaving):
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
