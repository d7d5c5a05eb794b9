"""Over a real store: agents' nodes come, grow silent and come back; pods leave; budgets follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.model import cpuset, decision, ledger, moment, nodereport
from koordlet.scheduler.standalone import controllers, registration
from tests.kit import schedulers, views

SIGNAL = decision.Signal(name="memory.available", observed="1", threshold="2", met=True)
RESERVED = ledger.Claim(
    owner=ledger.Owner.RESERVED,
    cpus=cpuset.CPUSet.parse("0"),
    holder="node",
    policy="reserved_cpus",
    reason="r",
)


class Scene:
    """A store, a steward, and what agents say."""

    def __init__(self, world: schedulers.World) -> None:
        self.world = world
        self.reports: dict[str, nodereport.NodeReport] = {}
        self.now = 1_000_000.0
        self.steward = controllers.Controllers(world.store, lambda: self.reports, lambda: self.now)

    def report(self, **more: Any) -> None:
        """The agent of node ``n`` reports."""
        report = nodereport.NodeReport(
            node="n", topology=views.machine(), claims=(RESERVED,), **more
        )
        self.reports["n"] = report

    async def node(self) -> objects.Object:
        """The object."""
        return await self.world.store.get(objects.Ref(kinds.NODES, "n"))

    async def until(self, good: Callable[[dict[str, Any]], bool], kind: kinds.Kind) -> None:
        """Wait, while the steward is called again and again."""
        while True:
            listing = await objects.collect(self.world.store.list(kind))
            if good({objects.text(body, "name"): body for body in listing.items}):
                return
            await self.steward.once()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def opened(ram: Path) -> AsyncGenerator[Scene]:
    """The steward's mirrors at work."""
    async with schedulers.world(ram, over_http=False) as world:
        scene = Scene(world)
        task = asyncio.ensure_future(scene.steward.run())
        try:
            yield scene
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _taints(node: Any) -> set[str]:
    return {taint["key"].rpartition("/")[2] for taint in node.get("spec", {}).get("taints", [])}


async def test_an_agent_is_a_node(ram: Path) -> None:
    """With the CPUs that are not reserved; pressure is a taint, silence another one."""
    async with opened(ram) as scene:
        scene.report(signals=(SIGNAL,))
        await scene.until(
            lambda all_of: _taints(all_of.get("n", {})) == {"memory-pressure"}, kinds.NODES
        )
        node = await scene.node()
        assert node["status"]["allocatable"]["cpu"] == "6"
        assert node["metadata"]["annotations"][registration.MARK] == "true"
        scene.reports.clear()
        await scene.until(lambda all_of: "unreachable" in _taints(all_of["n"]), kinds.NODES)
        scene.report()
        await scene.until(lambda all_of: not _taints(all_of["n"]), kinds.NODES)


async def test_who_hands_in_a_node_keeps_his_amounts(ram: Path) -> None:
    """The agent's conditions come to it all the same."""
    async with opened(ram) as scene:
        await scene.world.node("n", cpu="3")
        scene.report()
        await scene.until(lambda all_of: bool(all_of["n"]["status"].get("conditions")), kinds.NODES)
        node = await scene.node()
        assert node["status"]["allocatable"]["cpu"] == "3"


async def test_pods_leave_a_node_that_drives_them_away(ram: Path) -> None:
    """Who bears the taint stays; who leaves is gone when its grace period is over, not before."""
    async with opened(ram) as scene:
        taint = {"key": "k", "effect": "NoExecute"}
        await scene.world.node("n", spec={"taints": [taint]})
        bears = [{"key": "k", "operator": "Exists"}]
        for name, borne in (("stays", bears), ("leaves", [])):
            await scene.world.pod(name, nodeName="n", tolerations=borne)
        await scene.until(
            lambda pods: "leaves" not in pods or "deletionTimestamp" in pods["leaves"]["metadata"],
            kinds.PODS,
        )
        pods = await scene.world.pods()
        assert "deletionTimestamp" not in pods["stays"]["metadata"]
        condition = pods["leaves"]["status"]["conditions"][-1]
        assert condition["reason"] == "DeletionByTaintManager"
        assert condition["observedGeneration"] == 1
        ends = moment.parse(pods["leaves"]["metadata"]["deletionTimestamp"])
        scene.now = ends - 1
        await scene.steward.once()
        assert sorted(await scene.world.pods()) == ["leaves", "stays"]
        scene.now = ends
        await scene.until(lambda pods: sorted(pods) == ["stays"], kinds.PODS)


async def test_budgets_are_counted(ram: Path) -> None:
    """As soon as their pods are there."""
    async with opened(ram) as scene:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        meta = {"name": "b", "namespace": "d"}
        await scene.world.node("n")
        await scene.world.store.create(
            kinds.POD_DISRUPTION_BUDGETS, {"metadata": meta, "spec": spec}
        )
        for name in ("a", "b"):
            await scene.world.pod(name, nodeName="n", labels={"app": "web"})
        await scene.until(
            lambda bodies: bodies["b"].get("status", {}).get("disruptionsAllowed") == 1,
            kinds.POD_DISRUPTION_BUDGETS,
        )
