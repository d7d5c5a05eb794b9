"""Reservations at work over both stores: bound, drawn on, expired, removed, repaired."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.loop import runner
from tests.kit import schedulers
from tests.kit.reservations import reservation
from tests.kit.schedulers import World

ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"
WEB = {"app": "web"}
BOTH = pytest.mark.parametrize("over_http", [False, True])


async def reserved(world: World, name: str, **more: Any) -> None:
    """A new Reservation for our scheduler."""
    body = reservation(name, **more)
    body["metadata"].pop("uid")
    body["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
    body.pop("status")
    await world.store.create(kinds.RESERVATIONS, body)


async def until(
    world: World, name: str, good: Callable[[Mapping[str, Any]], Any]
) -> Mapping[str, Any]:
    """Wait until the status of a reservation is as it should be."""
    bodies = await world.until(
        lambda known: name in known and bool(good(known[name].get("status") or {})),
        kinds.RESERVATIONS,
    )
    return dict(bodies[name]["status"])


def phase(wanted: str) -> Callable[[Mapping[str, Any]], bool]:
    """A status in a phase."""
    return lambda status: status.get("phase") == wanted


@BOTH
async def test_a_reservation_is_bound_and_drawn_on(ram: Path, *, over_http: bool) -> None:
    """Available; the pod gets the annotation with its binding; used once, it has succeeded."""
    async with schedulers.scheduled(ram, over_http=over_http) as (world, _):
        await world.node("n1")
        await reserved(world, "r", cpu="2")
        await until(world, "r", phase("Available"))
        await world.pod("x", labels=WEB, cpu="1")
        status = await until(world, "r", phase("Succeeded"))
        pod = (await world.pods())["x"]

        assert json.loads(pod["metadata"]["annotations"][ALLOCATED])["name"] == "r"
        assert status["allocatable"] == {"cpu": "2"}
        assert status["allocated"] == {"cpu": "1"}
        assert [owner["name"] for owner in status["currentOwners"]] == ["x"]
        kindly = {condition["type"]: condition["reason"] for condition in status["conditions"]}
        assert kindly == {"Scheduled": "Scheduled", "Ready": "Succeeded"}


@BOTH
async def test_one_without_a_node_says_why_and_is_bound_when_there_is_one(
    ram: Path, *, over_http: bool
) -> None:
    """Pending with the message; then the node comes."""
    async with schedulers.scheduled(ram, over_http=over_http) as (world, _):
        await world.node("n1", cpu="1")
        await reserved(world, "r", cpu="2")
        status = await until(world, "r", lambda stored: stored.get("conditions"))
        assert status["phase"] == "Pending"
        assert "Insufficient cpu" in status["conditions"][0]["message"]
        await world.node("n2", cpu="4")
        status = await until(world, "r", phase("Available"))
        assert status["nodeName"] == "n2"
        assert [condition["type"] for condition in status["conditions"]] == [
            "Scheduled",
            "Ready",
        ]


async def test_owners_that_end_give_their_part_back(ram: Path) -> None:
    """Allocated and owners follow the pods."""
    async with schedulers.scheduled(ram) as (world, _):
        await world.node("n1")
        await reserved(world, "r", cpu="3", allocateOnce=False)
        await until(world, "r", phase("Available"))
        first = await world.pod("a", labels=WEB, cpu="1")
        await world.pod("b", labels=WEB, cpu="2")
        await until(world, "r", lambda stored: stored.get("allocated") == {"cpu": "3"})
        await world.store.delete(first, grace_seconds=0)
        status = await until(world, "r", lambda stored: stored.get("allocated") == {"cpu": "2"})
        assert [owner["name"] for owner in status["currentOwners"]] == ["b"]
        await world.store.delete(objects.Ref(kinds.PODS, "b", "d"), grace_seconds=0)
        status = await until(world, "r", lambda stored: not stored.get("allocated"))
        assert not status.get("currentOwners")


async def test_a_restart_knows_the_same(ram: Path) -> None:
    """A second scheduler holds what the first one held, and repairs a status that is wrong."""
    async with schedulers.world(ram, over_http=False) as world:
        async with schedulers.scheduler(world.client):
            await world.node("n1", cpu="4")
            await reserved(world, "r", cpu="4", allocateOnce=False)
            await until(world, "r", phase("Available"))
            await world.pod("a", labels=WEB, cpu="1")
            await until(world, "r", lambda stored: stored.get("currentOwners"))
        wrong = {"status": {"allocated": {"cpu": "3"}, "currentOwners": []}}
        ref = objects.Ref(kinds.RESERVATIONS, "r")
        await world.store.patch(ref, objects.Merge(wrong), subresource="status")
        async with schedulers.scheduler(world.client, instance="two"):
            await until(world, "r", lambda stored: stored.get("allocated") == {"cpu": "1"})
            await world.pod("stranger", cpu="1")
            assert "Insufficient cpu" in await world.until_told("stranger")
            await world.pod("b", labels=WEB, cpu="3")
            await world.until_placed("b")


async def test_a_node_that_goes_ends_its_reservation(ram: Path) -> None:
    """Failed, Expired; and removed, because its node is gone."""
    async with schedulers.scheduled(ram) as (world, _):
        await world.node("n1")
        await reserved(world, "r", cpu="1")
        await until(world, "r", phase("Available"))
        await world.store.delete(objects.Ref(kinds.NODES, "n1"))
        status = await until(world, "r", phase("Failed"))
        assert status["conditions"][1]["message"] == "node n1 was deleted"


async def test_time_ends_a_reservation_and_what_it_held_is_free(ram: Path) -> None:
    """Expired; who waited for the room gets it; a day later the object is removed."""
    time = [1_700_000_000.0]
    async with schedulers.world(ram, over_http=False) as world:
        clocks = runner.Clocks(wall=lambda: time[0])
        async with schedulers.scheduler(world.client, clocks=clocks) as loop:
            await world.node("n1", cpu="2")
            # The store gave it its birthday by the real clock.
            await reserved(world, "r", cpu="2", expires="2023-11-14T22:13:30Z")
            await until(world, "r", phase("Available"))
            await world.pod("x", cpu="2")
            await world.until_told("x")
            time[0] += 11
            await until(world, "r", phase("Failed"))
            await world.until_placed("x")
            time[0] += 90_000
            await loop.reservation_controller.collect(time[0])
            await world.until(lambda known: not known, kinds.RESERVATIONS)


async def test_pre_allocation_waits_and_becomes_available(ram: Path) -> None:
    """The running pod is adopted and told; when it ends, its room is the reservation's."""
    async with schedulers.scheduled(ram) as (world, _):
        await world.node("n1", cpu="2")
        old = await world.pod("old", labels=WEB, cpu="2")
        await world.until_placed("old")
        await reserved(world, "r", cpu="2", preAllocation=True, allocateOnce=False)
        status = await until(world, "r", phase("Waiting"))
        assert [owner["name"] for owner in status["currentOwners"]] == ["old"]
        notes = (await world.pods())["old"]["metadata"]["annotations"]
        assert json.loads(notes[ALLOCATED])["name"] == "r"
        await world.store.delete(old, grace_seconds=0)
        status = await until(world, "r", phase("Available"))
        assert not status.get("allocated")
        await world.pod("stranger", cpu="1")
        await world.until_told("stranger")
        await world.pod("new", labels=WEB, cpu="2")
        await world.until_placed("new")


