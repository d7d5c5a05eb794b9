"""The room of a job whose replacement went elsewhere: given back once no pod is to come for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.cluster_watch import ClusterWatch
from koordlet.scheduler.loop.migration_leftovers import MigrationLeftovers
from koordlet.scheduler.loop.runner import Clocks
from koordlet.scheduler.migration import room
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from tests.kit import reservations, schedulers
from tests.kit.descheduler_scene import FREE
from tests.kit.schedulers import OWNER, READY

NOW = 1_800_000_000.0
META = {"name": "web", "namespace": "d"}
OVER = MigrationJob(
    name="j", uid="j-1", created=NOW, pod=PodRef("d", "web-0"),
    status=JobStatus(phase=Phase.SUCCEEDED),
)  # fmt: skip


async def fill(world: schedulers.World, replicas: int) -> None:
    """A pod that is up, its ReplicaSet, the room that was held for it on another node."""
    await world.node("n1")
    spec = {"replicas": replicas, "selector": {}}
    await world.store.create(kinds.REPLICA_SETS, {"metadata": META, "spec": spec})
    ref = await world.pod("web-1", on="n1", meta=OWNER, cpu="1")
    await world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")
    owner = {"kind": "ReplicaSet", "name": "web", "namespace": "d"}
    held = reservations.reservation(
        OVER.uid, owners=[{"controller": owner}], cpu="1",
        meta={"annotations": {room.JOB: OVER.name}},
    )  # fmt: skip
    await world.store.create(kinds.RESERVATIONS, held)


async def swept(world: schedulers.World) -> list[Any]:
    """The reservations that a sweep leaves."""
    profiles = {schedulers.NAME: profile.default(schedulers.NAME)}
    watched = ClusterWatch(
        world.store, profiles, FREE, Clocks(), instance="one", leads=lambda: True
    )
    watching = asyncio.ensure_future(watched.sources.run())
    try:
        await watched.sources.synced()
        await MigrationLeftovers(world.store, watched).sweep({OVER.uid: OVER}, NOW)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return [*(await objects.collect(world.store.list(kinds.RESERVATIONS))).items]


@pytest.mark.parametrize(
    ("replicas", "waiting", "rooms"), [(1, False, 0), (2, False, 1), (1, True, 1)]
)
def test_room_is_given_back_unless_its_workload_lacks_pods_or_one_of_them_waits(
    ram: Path, replicas: int, rooms: int, *, waiting: bool
) -> None:
    """A sibling that came at the same time may have ended the job: the replacement comes yet."""

    async def body() -> None:
        async with schedulers.world(ram, over_http=False) as world:
            await fill(world, replicas)
            if waiting:
                await world.pod("web-2", meta=OWNER, cpu="1")
            assert len(await swept(world)) == rooms

    schedulers.run(body())
