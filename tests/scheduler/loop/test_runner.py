"""The loop over both stores: pods get nodes, once each, whatever goes wrong on the way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import elastic_quotas, kinds, objects
from koordlet.scheduler.framework import queue
from koordlet.scheduler.loop import election, runner
from tests.kit import clusters, deadline, schedulers
from tests.kit.apiserver import faults

both = pytest.mark.parametrize("over_http", [False, True], ids=["file", "http"])


@both
async def test_pods_get_nodes(ram: Path, *, over_http: bool) -> None:
    """What is there before the start and what comes later is bound; an event says so."""
    async with schedulers.world(ram, over_http=over_http) as world:
        await world.node("n1", cpu="2")
        await world.pod("before", cpu="1")
        async with schedulers.scheduler(world.client):
            await world.until_placed("before")
            await world.pod("after", cpu="1")
            assert await world.until_placed("after") == {"before": "n1", "after": "n1"}
            events = await world.until(lambda known: len(known) == 2, kinds.EVENTS)
        assert {event["reason"] for event in events.values()} == {"Scheduled"}


@both
async def test_who_has_no_place_is_told_and_placed_when_there_is_one(
    ram: Path, *, over_http: bool
) -> None:
    """The condition says why, in the words of the peer; a node that comes is tried."""
    async with schedulers.world(ram, over_http=over_http) as world:
        await world.node("n1", cpu="1")
        await world.pod("big", cpu="2")
        async with schedulers.scheduler(world.client):
            message = await world.until_told("big")
            assert message.startswith("0/1 nodes are available: 1 Insufficient cpu. no new claims")
            await world.node("n2", cpu="4")
            assert await world.until_placed("big") == {"big": "n2"}


@both
async def test_a_restart_loses_and_doubles_nothing(ram: Path, *, over_http: bool) -> None:
    """A second scheduler counts what the first one bound."""
    async with schedulers.world(ram, over_http=over_http) as world:
        await world.node("n1", cpu="2")
        await world.pod("a", cpu="1")
        async with schedulers.scheduler(world.client):
            await world.until_placed("a")
        await world.pod("b", cpu="1")
        await world.pod("c", cpu="1")
        async with schedulers.scheduler(world.client):
            await world.until(
                lambda known: sum("nodeName" in body["spec"] for body in known.values()) == 2
            )
            waiting = ({"b", "c"} - (await world.placed()).keys()).pop()
            await world.until_told(waiting, "Insufficient cpu")


async def test_a_preemptor_gets_the_place_of_its_victim(ram: Path) -> None:
    """The victim is told and deleted; the preemptor is nominated, then bound."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n1", cpu="2")
        low = await world.pod("low", cpu="2", priority=1)
        async with schedulers.scheduler(world.client):
            await world.until_placed("low")
            await world.pod("high", cpu="2", priority=9)
            pods = await world.until(
                lambda known: (
                    bool(known["low"]["metadata"].get("deletionTimestamp"))
                    and bool(known["high"].get("status", {}).get("nominatedNodeName"))
                )
            )
            target = pods["low"]["status"]["conditions"][-1]
            assert target["reason"] == "PreemptionByScheduler"
            assert target["observedGeneration"] == 2, "it was made, and bound"
            assert pods["high"]["status"]["nominatedNodeName"] == "n1"
            await world.store.delete(low, grace_seconds=0)
            assert await world.until_placed("high") == {"high": "n1"}


@pytest.mark.parametrize(
    "fault",
    [
        faults.Fault(faults.Manner.RESET, "POST", "/api/v1/namespaces/d/pods", times=2),
        faults.Fault(faults.Manner.ANSWER, "POST", "/api/v1/namespaces/d/pods", times=2),
        faults.Fault(
            faults.Manner.ANSWER, "POST", "/api/v1/namespaces/d/pods", times=1, status=409
        ),
    ],
    ids=["reset", "500", "409"],
)
async def test_a_binding_that_fails_is_tried_again(ram: Path, fault: faults.Fault) -> None:
    """The pod is bound in the end, once, and nothing is assumed for ever."""
    async with schedulers.world(ram, over_http=True) as world:
        assert world.serving is not None
        world.serving.faults.add(fault)
        await world.node("n1", cpu="1")
        await world.pod("p", cpu="1")
        async with schedulers.scheduler(world.client) as loop:
            assert await world.until_placed("p") == {"p": "n1"}
            await world.node("n2", cpu="1")
            await world.pod("q", cpu="1")
            assert await world.until_placed("q") == {"p": "n1", "q": "n2"}
            assert len(loop.core.pod_cache) == 2