async def test_two_schedulers_bind_it_once(ram: Path) -> None:
    """Both decide; the store takes one, the other learns it."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n1", cpu="2")
        await world.node("n2", cpu="2")
        async with (
            schedulers.scheduler(world.client) as first,
            schedulers.scheduler(world.client, instance="two") as second,
        ):
            for number in range(4):
                await reserved(world, f"r{number}", cpu="1", allocateOnce=False)
            for number in range(4):
                await until(world, f"r{number}", phase("Available"))
            await world.pod("x", labels=WEB, cpu="1")
            await world.until_placed("x")
            nodes = []
            for loop in (first, second):
                held = loop.core.reservations.by_uid.values()
                nodes.append(sorted((each.spec.name, each.node) for each in held))
            assert nodes[0] == nodes[1]


async def test_one_that_cannot_be_read_says_so(ram: Path) -> None:
    """Never ignored in silence."""
    async with schedulers.scheduled(ram) as (world, _):
        await world.node("n1")
        await reserved(world, "bad", cpu="1", ttl="-1h")
        await reserved(world, "nobody", cpu="1", owners=[])
        status = await until(world, "bad", lambda stored: stored.get("conditions"))
        assert "ttl is negative" in status["conditions"][0]["message"]
        status = await until(world, "nobody", lambda stored: stored.get("conditions"))
        assert "misses the owner spec" in status["conditions"][0]["message"]


async def test_a_deleted_reservation_frees_what_it_held(ram: Path) -> None:
    """Its pods keep running, and who waited comes."""
    async with schedulers.scheduled(ram) as (world, _):
        await world.node("n1", cpu="3")
        await reserved(world, "r", cpu="3", allocateOnce=False)
        await until(world, "r", phase("Available"))
        await world.pod("mine", labels=WEB, cpu="1")
        await world.until_placed("mine")
        await world.pod("x", cpu="2")
        await world.until_told("x")
        await world.store.delete(objects.Ref(kinds.RESERVATIONS, "r"))
        assert set(await world.until_placed("x")) == {"mine", "x"}


async def test_what_an_allocation_costs_the_api_server(ram: Path) -> None:
    """One binding, which carries the annotation, and one patch of the reservation's status."""
    async with schedulers.scheduled(ram, over_http=True) as (world, _):
        assert world.serving is not None
        await world.node("n1")
        await reserved(world, "r", cpu="2")
        await until(world, "r", phase("Available"))
        world.serving.seen.clear()
        await world.pod("x", labels=WEB, cpu="1")
        await until(world, "r", phase("Succeeded"))

        asked = world.serving.asked
        assert len(asked("POST", "/api/v1/namespaces/d/pods")) == 1
        assert len(asked("PATCH")) == 1
        assert asked("PUT") == []
