"""What an operator does with a descheduler, from its file to the last condition of a job.

Covers: the peer's article, pods of each kind of controller, a rollout meanwhile, a user who is
faster. Does not cover: each step by itself (``test_migration_controller``, ``test_flow``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import job
from tests.kit.descheduler_scene import FREE, restarted
from tests.kit.migration_scene import APP, JOBS, Cluster, scene
from tests.kit.schedulers import OWNER
from tests.scheduler.descheduling.test_configuration import ARTICLE


def owner(kind: str, name: str) -> dict[str, Any]:
    """The metadata of a pod of this controller."""
    reference = {"apiVersion": "v1", "kind": kind, "name": name, "uid": f"u-{name}",
                 "controller": True}  # fmt: skip
    return {"ownerReferences": [reference]}


async def holder(cluster: Cluster) -> Mapping[str, Any]:
    """The one reservation."""
    (held,) = (await cluster.reservations()).values()
    status: Mapping[str, Any] = held["status"]
    return status


async def waits(cluster: Cluster, name: str) -> None:
    """The pod of a job is gone, and nobody has taken its room."""

    def there(known: Mapping[str, Any]) -> bool:
        status = known[name].get("status", {})
        return bool(status.get("reason") == "WaitForPodBindReservation")

    await cluster.world.until(there, JOBS)


async def deschedule(cluster: Cluster, text: str) -> descheduler.Descheduler:
    """One round of a configuration file, and its jobs until they are over."""
    settings = configuration.read(yaml.safe_load(text), "koord.yaml")
    made = descheduler.Descheduler(cluster.world.client, settings, instance="one", disruption=FREE)
    await made.run(once=True)
    return made


async def test_the_articles_file_first_shows_and_then_moves_the_pod_that_restarted_ten_times(
    ram: Path,
) -> None:
    """As it is printed: nothing is written. With ``dryRun: false`` a job moves it, and that one."""
    async with scene(ram, over_http=False, runs=False) as cluster:
        await cluster.up(await cluster.world.pod("web-3", on="n1", meta=OWNER, labels=APP))
        for name, count in (("web-1", 10), ("web-2", 9)):
            ref = objects.Ref(kinds.PODS, name, "d")
            patch = objects.Merge({"status": restarted(count)})
            await cluster.world.store.patch(ref, patch, subresource="status")
        shown = await deschedule(cluster, ARTICLE)
        assert [move["pod"] for move in shown.round_document()["moves"]] == ["d/web-1"]
        assert not (await objects.collect(cluster.world.store.list(JOBS))).items
        acts = asyncio.ensure_future(
            deschedule(cluster, ARTICLE.replace("dryRun: true", "dryRun: false"))
        )
        await cluster.asked("web-1")
        await cluster.gone("web-1")
        await cluster.up(await cluster.world.pod("web-4", meta=OWNER, labels=APP, cpu="1"))
        await acts
        (made,) = (await objects.collect(cluster.world.store.list(JOBS))).items
        assert made["metadata"]["annotations"][job.REASON].startswith("containers restarted 10")
        assert made["status"]["phase"] == "Succeeded"
        assert {"web-2", "web-3"} < (await cluster.world.pods()).keys()


@pytest.mark.parametrize(
    ("kind", "name", "next_name"),
    [("StatefulSet", "db-0", "db-0"), ("Job", "batch-x", "batch-y")],
)
async def test_the_next_pod_of_a_controller_takes_the_room_whatever_its_name(
    ram: Path, kind: str, name: str, next_name: str
) -> None:
    """A StatefulSet gives it the same name: another UID is another pod."""
    async with scene(ram, over_http=False) as cluster:
        more = {"meta": owner(kind, "set"), "cpu": "1"}
        await cluster.up(await cluster.world.pod(name, on="n1", **more))
        before = (await cluster.world.pods())[name]["metadata"]["uid"]
        asked = await cluster.ask(name)
        await cluster.asked(name)
        await cluster.gone(name)
        await waits(cluster, asked)
        target = (await holder(cluster))["nodeName"]
        await cluster.up(await cluster.world.pod(next_name, **more))
        status = await cluster.job(asked, "Succeeded", "Failed")
        assert (status["phase"], status["nodeName"]) == ("Succeeded", target)
        after = (await cluster.world.pods())[next_name]
        assert after["spec"]["nodeName"] == target
        assert status["podRef"]["uid"] == after["metadata"]["uid"] != before


async def test_during_a_rollout_the_room_is_for_pods_of_the_old_template(ram: Path) -> None:
    """A pod of the next ReplicaSet goes elsewhere; when it is undone, the room is there."""
    async with scene(ram, over_http=False) as cluster:
        asked = await cluster.ask()
        await cluster.asked("web-1")
        await cluster.gone("web-1")
        await waits(cluster, asked)
        target = (await holder(cluster))["nodeName"]
        # As much as is free beside what is held: on the node of the room it finds no place.
        new = {"meta": owner("ReplicaSet", "web-next"), "labels": APP, "cpu": "3500m"}
        await cluster.up(await cluster.world.pod("next-1", **new))
        placed = await cluster.world.until_placed("next-1")
        assert placed["next-1"] not in {"n1", target}
        assert not (await holder(cluster)).get("currentOwners")
        assert (await cluster.job(asked, "Running"))["reason"] == "WaitForPodBindReservation"
        await cluster.up(await cluster.world.pod("web-3", meta=OWNER, labels=APP, cpu="1"))
        status = await cluster.job(asked, "Succeeded", "Failed")
        assert (status["phase"], status["podRef"]["name"]) == ("Succeeded", "web-3")
        assert (await cluster.world.placed())["web-3"] == target


async def test_a_pod_that_its_user_deletes_while_its_budget_refuses_still_finds_its_room(
    ram: Path,
) -> None:
    """Room is held, and the eviction waits; then the pod is gone without it."""
    async with scene(ram, over_http=False) as cluster:
        await cluster.budget(0)
        asked = await cluster.ask()

        def refused(known: Mapping[str, Any]) -> bool:
            return bool(known[asked].get("status", {}).get("reason") == "FailedEvict")

        await cluster.world.until(refused, JOBS)
        await cluster.gone("web-1")
        await waits(cluster, asked)
        await cluster.up(await cluster.world.pod("web-3", meta=OWNER, labels=APP, cpu="1"))
        status = await cluster.job(asked, "Succeeded", "Failed")
        assert (status["phase"], status["podRef"]["name"]) == ("Succeeded", "web-3")
        assert (await cluster.world.placed())["web-3"] == status["nodeName"]
        assert "deletionTimestamp" not in (await cluster.world.pods())["web-2"]["metadata"]


@pytest.mark.parametrize("ahead", [-30, 30])
async def test_a_job_ends_where_the_clock_of_the_server_is_another(ram: Path, ahead: int) -> None:
    """The server dates pods: by a clock that is ahead, what comes would have been there before."""
    async with scene(ram, over_http=True, ahead=ahead) as cluster:
        name = await cluster.ask()
        await cluster.asked("web-1")
        await cluster.up(await cluster.world.pod("web-3", meta=OWNER, labels=APP, cpu="1"))
        await cluster.gone("web-1")
        status = await cluster.job(name, "Succeeded", "Failed")
        assert (status["phase"], status["podRef"]["name"]) == ("Succeeded", "web-3")


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_workload_that_wants_no_pod_after_the_eviction_ends_the_job_and_gives_the_room_back(
    ram: Path, *, deleted: bool
) -> None:
    """Its ReplicaSet has as many pods as it wants, or is gone: nobody waits for another pod."""
    async with scene(ram, over_http=False) as cluster:
        store, meta = cluster.world.store, {"name": "web", "namespace": "d"}
        wanted = {"metadata": meta, "spec": {"replicas": 2, "selector": {}}}
        await store.create(kinds.REPLICA_SETS, wanted)
        name = await cluster.ask()
        await cluster.asked("web-1")
        await cluster.gone("web-1")
        await waits(cluster, name)
        ref = objects.Ref(kinds.REPLICA_SETS, "web", "d")
        if deleted:
            await store.delete(ref)
            await store.delete(objects.Ref(kinds.PODS, "web-2", "d"), grace_seconds=0)
        else:
            await store.patch(ref, objects.Merge({"spec": {"replicas": 1}}))
        status = await cluster.job(name, "Succeeded", "Failed")
        assert (status["phase"], status["status"]) == ("Succeeded", "Complete")
        assert status["message"].endswith("its controller wants no other pod instead")
        await cluster.world.until(lambda known: not known, kinds.RESERVATIONS)
