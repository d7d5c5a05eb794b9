"""The descheduler over both stores: rounds of a watched cluster, and who answers them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, node_avoidances, objects
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.settings import DisruptionSettings, LimiterSettings
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.objects.eviction_marks import SOFT_EVICTION
from tests.kit import deadline, descheduling, schedulers
from tests.kit.descheduler_scene import FREE, TOO_MANY, ending, played, pod, restarted, scene
from tests.kit.schedulers import both


def settings(**top: Any) -> configuration.DeschedulerSettings:
    """Pods that restarted five times go; nobody is elected."""
    body = descheduling.policy(TOO_MANY, **{"leaderElection": {"leaderElect": False}, **top})
    return configuration.read(body, "test")


@both
async def test_one_round_evicts_what_a_strategy_chooses_and_tells_why(
    ram: Path, *, over_http: bool
) -> None:
    """Through the Eviction API and the limiter; who was evicted avoids the node.

    A pod that nobody would create again stays.
    """
    async with scene(ram, over_http=over_http) as world:
        made = descheduler.Descheduler(world.client, settings(), instance="one", disruption=FREE)
        await made.run(once=True)
        assert await ending(world) == ["often"]
        assert made.core.measures.descheduled == {
            ("success", "RemovePodsHavingTooManyRestarts", "p", "d", "n1"): 1
        }
        assert 'descheduler_pods_evicted_total{result="success"' in made.metrics()
        listing = await objects.collect(world.store.list(kinds.EVENTS))
        (event,) = (each for each in listing.items if each["reason"] == "Moved")
        assert event["note"].endswith("containers restarted 9 times, at most 4")
        (event,) = (each for each in listing.items if each["reason"] == "Descheduled")
        assert event["note"] == "pod evicted by containers restarted 9 times, at most 4"
        assert (event["type"], event["regarding"]["name"]) == ("Normal", "often")
        listing = await objects.collect(world.store.list(kinds.NODE_AVOIDANCES))
        (avoided,) = map(node_avoidances.node_avoidance, listing.items)
        (entry,) = avoided.entries
        assert (avoided.node, entry.until - entry.since) == ("n1", 3600.0)


@both
async def test_a_dry_run_sends_nothing_and_counts_what_would_go(
    ram: Path, *, over_http: bool
) -> None:
    """Also where the configuration alone says so."""
    async with scene(ram, over_http=over_http) as world:
        for dry, more in ((True, {}), (False, {"dryRun": True})):
            made = descheduler.Descheduler(
                world.client, settings(**more), instance="one", dry_run=dry, disruption=FREE
            )
            await made.run(once=True)
            assert made.book.last is not None
            assert [each.resident.pod.name for each in made.book.last.evicted] == ["often"]
        assert await ending(world) == []
        assert not (await objects.collect(world.store.list(kinds.EVENTS))).items


@both
async def test_the_limiter_is_asked_for_each_pod(ram: Path, *, over_http: bool) -> None:
    """One workload of two pods that are up loses one of them at a time."""
    async with scene(ram, over_http=over_http) as world:
        await pod(world, "rarely2", restarted(7))
        made = descheduler.Descheduler(world.client, settings(), instance="one", disruption=FREE)
        await made.run(once=True)
        assert made.book.last is not None
        assert [each.resident.pod.name for each in made.book.last.evicted] == ["often"]
        (refused,) = made.round_document()["refused"]
        assert refused["why"].startswith("ControllerRate: ")


@both
async def test_the_clusters_rate_ends_a_strategy_and_is_told(ram: Path, *, over_http: bool) -> None:
    """Of two pods one is asked about: an event, the count, a note; no event in a dry run."""
    async with scene(ram, over_http=over_http) as world:
        await pod(world, "rarely2", restarted(7))
        closed = DisruptionSettings(limiter=LimiterSettings(per_minute=0))
        for dry in (True, False):
            made = descheduler.Descheduler(
                world.client, settings(), instance="one", dry_run=dry, disruption=closed
            )
            await made.run(once=True)
            (refused,) = made.round_document()["refused"]
            assert refused["why"].startswith("GlobalRate: the cluster may see 0 evictions")
            (note,) = made.round_document()["notes"]
            assert note["message"].startswith("limit of the whole cluster reached: ")
            events = (await objects.collect(world.store.list(kinds.EVENTS))).items
            assert [each["reason"] for each in events] == ([] if dry else ["MoveRefused"])
            counted = made.core.measures.descheduled
            assert [result for result, *_ in counted] == ["limit of the whole cluster reached"]
        assert await ending(world) == []


async def test_a_cluster_that_cannot_be_read_costs_its_round_alone(ram: Path) -> None:
    """The error is logged, the last round stays what it was, and the next comes."""

    class Blind(descheduler.Descheduler):
        sees = False

        def state(self) -> ClusterState:
            if not self.sees:
                raise ValueError("a claim of no form")
            return super().state()

    async with scene(ram, over_http=False) as world:
        made = Blind(world.client, settings(), instance="one", disruption=FREE)
        await made.run(once=True)
        assert (made.book.last, await ending(world)) == (None, [])
        made.sees = True
        assert len((await made.round()).evicted) == 1


@both
async def test_of_two_deschedulers_one_acts(ram: Path, *, over_http: bool) -> None:
    """The second waits for the lease, and has it when the first is told to stop."""
    async with scene(ram, over_http=over_http) as world:
        both_elect = settings(
            leaderElection={"resourceNamespace": "d", "retryPeriod": "100ms",
                            "renewDeadline": "5s", "leaseDuration": "10s"},
            dryRun=True,
        )  # fmt: skip
        several = [
            descheduler.Descheduler(world.client, both_elect, instance=name, disruption=FREE)
            for name in ("one", "two")
        ]
        first, second = (asyncio.ensure_future(each.run()) for each in several)
        try:
            await deadline.comes(lambda: any(each.beat for each in several), seconds=30.0)
            leads = [each.ready for each in several]
            assert leads.count(True) == 1
            (first if leads[0] else second).cancel()
            await deadline.comes(lambda: several[leads.index(False)].beat, seconds=30.0)
        finally:
            for task in (first, second):
                task.cancel()
            await asyncio.gather(first, second, return_exceptions=True)


@both
async def test_failed_pods_are_seen_though_the_scheduler_has_forgotten_them(
    ram: Path, *, over_http: bool
) -> None:
    """They hold no room, and are evicted all the same."""
    async with schedulers.world(ram, over_http=over_http) as world:
        await world.node("n1")
        await world.node("n2")
        await pod(world, "failed", restarted(0, "Failed"))
        body = descheduling.policy(
            {"RemoveFailedPods": {"minPodLifetimeSeconds": 0}},
            leaderElection={"leaderElect": False},
        )
        made = descheduler.Descheduler(
            world.client, configuration.read(body, "test"), instance="one",
            dry_run=True, disruption=FREE,
        )  # fmt: skip
        await made.run(once=True)
        assert made.book.last is not None
        assert [each.resident.pod.name for each in made.book.last.evicted] == ["failed"]


@both
@pytest.mark.parametrize("own", [{}, {"defaultDeleteOptions": {"gracePeriodSeconds": 7}}])
async def test_soft_eviction_writes_the_peers_annotation_and_the_pod_stays(
    ram: Path, own: dict[str, Any], *, over_http: bool
) -> None:
    """Its form is the peer's, numbers as text; the grace period is anybody's who says one."""
    async with scene(ram, over_http=over_http) as world:
        evictor = {"defaultJobMode": "EvictDirectly", "evictionPolicy": "SoftEviction", **own}
        seconds = None if own else 7
        made = await played(world, TOO_MANY, evictor=evictor, gracePeriodSeconds=seconds)
        assert made.book.last is not None
        assert [each.resident.pod.name for each in made.book.last.evicted] == ["often"]
        pods = await world.pods()
        assert {"often", "rarely", "bare"} == pods.keys()
        assert await ending(world) == []
        note = json.loads(pods["often"]["metadata"]["annotations"][SOFT_EVICTION])
        assert int(note.pop("timestamp")) > 1_600_000_000
        assert note == {
            "deleteOptions": {"gracePeriodSeconds": 7},
            "initiator": "descheduler/RemovePodsHavingTooManyRestarts",
            "reason": "containers restarted 9 times, at most 4",
        }
        assert SOFT_EVICTION not in pods["rarely"]["metadata"].get("annotations", {})


@both
async def test_delete_deletes_the_pod_with_its_uid_and_asks_for_no_eviction(
    ram: Path, *, over_http: bool
) -> None:
    """Also where the pod's label says so and the configuration does not."""
    async with scene(ram, over_http=over_http) as world:
        labels = {"koordinator.sh/evict-policy": "Delete"}
        ref = objects.Ref(kinds.PODS, "often", "d")
        await world.store.patch(ref, objects.Merge({"metadata": {"labels": labels}}))
        await played(world, TOO_MANY, evictor={"defaultJobMode": "EvictDirectly"})
        assert await ending(world) == ["often"]
        if world.serving is not None:
            path = "/api/v1/namespaces/d/pods/often"
            assert world.serving.asked("DELETE", path)
            assert not world.serving.asked("POST", f"{path}/eviction")


