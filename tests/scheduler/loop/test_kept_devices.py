"""Devices at work: chosen once, written with the binding, known again, handed to the owner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from tests.kit import clusters, schedulers
from tests.kit.devices import PARTITION, PERCENT, annotated, gpu, report, server
from tests.kit.reservations import reservation
from tests.kit.schedulers import World

OWN = {"app": "web"}


async def cards(world: World, name: str, amount: int = 100, **more: Any) -> list[int]:
    """The cards of a new pod, once it is placed."""
    await world.pod(name, requests={PERCENT: str(amount)}, **more)
    await world.until_placed(name)
    return annotated((await world.pods())[name])


def keeping(amount: int, **more: Any) -> dict[str, Any]:
    """A reservation of cards for our scheduler."""
    made = reservation("r", requests={PERCENT: str(amount)}, **more)
    made["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
    return made


async def phase(world: World, wanted: str) -> Mapping[str, Any]:
    """The reservation, once it is in a phase."""
    bodies = await world.until(
        lambda known: (known["r"].get("status") or {}).get("phase") == wanted, kinds.RESERVATIONS
    )
    return bodies["r"]


async def test_chosen_written_and_handed_over(ram: Path) -> None:
    """The object names its cards; after a restart a stranger avoids them, the owner has them."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.store.create(kinds.DEVICES, report("n", *map(gpu, range(4))))
        await world.node("n")
        await world.store.create(kinds.RESERVATIONS, keeping(200, allocateOnce=False))
        async with schedulers.scheduler(world.client):
            mine = annotated(await phase(world, "Available"))
        assert mine == [0, 1]
        async with schedulers.scheduler(world.client, instance="two"):
            assert await cards(world, "stranger", 200) == [2, 3]
            await world.pod("late", requests={PERCENT: "100"})
            refusal = await world.until_told("late")
            assert "Insufficient koordinator.sh/gpu" in refusal
            assert await cards(world, "owner", labels=OWN) == [0]
            await world.store.delete(objects.Ref(kinds.PODS, "owner", "d"), grace_seconds=0)
            assert await cards(world, "second", 200, labels=OWN) == [0, 1]
        again = await world.store.get(objects.Ref(kinds.RESERVATIONS, "r"))
        assert annotated(again) == mine


async def test_a_pre_allocation_gets_the_cards_of_who_ends(ram: Path) -> None:
    """It waits while they run, and holds their cards when they have ended."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.store.create(kinds.DEVICES, report("n"))
        await world.node("n")
        async with schedulers.scheduler(world.client):
            assert await cards(world, "stays") == [0]
            assert await cards(world, "old", labels=OWN) == [1]
            await world.store.create(kinds.RESERVATIONS, keeping(100, preAllocation=True))
            assert not annotated(await phase(world, "Waiting"))
            await world.store.delete(objects.Ref(kinds.PODS, "old", "d"), grace_seconds=0)
            assert annotated(await phase(world, "Available")) == [1]
        async with schedulers.scheduler(world.client, instance="two"):
            await world.pod("stranger", requests={PERCENT: "10"})
            await world.until_told("stranger")
            assert await cards(world, "owner", labels=OWN) == [1]


async def test_a_label_that_makes_a_pod_placeable_wakes_it(ram: Path) -> None:
    """The model of the GPUs is a label of the node, and tells how they are linked."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.store.create(kinds.DEVICES, server("n"))
        await world.node("n")
        async with schedulers.scheduler(world.client):
            note = {"annotations": {PARTITION: "{}"}}
            await world.pod("a", requests={PERCENT: "200"}, meta=note)
            assert "missing GPU Partition Table" in await world.until_told("a")
            label = {"metadata": {"labels": {"node.koordinator.sh/gpu-model": "H20"}}}
            await world.store.patch(objects.Ref(kinds.NODES, "n"), objects.Merge(label))
            await world.until_placed("a")
            assert annotated((await world.pods())["a"]) == [0, 1]


async def test_devices_that_come_go_and_fall_ill(ram: Path) -> None:
    """A pod waits until its node tells of devices; a card that fell ill is given to nobody."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n")
        async with schedulers.scheduler(world.client):
            await world.pod("early", requests={PERCENT: "100"})
            assert "Insufficient koordinator.sh/gpu" in await world.until_told("early")
            await world.store.create(kinds.DEVICES, report("n"))
            await world.until_placed("early")
            assert annotated((await world.pods())["early"]) == [0]
            ref = objects.Ref(kinds.DEVICES, "n")
            sick = report("n", gpu(0, health=False), gpu(1, health=False), gpu(2))
            await world.store.patch(ref, objects.Merge({"spec": sick["spec"]}))
            assert await cards(world, "next") == [2]
            await world.pod("last", requests={PERCENT: "100"})
            assert "Insufficient GPU Devices" in await world.until_told("last")
            await world.store.delete(ref)
            await world.until_told("last", "Insufficient koordinator.sh/gpu")


async def test_what_an_allocation_of_devices_costs_the_api_server(ram: Path) -> None:
    """One binding, which carries both annotations, and one patch of the reservation's status."""
    custom = [kinds.RESERVATIONS, kinds.DEVICES]
    async with schedulers.world(ram, over_http=True, custom=custom) as world:
        assert world.serving is not None
        await world.store.create(kinds.DEVICES, report("n"))
        await world.node("n")
        async with schedulers.scheduler(world.client):
            await world.store.create(kinds.RESERVATIONS, keeping(100))
            assert annotated(await phase(world, "Available")) == [0]
            asked = world.serving.asked
            # Which cards, and that it is bound.
            assert len(asked("PATCH")) == 2
            world.serving.seen.clear()
            assert await cards(world, "owner", labels=OWN) == [0]
            await phase(world, "Succeeded")
            assert len(asked("POST", "/api/v1/namespaces/d/pods")) == 1
            assert len(asked("PATCH")) == 1


async def test_without_the_kind_amounts_count(ram: Path) -> None:
    """A server that knows no Device: pods are placed as before."""
    async with schedulers.world(ram, over_http=True) as world:
        await world.node("n", allocatable={PERCENT: "100"})
        async with schedulers.scheduler(world.client):
            assert await cards(world, "a") == []
            body = clusters.pod("b", requests={PERCENT: "100"}, schedulerName=schedulers.NAME)
            await world.store.create(kinds.PODS, {**body, "apiVersion": "v1"})
            assert "Insufficient koordinator.sh/gpu" in await world.until_told("b")