async def test_a_binding_whose_answer_is_lost_is_taken_for_what_it_was(ram: Path) -> None:
    """The store bound the pod and nobody heard of it: it is not tried elsewhere."""
    async with schedulers.world(ram, over_http=True) as world:
        assert world.serving is not None
        path = "/api/v1/namespaces/d/pods/p/binding"
        world.serving.faults.add(faults.Fault(faults.Manner.HOLD, "POST", path))
        await world.node("n1")
        await world.node("n2")
        ref = await world.pod("p", cpu="1")
        async with schedulers.scheduler(world.client):
            await world.until_seen("POST", path)
            await world.store.bind(ref, "n1")
            world.serving.go_on.set()
            await world.pod("q", cpu="1", nodeSelector={"kubernetes.io/hostname": "n2"})
            assert await world.until_placed("q") == {"p": "n1", "q": "n2"}
        assert len(world.serving.asked("POST", path)) == 1


async def test_a_pod_that_cannot_be_read_is_told_so_and_costs_only_itself(ram: Path) -> None:
    """Its message names the field; another pod is placed."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n1")
        await world.pod("bad", requests={"cpu": "-1"})
        await world.pod("good", cpu="1")
        async with schedulers.scheduler(world.client):
            assert await world.until_placed("good") == {"good": "n1"}
            message = await world.until_told("bad")
            assert "requests.cpu is negative" in message


async def test_a_node_that_vanishes_gives_its_pods_back_when_it_returns(ram: Path) -> None:
    """Its pods hold no room meanwhile, and hold it again afterwards."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n1", cpu="2")
        await world.pod("a", cpu="2")
        async with schedulers.scheduler(world.client) as loop:
            await world.until_placed("a")
            await world.store.delete(objects.Ref(kinds.NODES, "n1"))
            await world.pod("b", cpu="1")
            await world.until_told("b", "no nodes available")
            assert loop.core.pod_cache.homeless() == 1
            await world.node("n1", cpu="2")
            await world.until_told("b", "Insufficient cpu")


async def test_a_placement_wakes_whom_it_may_help(ram: Path) -> None:
    """Who wants a neighbour is tried when one comes; who lacks room is not."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n1", cpu="2")
        near = clusters.affinity("podAffinity", clusters.HOST)
        await world.pod("lonely", cpu="1", affinity=near)
        await world.pod("big", cpu="8")
        async with schedulers.scheduler(world.client) as loop:
            await world.until_told("lonely", "didn't match pod affinity rules")
            await world.until_told("big", "Insufficient cpu")
            await world.pod("web", cpu="1", labels={"app": "web"})
            assert await world.until_placed("web", "lonely") == {"web": "n1", "lonely": "n1"}
            waiting = loop.core.queue.get("d/big")
            assert waiting is not None
            assert queue.QueuePlace.UNSCHEDULABLE is waiting.place


@both
async def test_quotas_are_followed_and_whom_they_mean_is_told(
    ram: Path, *, over_http: bool
) -> None:
    """A pod beyond its namespace's quota waits and its condition says so; without it, it runs."""
    custom = [kinds.RESERVATIONS, kinds.ELASTIC_QUOTAS]
    async with schedulers.world(ram, over_http=over_http, custom=custom) as world:
        await world.node("n1", cpu="2")
        meta = {"name": "d", "namespace": "d"}
        await world.store.create(
            kinds.ELASTIC_QUOTAS, {"metadata": meta, "spec": {"max": {"cpu": "500m"}}}
        )
        await world.pod("p", cpu="1")
        async with schedulers.scheduler(world.client):
            message = await world.until_told("p")
            assert "Insufficient quotas, quotaName: d, runtime: cpu:500m" in message
            await world.store.delete(objects.Ref(kinds.ELASTIC_QUOTAS, "d", "d"))
            assert await world.until_placed("p") == {"p": "n1"}


