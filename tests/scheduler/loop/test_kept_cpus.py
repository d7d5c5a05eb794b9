"""CPUs of reservations at work: chosen once, written down, known again, handed to the owner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.model import cpuset
from tests.kit import schedulers
from tests.kit.numa import STATUS, topology
from tests.kit.reservations import reservation
from tests.kit.schedulers import World

LSR = {"koordinator.sh/qosClass": "LSR"}


def chosen(body: Mapping[str, Any]) -> cpuset.CPUSet:
    """The CPUs that an object was given."""
    notes = body["metadata"].get("annotations") or {}
    return cpuset.CPUSet.parse(json.loads(notes.get(STATUS, "{}")).get("cpuset", ""))


async def phase(world: World, wanted: str) -> Mapping[str, Any]:
    """The reservation, once it is in a phase."""
    bodies = await world.until(
        lambda known: (known["r"].get("status") or {}).get("phase") == wanted, kinds.RESERVATIONS
    )
    return bodies["r"]


async def kept(world: World) -> cpuset.CPUSet:
    """The CPUs of the reservation, once it is available."""
    return chosen(await phase(world, "Available"))


async def test_a_pre_allocation_gets_the_cpus_of_who_ends(ram: Path) -> None:
    """It waits while they run; then their CPUs are the reservation's, and later its owner's.

    A stranger who comes in between gets none of them, nor does a restart forget them.
    """
    async with schedulers.world(ram, over_http=False) as world:
        await world.store.create(kinds.NODE_RESOURCE_TOPOLOGIES, topology("n"))
        await world.node("n", cpu="8")
        async with schedulers.scheduler(world.client):
            await world.pod("old", labels={**LSR, "app": "web"}, cpu="4")
            await world.pod("stays", labels=LSR, cpu="4")
            await world.until_placed("old", "stays")
            had = chosen((await world.pods())["old"])
            made = reservation("r", cpu="4", preAllocation=True, meta={"labels": LSR})
            made["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
            await world.store.create(kinds.RESERVATIONS, made)
            waits = await phase(world, "Waiting")
            assert not chosen(waits)
            await world.store.delete(objects.Ref(kinds.PODS, "old", "d"), grace_seconds=0)
            assert await kept(world) == had
            assert len(had) == 4
        async with schedulers.scheduler(world.client, instance="two"):
            await world.pod("stranger", labels=LSR, cpu="4")
            await world.until_told("stranger")
            await world.pod("owner", labels={**LSR, "app": "web"}, cpu="4")
            await world.until_placed("owner")
        assert chosen((await world.pods())["owner"]) == had


async def test_chosen_written_and_handed_over(ram: Path) -> None:
    """The object names its CPUs; after a restart a stranger avoids them, the owner has them."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.store.create(kinds.NODE_RESOURCE_TOPOLOGIES, topology("n"))
        await world.node("n", cpu="8")
        made = reservation("r", cpu="4", allocateOnce=False, meta={"labels": LSR})
        made["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
        await world.store.create(kinds.RESERVATIONS, made)
        async with schedulers.scheduler(world.client):
            mine = await kept(world)
        assert len(mine) == 4
        async with schedulers.scheduler(world.client, instance="two"):
            await world.pod("stranger", labels=LSR, cpu="4")
            await world.pod("owner", labels={**LSR, "app": "web"}, cpu="4")
            await world.until_placed("stranger", "owner")
        pods = await world.pods()
        assert chosen(pods["owner"]) == mine
        assert not chosen(pods["stranger"]) & mine
        again = await world.store.get(objects.Ref(kinds.RESERVATIONS, "r"))
        assert chosen(again) == mine
