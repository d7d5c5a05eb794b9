"""Migration jobs over both stores, beside a scheduler: whole lives, and what is left of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import job
from koordlet.scheduler.migration.job import PodRef
from tests.kit import deadline, descheduling, schedulers
from tests.scheduler.loop.test_descheduler import FREE, OWNER, READY
from tests.scheduler.loop.test_gangs import both

JOBS = kinds.POD_MIGRATION_JOBS
KINDS = (kinds.RESERVATIONS, JOBS)


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
            await self.up(await self.world.pod(name, on="n1", meta=OWNER, cpu="1"))

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
    ram: Path, *, over_http: bool, runs: bool = True, **arguments: Any
) -> AsyncGenerator[Cluster]:
    """The cluster, with a scheduler and a descheduler at work."""
    async with (
        schedulers.world(ram, over_http=over_http, custom=KINDS) as world,
        schedulers.scheduler(world.client),
    ):
        cluster = Cluster(world)
        await cluster.fill()
        if not runs:
            yield cluster
            return
        async with working(world, **arguments):
            yield cluster


@asynccontextmanager
async def working(
    world: schedulers.World, **arguments: Any
) -> AsyncGenerator[descheduler.Descheduler]:
    """A descheduler at work."""
    made = descheduler.Descheduler(
        world.client, settings(**arguments), instance="one", disruption=FREE
    )
    task = asyncio.ensure_future(made.run())
    try:
        await deadline.comes(lambda: made.ready, seconds=30.0)
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@both
def test_a_job_holds_room_before_its_pod_goes_and_ends_when_the_replacement_is_ready(
    ram: Path, *, over_http: bool
) -> None:
    """Each step is a condition, in the peer's order and words."""

    async def body() -> None:
        async with scene(ram, over_http=over_http) as cluster:
            name = await cluster.ask(ttl_seconds=300, reason="it is hot")
            await cluster.asked("web-1")
            (held,) = (await cluster.reservations()).values()
            target = held["status"]["nodeName"]
            assert target != "n1"
            await cluster.gone("web-1")
            ref = await cluster.world.pod("web-3", meta=OWNER, cpu="1")
            placed = await cluster.world.until_placed("web-3")
            assert placed["web-3"] == target
            await cluster.up(ref)
            status = await cluster.job(name, "Succeeded", "Failed")
            assert status["phase"] == "Succeeded"
            assert (status["status"], status["nodeName"]) == ("Complete", target)
            assert (
                status["message"]
                == f'Bind Pod "d/web-3" in Reservation "{held["metadata"]["name"]}"'
            )
            assert status["podRef"]["name"] == "web-3"
            assert [(each["type"], each["status"]) for each in status["conditions"]] == [
                ("ReservationCreated", "True"),
                ("ReservationScheduled", "True"),
                ("Eviction", "True"),
                ("PodBoundReservation", "True"),
                ("BoundPodReady", "True"),
            ]

    schedulers.run(body())