@pytest.mark.parametrize("part", ["annotations", "labels"])
async def test_a_namespace_that_names_another_quota_moves_its_pods_there_at_once(
    ram: Path, part: str
) -> None:
    """Nothing else of it changes, and nothing else happens in the cluster."""
    custom = [kinds.RESERVATIONS, kinds.ELASTIC_QUOTAS]
    async with schedulers.world(ram, over_http=False, custom=custom) as world:
        await world.node("n1", cpu="4")
        for quota, most in (("small", "500m"), ("large", "4")):
            meta = {"name": quota, "namespace": "quotas"}
            spec = {"spec": {"max": {"cpu": most}}}
            await world.store.create(kinds.ELASTIC_QUOTAS, {"metadata": meta, **spec})

        async def name(quota: str) -> None:
            patch = objects.Merge({"metadata": {part: {elastic_quotas.NAME: quota}}})
            await world.store.patch(objects.Ref(kinds.NAMESPACES, "d"), patch)

        await name("small")
        await world.pod("p", cpu="1")
        async with schedulers.scheduler(world.client):
            assert "quotaName: small" in await world.until_told("p")
            await name("large")
            assert await world.until_placed("p") == {"p": "n1"}


TEAM: Any = {"namespaceSelector": {"matchLabels": {"team": "a"}}}


async def labelled(world: schedulers.World, name: str) -> None:
    """The namespace belongs to the team from now on."""
    patch = objects.Merge({"metadata": {"labels": {"team": "a"}}})
    await world.store.patch(objects.Ref(kinds.NAMESPACES, name), patch)


async def test_labels_of_a_namespace_wake_whom_a_term_lets_in(ram: Path) -> None:
    """Nothing else happens in the cluster: it is tried at once."""
    async with schedulers.scheduled(ram) as (world, _):
        await world.node("n1")
        await world.store.create(kinds.NAMESPACES, {"metadata": {"name": "x"}})
        await world.pod("cache", namespace="x", labels={"app": "cache"}, cpu="1")
        near = clusters.affinity("podAffinity", clusters.HOST, app="cache", **TEAM)
        await world.pod("near", affinity=near, cpu="1")
        await world.until_told("near", "pod affinity rules")
        await labelled(world, "x")
        await world.until_placed("near")


async def test_labels_of_a_namespace_count_for_a_class_of_which_no_pod_has_a_node(
    ram: Path,
) -> None:
    """A pod that is there keeps the whole team away from its node, from now on."""
    async with schedulers.scheduled(ram) as (world, _):
        await world.node("n1", cpu="4")
        await world.store.create(kinds.NAMESPACES, {"metadata": {"name": "x"}})
        apart = clusters.affinity("podAntiAffinity", clusters.HOST, **TEAM)
        await world.pod("there", affinity=apart, cpu="1")
        await world.until_placed("there")
        await world.pod("web", namespace="x", labels={"app": "web"}, cpu="8")
        await world.until_told("web", "Insufficient cpu")
        await labelled(world, "x")
        more = {"status": {"allocatable": {"cpu": "16"}}}
        ref = objects.Ref(kinds.NODES, "n1")
        await world.store.patch(ref, objects.Merge(more), subresource="status")
        await world.until_told("web", "existing pods anti-affinity rules")


async def test_a_replica_that_stands_by_forgets_what_nobody_has_any_more(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For months, where the leader is well."""
    monkeypatch.setattr(runner, "_TIDY", 0.01)
    terms = election.Terms()
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n")
        first = election.Election(world.store, "one", time.monotonic, time.time, terms)
        await first.acquire()
        async with schedulers.scheduler(world.client, terms=terms, instance="two") as loop:
            waiting = loop.core.queue
            for number in range(100):
                pod = await world.pod("p", labels={"of": f"p{number}"})
                await deadline.comes(lambda: waiting.get("d/p") is not None)
                if not number:
                    nominated = objects.Merge({"status": {"nominatedNodeName": "n"}})
                    await world.store.patch(pod, nominated, subresource="status")
                    await deadline.comes(lambda: bool(loop.core.nominated.on("n")))
                await world.store.delete(pod, grace_seconds=0)
                await deadline.comes(lambda: waiting.get("d/p") is None)
            await deadline.comes(lambda: not loop.core.nominated.withdrawn)
            await deadline.comes(lambda: len(loop.core.decoder) < 100)
            assert not loop.ready
