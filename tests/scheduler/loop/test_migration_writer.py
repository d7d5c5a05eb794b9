"""What a job says of itself: that it moves a gang, that it is of a drain or a plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.migration import job
from tests.kit.descheduler_scene import FREE
from tests.kit.migration_scene import JOBS, Cluster, scene
from tests.kit.schedulers import OWNER, both

#: One eviction at once in the whole cluster.
NARROW = dataclasses.replace(FREE, limiter=dataclasses.replace(FREE.limiter, in_flight=1))
GANG = {
    "gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "3",
}  # fmt: skip


async def _gang(cluster: Cluster, *names: str) -> None:
    """Workers of one gang, up on the first node."""
    for name in names:
        pod = await cluster.world.pod(name, on="n1", meta={**OWNER, "annotations": GANG}, cpu="1")
        await cluster.up(pod)


def _leaving(pods: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [name for name, body in pods.items() if "deletionTimestamp" in body["metadata"]]


@both
async def test_a_gang_leaves_whole_once_room_is_held_for_each_member(
    ram: Path, *, over_http: bool
) -> None:
    """One job asks for all, where one eviction at once is the bound; without it the gang stays."""
    old, new = ("w-1", "w-2", "w-3"), ("w-4", "w-5", "w-6")
    async with scene(ram, over_http=over_http, disruption=NARROW) as cluster:
        await _gang(cluster, *old)
        status = await cluster.job(await cluster.ask("w-1"), "Failed")
        assert status["reason"] == "ForbiddenMigratePod"
        assert "one alone cannot be moved" in status["message"]
        name = await cluster.ask("w-1", gang=True, ttl_seconds=300)
        pods = await cluster.world.until(lambda known: len(_leaving(known)) == 3)
        assert sorted(_leaving(pods)) == list(old)
        held = (await cluster.reservations()).values()
        assert [each["status"]["phase"] for each in held] == ["Available"] * 3
        assert all(each["status"]["nodeName"] != "n1" for each in held)
        for pod in old:
            await cluster.gone(pod)
        for pod in new:
            meta = {**OWNER, "annotations": GANG}
            await cluster.world.pod(pod, meta=meta, cpu="1")
        placed = await cluster.world.until_placed(*new)
        for pod in new:
            assert placed[pod] != "n1"
            await cluster.up(objects.Ref(kinds.PODS, pod, "d"))
        for each in (name, f"{name}.w-2", f"{name}.w-3"):
            assert (await cluster.job(each, "Succeeded", "Failed"))["phase"] == "Succeeded"


async def test_a_gang_of_which_one_finds_no_room_stays_whole_and_gives_all_room_back(
    ram: Path,
) -> None:
    """Until its leader's time is over, and then nobody has left."""
    async with scene(ram, over_http=False) as cluster:
        await _gang(cluster, "w-1", "w-2")
        large = {**OWNER, "annotations": GANG}
        await cluster.up(await cluster.world.pod("w-3", on="n1", meta=large, cpu="100"))
        name = await cluster.ask("w-1", gang=True)

        def waits(known: Mapping[str, Any]) -> bool:
            message = known[name].get("status", {}).get("message")
            return bool(message == "1 of 2 others of its gang have room")

        body = (await cluster.world.until(waits, JOBS))[name]
        assert body["status"]["reason"] == "WaitForGang"
        note = {"metadata": {"annotations": {job.ABORT: "true"}}}
        await cluster.world.store.patch(objects.Ref(JOBS, name), objects.Merge(note))
        for number in (2, 3):
            status = await cluster.job(f"{name}.w-{number}", "Failed")
            assert status["message"] == f'job "{name}", which moves the gang, is over'
        await cluster.world.until(lambda known: not known, kinds.RESERVATIONS)
        assert _leaving(await cluster.world.pods()) == []


async def test_a_job_that_only_says_that_it_is_of_a_drain_or_a_plan_passes_no_bounds(
    ram: Path,
) -> None:
    """It waits until its node is cordoned, and again after; no plan has made the other."""
    async with scene(ram, over_http=False) as cluster:
        await cluster.budget(0)
        drains = await cluster.ask(by="drain/n1")
        planned = await cluster.ask("web-2", by="plan/p", plan="u")
        (reference,) = OWNER["ownerReferences"]
        other = {"ownerReferences": [{**reference, "name": "db", "uid": "uid-db"}]}
        await cluster.world.pod("db", meta=other, cpu="1", on="n1")
        elsewhere = await cluster.ask("db", by="drain/n2")

        async def says(name: str, reason: str, message: str) -> None:
            def there(known: Mapping[str, Any]) -> bool:
                status = known.get(name, {}).get("status", {})
                return (status.get("reason"), status.get("message", "")[: len(message)]) == (
                    reason, message,
                )  # fmt: skip

            await cluster.world.until(there, JOBS)

        async def cordon(*, on: bool) -> None:
            patch = objects.Merge({"spec": {"unschedulable": on}})
            await cluster.world.store.patch(objects.Ref(kinds.NODES, "n1"), patch)

        await says(planned, "NotInPlan", "the job is of plan/p, and no plan")
        drained = "the job is of drain/n1, and its pod is on node n1, which is not cordoned"
        await says(drains, "NotDrained", drained)
        there = "the job is of drain/n2, and its pod is on node n1, another one"
        await says(elsewhere, "NotDrained", there)
        await cordon(on=True)
        await says(drains, "FailedEvict", "PDB: ")
        await cordon(on=False)
        await says(drains, "FailedEvict", "NotDrained: ")
        assert _leaving(await cluster.world.pods()) == []
