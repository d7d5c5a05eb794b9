"""Lets plans begin by themselves: for pods that wait, for room ahead, to empty a node.

Covers: creating the object, counting the nodes that have room ahead. Does not cover: when one is
due (``rescheduling.plan_start``), carrying it out (``plan_controller``).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption import headroom
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.headroom import Headroom
from koordlet.scheduler.loop.metrics import Gauges
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import move_plan, plan_check, plan_start, room_ahead
from koordlet.scheduler.rescheduling.move_plan import MovePlan

#: How often it is looked whether a plan should begin by itself.
STARTS = 2.0
#: How often the nodes are counted that have room ahead.
COUNTS = 10.0


class PlanStarter:
    """Begins the plans of one cluster that nobody asks for."""

    def __init__(
        self,
        store: objects.Objects,
        watched: WatchedCluster,
        state: Callable[[], ClusterState],
    ) -> None:
        """``state``: the cluster now, in which moves are looked for."""
        self._store, self._watched, self._state = store, watched, state
        self._start, self._started = plan_start.PlanStart(), 0.0
        #: What is to have room ahead, and on how many nodes it has; when they were counted.
        self._headroom: list[tuple[Headroom, int]] = []
        self._counted = -math.inf

    async def look(self, plans: list[MovePlan], now: Clock) -> None:
        """Let a plan begin by itself where one is due and there are moves for it."""
        if now.steady - self._started < STARTS:
            return
        self._started = now.steady
        try:
            await self._begin_due(plans, now)
        except Exception as error:  # noqa: BLE001 -- it costs this turn: one is due after as long
            self._watched.core.measures.asked("move_plan", refusals.code(error))
            log.get().warning("move_plan.not_begun", detail=f"{error!r}"[:300])

    async def _begin_due(self, plans: list[MovePlan], now: Clock) -> None:
        limiter, pods = self._watched.disruptions.limiter, self._watched.sources.informers
        wanted = limiter.settings.plans
        self._count(limiter.settings.headroom, now)
        if not (wanted.make_room_after or wanted.consolidate_every or self._headroom):
            return
        lacking = [each.amounts for each, has in self._headroom if has < each.nodes]
        due = self._start.due(pods[kinds.PODS].snapshot.values(), plans, wanted, now, lacking)
        if due is None:
            return
        pod, what, why = due.pod, "empty-node", "to need fewer nodes"
        if pod is not None:
            what, why = f"room-{pod.uid[:8]}", "no node has room for it"
        elif due.room:
            what, why = "headroom", "too few nodes have room for a pod of this size"
        made = room_ahead.find(self._state(), limiter, plan_check.STARTED, pod, due.room)
        if isinstance(made, str):
            log.get().info("move_plan.none", pod="" if pod is None else pod.key, detail=made)
            return
        body = move_plan.request(
            f"{what}-{int(now.wall)}",
            pod=None if pod is None else PodRef.of(pod),
            room=due.room,
            acts=wanted.acts,
            reason=why,
            starter=move_plan.STARTER,
        )
        for plan in plans if pod is None else ():
            same = plan.pod is None and plan.room == due.room
            shown = plan.starter == move_plan.STARTER and same and not plan.acts
            if shown and not plan.status.phase.over:  # the new one takes its place
                await self._store.delete(objects.Ref(kinds.MOVE_PLANS, plan.name), uid=plan.uid)
        with contextlib.suppress(refusals.AlreadyExists):  # before a restart, or a moment ago
            await self._store.create(kinds.MOVE_PLANS, body)

    def _count(self, several: Sequence[Headroom], now: Clock) -> None:
        """Count the nodes that have room ahead, now and then, and as soon as it is configured."""
        known = [each for each, _ in self._headroom]
        if known == [*several] and now.steady - self._counted < COUNTS:
            return
        state, self._counted = self._state() if several else None, now.steady
        self._headroom = [
            (each, len(room_ahead.rows(state, each.amounts)))
            for each in several
            if state is not None
        ]

    def gauges(self) -> Gauges:
        """The number of nodes with room ahead."""
        gauges: Gauges = {}
        for each, has in self._headroom:
            size = (("size", headroom.spelled(each.amounts)),)
            gauges["koordlet_headroom_nodes", size] = has
            gauges["koordlet_headroom_wanted_nodes", size] = each.nodes
        return gauges
