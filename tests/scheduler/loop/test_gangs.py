"""Gangs over both stores: PodGroups that come late, events, schedulers that die."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, pod_groups
from tests.kit import deadline, gangs, schedulers
from tests.kit.schedulers import both

CUSTOM = (kinds.RESERVATIONS, kinds.POD_GROUPS)


@both
async def test_a_gang_waits_for_its_pod_group_and_its_members_and_is_bound_whole(
    ram: Path, *, over_http: bool
) -> None:
    """Each step is in the members' conditions; no pod has a node before the last one is there."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.node("n1", cpu="2")
        await world.node("n2", cpu="2")
        labels = {pod_groups.POD_GROUP: "g"}
        async with schedulers.scheduler(world.client) as loop:
            await world.pod("a", cpu="2", labels=labels)
            await world.until_told("a", "can't find gang")
            await world.store.create(kinds.POD_GROUPS, gangs.pod_group("g", 2))
            await world.until_told("a", "child pod not collect enough")
            assert await world.placed() == {}
            await world.pod("b", cpu="2", labels=labels)
            places = await world.until_placed("a", "b")
            assert sorted(places.values()) == ["n1", "n2"]
            assert 'koordlet_scheduler_gang_cycle_seconds_count{result="scheduled"} 1' in (
                loop.metrics()
            )


@both
async def test_a_scheduler_that_dies_between_two_bindings_leaves_a_gang_that_the_next_completes(
    ram: Path, *, over_http: bool
) -> None:
    """Nothing is bound twice, and the members that were left follow the bound ones."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.node("n1", cpu="6")
        notes = {pod_groups.GANG_NAME: "g", pod_groups.GANG_MINIMUM: "4"}
        for name in "abcd":
            await world.pod(name, cpu="1", meta={"annotations": notes})
        async with schedulers.scheduler(world.client, lanes=1):
            await world.until(_some)
        async with schedulers.scheduler(world.client, instance="two") as loop:
            places = await world.until_placed(*"abcd")
            assert set(places.values()) == {"n1"}
            await deadline.comes(lambda: loop.core.gangs.waiting() == 0, seconds=10)


def _some(known: dict[str, Mapping[str, Any]]) -> bool:
    return any(pod.get("spec", {}).get("nodeName") for pod in known.values())


@both
async def test_what_the_owner_of_a_gang_should_know_is_an_event(
    ram: Path, *, over_http: bool
) -> None:
    """A pod that configures its gang otherwise than the first pod did."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.node("n1", cpu="6")
        for name, minimum in (("a", "2"), ("b", "3")):
            notes = {pod_groups.GANG_NAME: "g", pod_groups.GANG_MINIMUM: minimum}
            await world.pod(name, cpu="1", meta={"annotations": notes})
        async with schedulers.scheduler(world.client):
            await world.until_placed("a", "b")
            await world.until(_noticed, kinds.EVENTS)


def _noticed(known: dict[str, Mapping[str, Any]]) -> bool:
    return any(event.get("reason") == "GangConfigurationIgnored" for event in known.values())


async def test_a_gang_is_gathered_as_soon_as_the_network_is_described(ram: Path) -> None:
    """The object is watched: without it the gang waits and says so, with it all members go."""
    custom = (*CUSTOM, kinds.CLUSTER_NETWORK_TOPOLOGIES)
    async with schedulers.world(ram, over_http=False, custom=custom) as world:
        for name, rack in (("n1", "a"), ("n2", "b"), ("n3", "b")):
            await world.node(name, cpu="1", labels={"net/rack": rack})
        await world.store.create(
            kinds.CLUSTER_NETWORK_TOPOLOGIES, gangs.network("rack", name="other")
        )
        async with schedulers.scheduler(world.client):
            group = gangs.pod_group("g", 2, gather=gangs.gather(rack="Must"))
            await world.store.create(kinds.POD_GROUPS, group)
            for name in "ab":
                await world.pod(name, cpu="1", labels={pod_groups.POD_GROUP: "g"})
            await world.until_told("a", 'there is no ClusterNetworkTopology "default"')
            network = gangs.network("rack")
            await world.store.create(kinds.CLUSTER_NETWORK_TOPOLOGIES, network)
            placed = await world.until_placed("a", "b")
            assert set((await world.placed()).values()) == {"n2", "n3"}, placed
