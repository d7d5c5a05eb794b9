"""Pods that migrate: a ReplicaSet on three nodes, a scheduler and a descheduler at work.

Covers: the store, its jobs, budgets and reservations.
Does not cover: what must follow (the tests).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import job
from koordlet.scheduler.migration.job import PodRef
from tests.kit import deadline, descheduling, schedulers
from tests.kit.descheduler_scene import FREE
from tests.kit.schedulers import OWNER, READY

JOBS = kinds.POD_MIGRATION_JOBS
APP = {"app": "web"}
BUDGET = {
    "metadata": {"name": "b", "namespace": "d"},
    "spec": {"selector": {"matchLabels": APP}, "minAvailable": 2},
}
CLOSED = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2,
          "observedGeneration": 1}  # fmt: skip
KINDS = (kinds.RESERVATIONS, JOBS, kinds.NODE_AVOIDANCES)


def settings(**arguments: Any) -> configuration.DeschedulerSettings:
    """A Koordinator configuration without strategies; nobody is elected."""
    body = descheduling.policy(leaderElection={"leaderElect": False})
    body["kind"] = "DeschedulerConfiguration"
    body["profiles"][0]["pluginConfig"].append(
        {
            "name": "MigrationController",
            "args": {"arbitrationArgs": {"interval": "50ms"}} | arguments,
        }
    )
    return configuration.read(body, "test")


class Cluster:
    """Three nodes, a ReplicaSet of two pods that are up on the first of them."""

    def __init__(self, world: schedulers.World) -> None:
        self.world = world

    async def fill(self) -> None:
        """Make it."""
        for name in ("n1", "n2", "n3"):
            await self.world.node(name)
        for name in ("web-1", "web-2"):
            await self.up(await self.world.pod(name, on="n1", meta=OWNER, labels=APP, cpu="1"))
        # Objects have whole seconds: a sibling of the second in which room is opened would be taken
        # for the replacement.
        filled = int(time.time())
        await deadline.comes(lambda: int(time.time()) > filled)

    async def up(self, ref: objects.Ref) -> None:
        """A pod is ready."""
        await self.world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")

    async def ask(self, name: str = "web-1", **more: Any) -> str:
        """A new job; its name."""
        body = job.request(PodRef("d", name), **more)
        made = await self.world.store.create(JOBS, body)
        return objects.text(made, "name")

    async def job(self, name: str, *phases: str) -> Mapping[str, Any]:
        """The status of a job in one of these phases."""

        def there(known: Mapping[str, Any]) -> bool:
            return known.get(name, {}).get("status", {}).get("phase") in phases

        body = (await self.world.until(there, JOBS))[name]
        status: Mapping[str, Any] = body["status"]
        return status

    async def budget(self, allowed: int) -> None:
        """A PodDisruptionBudget that lets so many go."""
        ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "b", "d")
        with contextlib.suppress(refusals.AlreadyExists):
            await self.world.store.create(ref.kind, BUDGET)
        status = {**CLOSED, "disruptionsAllowed": allowed}
        await self.world.store.patch(ref, objects.Merge({"status": status}), subresource="status")

    async def asked(self, name: str) -> None:
        """Wait until a pod is to go."""
        await self.world.until(lambda known: "deletionTimestamp" in known[name]["metadata"])

    async def gone(self, name: str) -> None:
        """Its kubelet has stopped a pod."""
        await self.world.store.delete(objects.Ref(kinds.PODS, name, "d"), grace_seconds=0)

    async def reservations(self) -> dict[str, Any]:
        """All reservations."""
        listing = await objects.collect(self.world.store.list(kinds.RESERVATIONS))
        return {objects.text(body, "name"): body for body in listing.items}


@asynccontextmanager
async def scene(
    ram: Path, *, over_http: bool, runs: bool = True, ahead: float = 0.0, **arguments: Any
) -> AsyncGenerator[Cluster]:
    """The cluster, with a scheduler and a descheduler at work; ``ahead``: the server's clock."""
    started = schedulers.scheduled(ram, over_http=over_http, custom=KINDS, ahead=ahead)
    async with started as (world, _):
        cluster = Cluster(world)
        await cluster.fill()
        if not runs:
            yield cluster
            return
        async with working(world, **arguments):
            yield cluster


@asynccontextmanager
async def working(
    world: schedulers.World, disruption: DisruptionSettings = FREE, **arguments: Any
) -> AsyncGenerator[descheduler.Descheduler]:
    """A descheduler at work."""
    made = descheduler.Descheduler(
        world.client, settings(**arguments), instance="one", disruption=disruption
    )
    async with at_work(made):
        yield made


@asynccontextmanager
async def at_work(made: descheduler.Descheduler) -> AsyncGenerator[descheduler.Descheduler]:
    """It runs, and is ready, until the block ends."""
    task = asyncio.ensure_future(made.run())
    try:
        await deadline.comes(lambda: made.ready, seconds=30.0)
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
