"""Which plan begins by itself: room for a pod that has waited long, or a node to empty. Pure.

Covers: when one is due. Does not cover: finding its moves (``make_room``), writing it
(``loop.plan_controller``), the configuration (``disruption.settings``).

Rules:
1. A pod is made room for that its scheduler has refused for ``plans.makeRoomAfter``, as seen here;
   a restart begins to count anew. The one that has waited longest comes first.
2. A node is emptied each ``plans.consolidateEvery``, while no pod waits.
3. While a plan of its own moves pods, no other begins. A pod that had a plan waits as long again
   for another, whatever came of it; one in shadow stands until its pod has a node, or until the
   next one that would empty a node takes its place.
4. Such a plan only shows (``plans.mode``), and its evictions are those of ``STARTER``: background,
   with the parts of budgets and the rates that bound a background mover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from koordlet.model.record import dataclass
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.settings import PlanSettings
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling.move_plan import STARTER, MovePlan

REFUSED = "Unschedulable"


@dataclass(frozen=True, slots=True)
class DuePlan:
    """A plan that is to begin; ``pod`` is ``None`` where a node is to be emptied."""

    pod: Pod | None


class PlanStart:
    """Remembers since when pods wait, and when a node was last to be emptied."""

    def __init__(self) -> None:
        #: By UID, monotonic.
        self._since: dict[str, float] = {}
        self._tried: dict[str, float] = {}
        self._emptied: float | None = None

    def due(
        self, pods: Iterable[Pod], plans: Sequence[MovePlan], wanted: PlanSettings, now: Clock
    ) -> DuePlan | None:
        """The plan that is to begin now."""
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
            self._tried[pod.uid] = now.steady
            return DuePlan(pod)
        every = wanted.consolidate_every
        if not every or refused or now.steady - self._emptied < every:
            return None
        self._emptied = now.steady
        return DuePlan(None)

    def _longest(
        self, refused: dict[str, Pod], plans: Sequence[MovePlan], after: float, now: Clock
    ) -> Pod | None:
        planned = {
            plan.pod.uid for plan in plans if plan.pod is not None and not plan.status.phase.over
        }
        several = [
            (since, refused[uid].key, refused[uid])
            for uid, since in self._since.items()
            if uid not in planned
            and now.steady - since >= after
            and now.steady - self._tried.get(uid, -after) >= after
        ]
        return min(several, key=lambda each: each[:2])[2] if after and several else None
