"""Reconciles nodes, taints, budgets and claims of a standalone scheduler each second.

Covers: reading nodes, pods and budgets, writing what differs. Does not cover: what should be
written (``registration``, ``taints``, ``budgets``: pure), claims (``claim_controller``).

Rules:
1. Everything is derived anew from what the store has; nothing is remembered but which nodes report.
   Restarts and lost answers repair themselves. After a start, agents have a minute to dial.
2. What is as it should be is not written. Amounts offered to best-effort work change all the time,
   and are written every ``_OFFERS`` seconds at most.
3. A node that has never reported is its owner's: only its taints follow its conditions.
4. No kubelet says that a pod has ended: one that is deleted is gone when its grace period is over.
5. One object that cannot be read or written costs itself; the next second tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from koordlet import log
from koordlet.kubeapi import disruption_target, informer, kinds, objects, refusals
from koordlet.model import moment, nodereport
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.standalone import budgets, claim_controller, registration, taints

_BEAT = 1.0
_OFFERS = 10.0
#: Seconds after a start in which agents may not have dialled yet.
_GRACE = 60.0
_WHY = "Taint manager: deleting due to NoExecute taint"


class Controllers:
    """The controllers of a standalone scheduler's store."""

    def __init__(
        self,
        store: objects.Objects,
        reporting: Callable[[], Mapping[str, nodereport.NodeReport]],
        wall: Callable[[], float],
    ) -> None:
        self._store, self._reporting, self._wall = store, reporting, wall
        self._nodes = informer.Informer(store, kinds.NODES, dict)
        self._pods = informer.Informer(store, kinds.PODS, dict)
        self._budgets = informer.Informer(store, kinds.POD_DISRUPTION_BUDGETS, dict)
        self._claims = claim_controller.ClaimController(store, self._guarded, wall)
        #: Nodes that reported to this process, and when their offers were written.
        self._known: set[str] = set()
        self._since = wall()
        self._offered: dict[str, float] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for source in (self._nodes, self._pods, self._budgets, *self._claims.sources()):
                group.create_task(source.run())
                await source.synced()
            while True:
                await self.once()
                await asyncio.sleep(_BEAT)

    async def once(self) -> None:
        """Reconcile all objects once."""
        reports = self._reporting()
        self._known |= reports.keys()
        if not 0 <= self._wall() - self._since < _GRACE:
            self._known |= {
                name
                for (_, name), node in self._nodes.snapshot.items()
                if wire.mapping(objects.metadata(node), "annotations").get(registration.MARK)
            }
        for name in self._known:
            await self._guarded(name, self._enrolled(name, reports.get(name)))
        for (_, name), node in self._nodes.snapshot.items():
            await self._guarded(name, self._tainted(name, node))
        pods = list(self._pods.snapshot.values())
        for pod in pods:
            await self._guarded(objects.text(pod, "name"), self._judged(pod))
        for (_, name), budget in self._budgets.snapshot.items():
            await self._guarded(name, self._counted(budget, pods))
        await self._claims.once(pods)

    async def _guarded(self, name: str, doing: Any) -> None:
        """Run a step; what fails costs only itself (rule 5)."""
        try:
            await doing
        except refusals.Conflict:
            return  # somebody wrote it meanwhile: the next second sees what
        except (refusals.ObjectsError, BadObjectError) as error:
            log.get().warning("scheduler.steward_failed", culprit=name, detail=str(error))

    async def _enrolled(self, name: str, report: nodereport.NodeReport | None) -> None:
        """Write a Node from its agent's report."""
        room = registration.allocatable(report) if report is not None else None
        node: objects.Object | None = self._nodes.get(name)
        if node is None:
            if room is None:
                return
            node = await self._store.create(kinds.NODES, {"metadata": registration.metadata(name)})
        status = wire.mapping(node, "status")
        several = wire.bodies(status, "conditions")
        before = {wire.text(condition, "type"): condition for condition in several}
        made = registration.conditions(report, before, moment.spell(self._wall()))
        names = {condition["type"] for condition in made}
        rest = [dict(condition) for condition in several if condition.get("type") not in names]
        wish: dict[str, Any] = {}
        if [*rest, *made] != [dict(condition) for condition in several]:
            wish["conditions"] = [*rest, *made]
        mine = wire.mapping(objects.metadata(node), "annotations").get(registration.MARK) == "true"
        if mine and room is not None and room != status.get("allocatable"):
            wish |= self._amounts(name, room, wire.mapping(status, "allocatable"))
        if wish:
            where = objects.Ref(kinds.NODES, name)
            await self._store.patch(where, objects.Merge({"status": wish}), subresource="status")

    def _amounts(self, name: str, room: Mapping[str, str], was: Body) -> dict[str, Any]:
        """Apply rule 2."""
        now = self._wall()
        solid = {"cpu", "memory", "pods"}
        same = all(room.get(name) == was.get(name) for name in solid)
        if same and 0 <= now - self._offered.get(name, 0.0) < _OFFERS:
            return {}
        self._offered[name] = now
        gone = dict.fromkeys(was.keys() - room.keys())
        return {"allocatable": {**gone, **room}, "capacity": {**gone, **room}}

    async def _tainted(self, name: str, node: Body) -> None:
        made = taints.wanted(node, moment.spell(self._wall()))
        if made is not None:
            patch = objects.Merge({"spec": {"taints": made}}, objects.revision(node))
            await self._store.patch(objects.Ref(kinds.NODES, name), patch)

    async def _judged(self, pod: Body) -> None:
        """Delete pods that do not tolerate a NoExecute taint, when their time is up (rule 4)."""
        spec, meta = wire.mapping(pod, "spec"), objects.metadata(pod)
        node, now = self._nodes.get(wire.text(spec, "nodeName")), self._wall()
        ends = wire.instant(meta.get("deletionTimestamp"), "metadata.deletionTimestamp")
        if ends is not None:
            if ends <= now:
                where = objects.ref(kinds.PODS, pod)
                await self._store.delete(where, uid=objects.text(pod, "uid"), grace_seconds=0)
            return
        if node is None or budgets.ended(pod):
            return
        end = taints.leaves(pod, wire.bodies(wire.mapping(node, "spec"), "taints"), now)
        if end is None or end > now:
            return
        where = objects.ref(kinds.PODS, pod)
        condition = disruption_target.condition(
            reason="DeletionByTaintManager",
            message=_WHY,
            at=moment.spell(now),
            generation=meta.get("generation"),
        )
        patch = objects.Strategic({"status": {"conditions": [condition]}})
        await self._store.patch(where, patch, subresource="status")
        await self._store.delete(where, uid=objects.text(pod, "uid"))
        log.get().info("scheduler.pod_leaves", pod=str(where), node=wire.text(spec, "nodeName"))

    async def _counted(self, budget: Body, pods: list[dict[str, Any]]) -> None:
        made = budgets.status(budget, pods, self._wall())
        was = wire.mapping(budget, "status")
        if any(was.get(key) != value for key, value in made.items()):
            leaving = wire.mapping(was, "disruptedPods")
            gone = dict.fromkeys(leaving.keys() - made["disruptedPods"].keys())
            made["disruptedPods"] = {**gone, **made["disruptedPods"]}
            where = objects.ref(kinds.POD_DISRUPTION_BUDGETS, budget)
            patch = objects.Merge({"status": made}, objects.revision(budget))
            await self._store.patch(where, patch, subresource="status")
