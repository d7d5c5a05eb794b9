"""What victims free is the preemptor's alone where its place is held; none is held for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.disruption.settings import DisruptionSettings, PreemptionSettings
from koordlet.scheduler.loop import event_messages, held_place, reporter, reservation_events
from koordlet.scheduler.loop.outcomes import Hold, Refusal
from koordlet.scheduler.rescheduling import plan_room
from koordlet.scheduler.reservation import keys
from tests.kit import clusters, schedulers
from tests.kit.apiserver import faults
from tests.scheduler.loop.test_preemptors import Cluster

HOLDS = DisruptionSettings(preemption=PreemptionSettings(hold_place=True))
BOTH = pytest.mark.parametrize("over_http", [False, True])


async def preempted(world: schedulers.World) -> objects.Ref:
    """A pod that preempts the only other one of the only node; the victim."""
    await world.node("n1", cpu="2")
    low = await world.pod("low", cpu="2", priority=1)
    await world.until_placed("low")
    await world.pod("high", cpu="2", priority=9)
    return low


async def held(world: schedulers.World, phase: str) -> Mapping[str, Any]:
    """The reservation of the preemptor in a phase."""

    def good(known: dict[str, Mapping[str, Any]]) -> bool:
        return [each.get("status", {}).get("phase") for each in known.values()] == [phase]

    (place,) = (await world.until(good, kinds.RESERVATIONS)).values()
    return place


async def nothing_held(world: schedulers.World) -> None:
    """Wait until there is no reservation."""
    await world.until(lambda known: not known, kinds.RESERVATIONS)


@BOTH
async def test_a_place_waits_for_the_victim_and_goes_when_its_pod_is_bound(
    ram: Path, *, over_http: bool
) -> None:
    """It takes over from the victim and from nobody else."""
    async with schedulers.scheduled(ram, over_http=over_http, disruption=HOLDS) as (world, _):
        low = await preempted(world)
        place = await held(world, "Waiting")
        assert [each["name"] for each in place["status"]["currentOwners"]] == ["low"]
        assert place["metadata"]["annotations"][keys.PLACE_OF] == "d/high"
        assert place["spec"]["ttl"] == "10m0s"
        await world.store.delete(low, grace_seconds=0)
        assert await world.until_placed("high") == {"high": "n1"}
        await nothing_held(world)


async def test_a_more_important_pod_does_not_get_what_was_freed_for_another(ram: Path) -> None:
    """It is tried first, by a scheduler that knows only what the objects say."""
    async with schedulers.world(ram, over_http=False) as world:
        async with schedulers.scheduler(world.client, disruption=HOLDS):
            low = await preempted(world)
            await held(world, "Waiting")
        await world.store.delete(low, grace_seconds=0)
        await world.pod("higher", cpu="2", priority=99, preemptionPolicy="Never")
        async with schedulers.scheduler(world.client, disruption=HOLDS, instance="two"):
            assert await world.until_placed("high") == {"high": "n1"}
            await world.until_told("higher", "Insufficient cpu")
            await nothing_held(world)


async def test_a_place_goes_with_its_pod(ram: Path) -> None:
    """Whoever comes next gets the room."""
    async with schedulers.scheduled(ram, disruption=HOLDS) as (world, _):
        low = await preempted(world)
        await held(world, "Waiting")
        await world.store.delete(objects.Ref(kinds.PODS, "high", "d"), grace_seconds=0)
        await nothing_held(world)
        await world.store.delete(low, grace_seconds=0)
        await world.pod("next", cpu="2", priority=0)
        assert await world.until_placed("next") == {"next": "n1"}


async def test_without_the_right_to_make_it_the_victims_go_all_the_same(ram: Path) -> None:
    """Preemption is worth more than the place; the log says what is missing."""
    path = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
    async with schedulers.world(ram, over_http=True) as world:
        assert world.serving is not None
        world.serving.faults.add(
            faults.Fault(faults.Manner.ANSWER, "POST", path, times=9, status=403)
        )
        async with schedulers.scheduler(world.client, disruption=HOLDS):
            low = await preempted(world)
            await world.until(lambda known: bool(known["low"]["metadata"].get("deletionTimestamp")))
            await world.store.delete(low, grace_seconds=0)
            assert await world.until_placed("high") == {"high": "n1"}
            assert len(world.serving.asked("POST", path)) == 1


async def test_nothing_is_held_unless_it_is_configured(ram: Path) -> None:
    """A nomination is all that there is, as elsewhere."""
    async with schedulers.scheduled(ram, over_http=True) as (world, _):
        low = await preempted(world)
        await world.until(lambda known: bool(known["low"]["metadata"].get("deletionTimestamp")))
        await world.store.delete(low, grace_seconds=0)
        await world.until_placed("high")
        assert world.serving is not None
        path = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
        assert not world.serving.asked("POST", path)


def placed(cluster: Cluster, name: str, *victims: str) -> None:
    """A preemptor gets a place on ``n0`` over the room of its victims."""
    body = clusters.pod(name)
    leaving = [cluster.pods[victim] for victim in victims]
    pod = cluster.pods[name]
    named = {"name": held_place.name(pod), "uid": "place", "annotations": {keys.PLACE_OF: pod.key}}
    made = plan_room.place(named, "n0", body, pod, leaving, ttl=held_place.TTL)
    reservation_events.changed(cluster.core, None, made, cluster.now)
    outcomes = iter(lambda: cluster.core.step(cluster.now), None)
    assert any(isinstance(outcome, Hold) for outcome in outcomes)


def test_the_last_victim_gone_and_the_place_not_yet_available_nobody_else_has_to_go() -> None:
    """The phase follows the room a moment later: the preemptor tried in between waits."""
    cluster = Cluster()
    for number in range(2):
        cluster.node(f"n{number}")
    cluster.pod("low", on="n0", cpu="4", priority=0)
    cluster.pod("other", on="n1", cpu="4", priority=1)
    cluster.pod("high", cpu="4", priority=9)
    cluster.settle()
    assert cluster.leaving == ["low"]
    placed(cluster, "high", "low")
    cluster.gone("low")
    cluster.now += 2
    outcome = cluster.core.step(cluster.now)
    assert isinstance(outcome, Refusal)
    assert (outcome.pod.name, outcome.victims) == ("high", ())
    (place,) = cluster.core.reservations.by_uid.values()
    assert reservation_events.step(cluster.core, place, cluster.now, 0.0)
    cluster.now += 4
    cluster.settle()
    assert cluster.place("high") == "n0"


def test_what_is_free_beside_the_victims_stays_for_the_preemptor_too() -> None:
    """A place holds what was freed; what was free is kept from lesser pods by the nomination."""
    cluster = Cluster()
    cluster.node("n0", cpu="6")
    cluster.pod("low", on="n0", cpu="4", priority=0)
    cluster.pod("high", cpu="6", priority=9)
    cluster.settle()
    placed(cluster, "high", "low")
    cluster.pod("lesser", cpu="2", priority=5)
    cluster.settle()
    assert cluster.place("lesser") == ""
    cluster.gone("low")
    (place,) = cluster.core.reservations.by_uid.values()
    assert reservation_events.step(cluster.core, place, cluster.now, 0.0)
    cluster.now += 4
    cluster.settle()
    assert (cluster.place("high"), cluster.place("lesser")) == ("n0", "")


class DeletingStore:
    """A store without reservations that keeps who was deleted."""

    def __init__(self) -> None:
        self.deleted: asyncio.Queue[str] = asyncio.Queue()

    async def get(self, _ref: objects.Ref) -> objects.Object:
        raise refusals.Forbidden("not here")

    async def create(self, _kind: kinds.Kind, body: objects.Object) -> objects.Object:
        return body

    async def patch(self, _ref: objects.Ref, patch: objects.Strategic, **_: str) -> objects.Object:
        return patch.body

    async def delete(self, ref: objects.Ref, *, uid: str) -> None:
        del uid
        self.deleted.put_nowait(ref.name)


async def test_a_victim_goes_even_if_a_second_preemptor_is_given_the_same_room_first() -> None:
    """The first decision may wait for the store when the second comes, which has nobody to send."""
    cluster = Cluster()
    cluster.node("n0")
    cluster.pod("low", on="n0", cpu="4", priority=0)
    cluster.pod("high", cpu="4", priority=9)
    first = cluster.core.step(cluster.now)
    cluster.pod("higher", cpu="4", priority=99)
    second = cluster.core.step(cluster.now)
    assert isinstance(first, Refusal)
    assert isinstance(second, Refusal)
    assert [[pod.name for pod in each.victims] for each in (first, second)] == [["low"], []]
    assert first.leaving == second.leaving
    store: Any = DeletingStore()
    reporting = reporter.Reporter(
        store,
        cluster.core,
        lambda: 0.0,
        event_messages.EventBuilder("test", lambda: 0.0),
        places=held_place.HeldPlaces(store, cluster.core, lambda: True),
    )
    reporting.refused(first)
    reporting.refused(second)
    lanes = asyncio.ensure_future(reporting.run())
    try:
        async with asyncio.timeout(schedulers.PATIENCE):
            assert await store.deleted.get() == "low"
    finally:
        lanes.cancel()
