"""Which plan begins by itself: room for a pod that has waited, or ahead, a node to empty. Pure.

Covers: when one is due. Does not cover: finding its moves (``make_room``), writing it
(``loop.plan_controller``), the configuration (``disruption.settings``).

Rules:
1. A pod is made room for that its scheduler has refused for ``plans.makeRoomAfter``, as seen here;
   a restart begins to count anew. The one that has waited longest comes first.
2. While no pod waits, room is made ahead for the first size of ``headroom`` that too few nodes have
   room for, and tried again after ``AGAIN`` seconds, whatever came of it; then a node is emptied
   each ``plans.consolidateEvery``.
3. While a plan of its own moves pods, no other begins. A pod that had a plan waits as long again
   for another, whatever came of it, and so does its gang, which has one at a time; one in shadow
   stands until its pod has a node, or, without a pod, until the next one for the same takes its
   place.
4. Such a plan only shows (``plans.mode``), and its evictions are those of ``STARTER``: background,
   with the parts of budgets and the rates that bound a background mover.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from koordlet.model.record import dataclass
from koordlet.scheduler.disruption import headroom
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.settings import PlanSettings
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling.move_plan import STARTER, MovePlan

REFUSED = "Unschedulable"
#: Seconds between two plans that would make room ahead for one size.
AGAIN = 600.0


@dataclass(frozen=True, slots=True)
class DuePlan:
    """A plan that is to begin: room for a pod, or ahead; with neither a node is to be emptied."""

    pod: Pod | None = None
    room: Mapping[str, int] = field(default_factory=dict)


class PlanStart:
    """Remembers since when pods wait, and when a node was last to be emptied."""

    def __init__(self) -> None:
        #: By UID, monotonic.
        self._since: dict[str, float] = {}
        self._tried: dict[str, float] = {}
        self._emptied: float | None = None
        #: By size.
        self._made: dict[str, float] = {}

    def due(
        self,
        pods: Iterable[Pod],
        plans: Sequence[MovePlan],
        wanted: PlanSettings,
        now: Clock,
        lacking: Iterable[Mapping[str, int]] = (),
    ) -> DuePlan | None:
        """The plan that is to begin now; ``lacking``: sizes that too few nodes have room for."""
        refused = {
            pod.uid: pod for pod in pods if not pod.node and pod.stored_condition[0] == REFUSED
        }
        self._since = {uid: self._since.get(uid, now.steady) for uid in refused}
        self._tried = {uid: at for uid, at in self._tried.items() if uid in refused}
        if self._emptied is None:
            self._emptied = now.steady
        own = [plan for plan in plans if plan.starter == STARTER and not plan.status.phase.over]
        if any(plan.acts for plan in own):
            return None
        pod = self._longest(refused, plans, wanted.make_room_after, now)
        if pod is not None:
            alike = (uid for uid, each in refused.items() if _whose(each) == _whose(pod))
            self._tried |= dict.fromkeys(alike, now.steady)
            return DuePlan(pod)
        if refused:
            return None
        for room in lacking:
            size = headroom.spelled(room)
            if now.steady - self._made.get(size, -math.inf) >= AGAIN:
                self._made[size] = now.steady
                return DuePlan(room=room)
        every = wanted.consolidate_every
        if not every or now.steady - self._emptied < every:
            return None
        self._emptied = now.steady
        return DuePlan()

    def _longest(
        self, refused: dict[str, Pod], plans: Sequence[MovePlan], after: float, now: Clock
    ) -> Pod | None:
        standing = {plan.pod.uid for plan in plans if plan.pod and not plan.status.phase.over}
        planned = {_whose(refused[uid]) for uid in standing if uid in refused}
        several = [
            (since, refused[uid].key, refused[uid])
            for uid, since in self._since.items()
            if _whose(refused[uid]) not in planned
            and now.steady - since >= after
            and now.steady - self._tried.get(uid, -after) >= after
        ]
        return min(several, key=lambda each: each[:2])[2] if after and several else None


def _whose(pod: Pod) -> str:
    """The gang that has one plan at a time, or the pod itself."""
    return pod.uid if pod.gang is None else pod.gang.key
