"""Moving, preempting, scaling up: each keeps its promise at a scheduler at work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.reservation import uses
from tests.kit import clusters, reservations, schedulers

WEB = {"app": "web"}
POD = "d"


def pod(name: str) -> objects.Ref:
    """A pod of the kit's namespace."""
    return objects.Ref(kinds.PODS, name, POD)


def test_a_pod_moves_to_a_place_that_is_kept_for_it(ram: Path) -> None:
    """Reserved elsewhere first, then evicted; its successor draws on the reservation."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u"}
    meta = {"ownerReferences": [{**owner, "controller": True}]}

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client),
        ):
            await world.node("n1")
            await world.pod("old", cpu="2", meta=meta)
            await world.until_placed("old")
            await world.node("n2")
            node = await uses.Uses(world.client).move(pod("old"))
            assert node == "n2"
            await world.store.delete(pod("old"), grace_seconds=0)
            await world.pod("new", cpu="2", meta=meta)
            assert (await world.until_placed("new"))["new"] == "n2"
            notes = (await world.pods())["new"]["metadata"]["annotations"]
            assert "move-d-old" in str(notes)

    schedulers.run(body())


def test_who_has_nowhere_to_go_stays(ram: Path) -> None:
    """No place in time: not evicted, and the reservation is gone again."""

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client),
        ):
            await world.node("n1")
            await world.pod("old", cpu="2")
            await world.until_placed("old")
            with pytest.raises(refusals.Refused, match="no node had room"):
                await uses.Uses(world.client, patience=0.2).move(pod("old"))
            assert not (await world.pods())["old"]["metadata"].get("deletionTimestamp")
            assert not (await objects.collect(world.store.list(kinds.RESERVATIONS))).items

    schedulers.run(body())


def test_a_preemptor_gets_what_it_evicted(ram: Path) -> None:
    """A more important pod that comes meanwhile does not get the victims' room."""

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client),
        ):
            await world.node("n1", cpu="2")
            for name in ("a", "b"):
                await world.pod(name, cpu="1")
            await world.until_placed("a", "b")
            await world.pod("mine", cpu="2", preemptionPolicy="Never")
            await world.until_told("mine")
            victims = [pod("a"), pod("b")]
            await uses.Uses(world.client).preempt(pod("mine"), "n1", victims)
            await world.store.delete(pod("a"), grace_seconds=0)
            await world.pod("rival", cpu="1", priority=1000, preemptionPolicy="Never")
            await world.until_told("rival")
            await world.store.delete(pod("b"), grace_seconds=0)
            assert "rival" not in await world.until_placed("mine")

    schedulers.run(body())


def test_scaling_up() -> None:
    """One reservation for each pod to come, and the pods draw on them."""
    asked: dict[str, Any] = {"requests": {"cpu": "2"}}
    template = {"metadata": {"labels": WEB}, "spec": {"containers": [{"resources": asked}]}}
    several = uses.for_scale_up(template, "web", 2)
    pods = [clusters.pod(f"p{n}", labels=WEB, cpu="2") for n in range(2)]
    found = reservations.drew(clusters.node("n1"), *several, *pods, clusters.pod("x", cpu="1"))

    assert sorted(str(one) for _, one in found.values()) == ["scale-web-0", "scale-web-1"]
