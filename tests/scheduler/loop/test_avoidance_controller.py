"""Avoid lists over both stores: written at an accepted eviction, heeded, and removed once over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, node_avoidances, objects
from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.model import moment
from tests.kit import deadline, schedulers
from tests.kit.eviction_scene import Scene, events, scene
from tests.kit.schedulers import OWNER, both

PLENTY: dict[str, Any] = {"limits": [{"count": 9, "window": "1h"}]}


async def entries(stage: Scene, node: str = "n1") -> list[Avoidance]:
    """What the avoid list of a node has now."""
    listing = await objects.collect(stage.world.store.list(kinds.NODE_AVOIDANCES))
    several = {each.node: each for each in map(node_avoidances.node_avoidance, listing.items)}
    return list(several[node].entries) if node in several else []


async def replica_set(stage: Scene) -> None:
    """The controller of the pods."""
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
    body = {"metadata": {"name": "web", "namespace": "d"}, "spec": spec}
    await stage.world.store.create(kinds.REPLICA_SETS, body)
    known = stage.loop.disruptions.limiter.workloads
    pod = await stage.pod()
    await deadline.comes(
        lambda: known.expected(known.members(known.signature(pod.pod_class))) == 2,  # type: ignore[arg-type]
        seconds=schedulers.PATIENCE,
    )


@both
async def test_a_replacement_does_not_come_back_and_comes_to_the_front(
    ram: Path, *, over_http: bool
) -> None:
    """The entry is there once the eviction is accepted; the token is taken by the replacement."""
    async with scene(ram, over_http=over_http, **PLENTY) as stage:
        world, loop = stage.world, stage.loop
        stage.evictions = loop.evictions
        await replica_set(stage)
        await world.node("n2", cpu="1")  # worse by every other score
        result = await stage.evict(avoid_seconds=7200.0, front=True)
        assert result.evicted
        [entry] = await entries(stage)
        assert entry.workload == ("d", "ReplicaSet", "web")
        assert (entry.reason, entry.by) == ("Rebalanced", "descheduler/test")
        assert entry.until - entry.since == 7200.0

        book = loop.disruptions.avoidances
        await deadline.comes(lambda: book.live() == 1, seconds=schedulers.PATIENCE)
        await world.store.delete(objects.Ref(kinds.PODS, "a", "d"), grace_seconds=0)
        await world.pod("c", labels={"app": "web"}, meta=OWNER, cpu="500m")
        assert (await world.until_placed("c"))["c"] == "n2"
        assert loop.core.measures.fronted == 1
        assert len(loop.disruptions.fronts) == 0
        assert "koordlet_scheduler_node_avoidance_entries 1" in loop.metrics()


@both
async def test_a_refused_eviction_leaves_no_entry(ram: Path, *, over_http: bool) -> None:
    """Nobody has left, so that nobody stays away."""
    async with scene(ram, over_http=over_http, limits=[{"count": 0, "window": "1h"}]) as stage:
        stage.evictions = stage.loop.evictions
        assert (await stage.evict(avoid_seconds=7200.0)).reason == "RateSpent"
        assert await entries(stage) == []


@both
async def test_what_is_over_goes_and_the_rest_stays(ram: Path, *, over_http: bool) -> None:
    """Expired, of a controller that is gone, of a node that is gone; an empty object goes, too."""
    async with scene(ram, over_http=over_http) as stage:
        store, loop = stage.world.store, stage.loop
        await replica_set(stage)
        now = loop.disruptions.now().wall

        def of(name: str, until: float) -> Avoidance:
            workload = ("d", "ReplicaSet", name)
            return Avoidance(workload=workload, since=now - 3600.0, until=now + until)

        lists = {
            "n1": (of("web", 900.0), of("gone", 900.0), of("other", -1.0)),
            "n9": (of("web", 900.0),),
        }
        for node, several in lists.items():
            spec = node_avoidances.spec(several)
            await store.create(kinds.NODE_AVOIDANCES, {"metadata": {"name": node}, "spec": spec})
        book = loop.disruptions.avoidances
        await deadline.comes(lambda: len(list(book)) == 2, seconds=schedulers.PATIENCE)
        await loop.writers.avoidance_controller.tidy()
        left = [(each.workload[2], moment.spell(each.until)) for each in await entries(stage)]
        assert left == [("web", moment.spell(now + 900.0))]
        assert await entries(stage, "n9") == []
        listing = await objects.collect(store.list(kinds.NODE_AVOIDANCES))
        assert len(listing.items) == 1


@both
async def test_a_full_list_lets_the_first_to_expire_go_and_tells(
    ram: Path, *, over_http: bool
) -> None:
    """An event on the pod names who gave way."""
    async with scene(ram, over_http=over_http, **PLENTY) as stage:
        stage.evictions = stage.loop.evictions
        now = stage.loop.disruptions.now().wall
        several = [
            Avoidance(workload=("d", "Job", f"j{n}"), since=now, until=now + 600.0 + n)
            for n in range(node_avoidances.MOST_ENTRIES)
        ]
        spec = node_avoidances.spec(several)
        meta = {"name": "n1"}
        await stage.world.store.create(kinds.NODE_AVOIDANCES, {"metadata": meta, "spec": spec})
        assert (await stage.evict(avoid_seconds=3600.0)).evicted
        [event] = await events(stage.world, "AvoidanceDropped")
        assert event["note"] == "the avoid list of node n1 is full: Job j0 gave way"
        assert len(await entries(stage)) == node_avoidances.MOST_ENTRIES