@both
async def test_a_node_is_cordoned_before_its_pods_go_and_not_where_nothing_is_sent(
    ram: Path, *, over_http: bool
) -> None:
    """A dry run leaves the node as it is, and so does a budget that lets nobody go."""
    levels = [
        {"name": name, "nodeSelector": {"matchLabels": {"price": name}}}
        for name in ("dear", "cheap")
    ]
    drain = {"CustomPriority": {"mode": "DrainNode", "autoCordon": True, "evictionOrder": levels}}
    async with schedulers.world(ram, over_http=over_http) as world:
        for name, price in (("n1", "dear"), ("n2", "cheap")):
            await world.node(name, labels={"price": price})
        await pod(world, "often", restarted(0))
        ref = objects.Ref(kinds.NODES, "n1")
        made = await played(world, drain, dry_run=True)
        assert made.book.last is not None
        assert [each.resident.pod.name for each in made.book.last.evicted] == ["often"]
        assert not (await world.store.get(ref))["spec"].get("unschedulable")
        meta = {"name": "b", "namespace": "d", "generation": 1}
        budget = {"metadata": meta, "spec": {"maxUnavailable": 0, "selector": {}}}
        await world.store.create(kinds.POD_DISRUPTION_BUDGETS, budget)
        made = await played(world, drain)
        assert made.book.last is not None
        assert made.book.last.decisions[0].why.startswith("PDB: ")
        if world.serving is not None:  # the next round asks again
            path = "/api/v1/namespaces/d/pods/often/eviction"
            assert len(world.serving.asked("POST", path)) == 1
        assert not (await world.store.get(ref))["spec"].get("unschedulable")
        await world.store.delete(objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "b", "d"))
        await played(world, drain)
        assert (await world.store.get(ref))["spec"]["unschedulable"] is True
        gone = (await world.pods()).get("often", {"metadata": {"deletionTimestamp": "now"}})
        assert gone["metadata"].get("deletionTimestamp")
