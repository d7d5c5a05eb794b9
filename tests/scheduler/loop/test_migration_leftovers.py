"""The room of a job whose replacement went elsewhere: given back once no pod is to come for it."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import runner
from koordlet.scheduler.loop.cluster_watch import ClusterWatch
from koordlet.scheduler.loop.migration_leftovers import MigrationLeftovers
from koordlet.scheduler.loop.migration_writer import WatchedCluster
from koordlet.scheduler.loop.runner import Clocks
from koordlet.scheduler.migration import room
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.reservation.spec import OwnerPattern, ReservationOwner
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


@asynccontextmanager
async def leftovers(
    world: schedulers.World, *, alone: bool = False
) -> AsyncGenerator[MigrationLeftovers]:
    """What jobs left, while the cluster is watched."""
    profiles = {schedulers.NAME: profile.default(schedulers.NAME)}
    watched: WatchedCluster = ClusterWatch(
        world.store, profiles, FREE, Clocks(), instance="one", leads=lambda: True
    )
    if alone:
        watched = runner.Loop(world.store, profiles, instance="one", alone=True)
    watching = asyncio.ensure_future(watched.sources.run())
    try:
        await watched.sources.synced()
        yield MigrationLeftovers(world.store, watched)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def swept(world: schedulers.World) -> list[Any]:
    """The reservations that a sweep leaves."""
    async with leftovers(world) as left:
        await left.sweep({OVER.uid: OVER}, NOW)
    return [*(await objects.collect(world.store.list(kinds.RESERVATIONS))).items]


@pytest.mark.parametrize(
    ("replicas", "waiting", "rooms"), [(1, False, 0), (2, False, 1), (1, True, 1)]
)
async def test_room_is_given_back_unless_its_workload_lacks_pods_or_one_of_them_waits(
    ram: Path, replicas: int, rooms: int, *, waiting: bool
) -> None:
    """A sibling that came at the same time may have ended the job: the replacement comes yet."""
    async with schedulers.world(ram, over_http=False) as world:
        await fill(world, replicas)
        if waiting:
            await world.pod("web-2", meta=OWNER, cpu="1")
        assert len(await swept(world)) == rooms


def is_named(name: str, job: MigrationJob) -> bool:
    """Whether a job has a name."""
    return job.name == name


async def test_whoever_carries_out_some_jobs_gives_back_their_rooms_alone(ram: Path) -> None:
    """A drain sweeps beside a descheduler, and a job of nobody's is for the descheduler."""
    async with schedulers.world(ram, over_http=False) as world:
        await fill(world, 1)
        orphan = reservations.reservation("j-2", meta={"annotations": {room.JOB: "gone"}})
        await world.store.create(kinds.RESERVATIONS, orphan)
        left = []
        async with leftovers(world) as sweeper:
            for mine in ("another", OVER.name):
                await sweeper.sweep({OVER.uid: OVER}, NOW, functools.partial(is_named, mine))
                listing = await objects.collect(world.store.list(kinds.RESERVATIONS))
                left.append([objects.text(each, "name") for each in listing.items])
        assert left == [["j-1", "j-2"], ["j-2"]]


async def test_reservations_that_no_job_made_or_nobody_can_read_stay(ram: Path) -> None:
    """They are somebody else's, whatever there is to be swept beside them."""
    async with schedulers.world(ram, over_http=False) as world:
        await fill(world, 1)
        await world.store.create(kinds.RESERVATIONS, reservations.reservation("theirs"))
        made = {"annotations": {room.JOB: "j"}}
        odd = reservations.reservation("odd", meta=made, ttl="soon")
        await world.store.create(kinds.RESERVATIONS, odd)
        assert [objects.text(each, "name") for each in await swept(world)] == ["odd", "theirs"]


@pytest.mark.parametrize(
    ("replicas", "placed", "comes"), [(1, 1, False), (2, 1, True), (0, 0, False), (1, 0, True)]
)
async def test_a_replacement_may_come_while_the_controller_lacks_pods(
    ram: Path, replicas: int, placed: int, *, comes: bool
) -> None:
    """One whose only pod has left has no pod to be counted by: its object says what it wants."""
    async with schedulers.world(ram, over_http=False) as world:
        await fill(world, replicas)
        if not placed:
            ref = objects.Ref(kinds.PODS, "web-1", "d")
            await world.store.delete(ref, grace_seconds=0)
        async with leftovers(world) as left:
            held = left.room(OVER.uid)
            assert held is not None
            assert left.may_be_replaced(held) is comes


async def test_nobody_waits_for_a_controller_that_was_deleted(ram: Path) -> None:
    """Nothing makes its pods any more, whatever it wanted."""
    async with schedulers.world(ram, over_http=False) as world:
        await fill(world, 2)
        await world.store.delete(objects.Ref(kinds.REPLICA_SETS, "web", "d"))
        async with leftovers(world) as left:
            held = left.room(OVER.uid)
            assert held is not None
            assert not left.may_be_replaced(held)


@pytest.mark.parametrize(
    ("kind", "name", "alone"),
    [
        ("ReplicaSet", "odd", False),
        ("CloneSet", "web", False),
        ("ReplicaSet", "absent", True),
    ],
)
async def test_a_replacement_may_come_while_no_object_says_how_many_pods_there_shall_be(
    ram: Path, kind: str, name: str, *, alone: bool
) -> None:
    """It cannot be read, its kind is not watched, there is no cluster: the job waits as ever."""
    async with schedulers.world(ram, over_http=False) as world:
        await fill(world, 1)
        odd = {"metadata": {**META, "name": "odd"}, "spec": {"replicas": 1, "selector": []}}
        await world.store.create(kinds.REPLICA_SETS, odd)
        async with leftovers(world, alone=alone) as left:
            held = left.room(OVER.uid)
            assert held is not None
            pattern = OwnerPattern("d", name=name, kind=kind, controller=True)
            owners = (ReservationOwner(controller=pattern),)
            assert left.may_be_replaced(dataclasses.replace(held, owners=owners))
