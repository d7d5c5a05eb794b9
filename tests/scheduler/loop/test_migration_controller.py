"""Migration jobs over both stores, beside a scheduler: whole lives, and what is left of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, node_avoidances, objects, refusals
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import job
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from tests.kit import deadline, descheduling, schedulers
from tests.scheduler.loop.test_descheduler import FREE, OWNER, READY
from tests.scheduler.loop.test_gangs import both

JOBS = kinds.POD_MIGRATION_JOBS
APP = {"app": "web"}
WEB_2 = PodRef("d", "web-2")
BUDGET = {
    "metadata": {"name": "b", "namespace": "d"},
    "spec": {"selector": {"matchLabels": APP}, "minAvailable": 2},
}
CLOSED = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2,
          "observedGeneration": 1}  # fmt: skip
KINDS = (kinds.RESERVATIONS, JOBS, kinds.NODE_AVOIDANCES)


def settings(**arguments: Any) -> configuration.DeschedulerSettings:
    """A Koordinator configuration without strategies; nobody is elected."""
    body = descheduling.policy(leaderElection={"leaderElect": False})
    body["kind"] = "DeschedulerConfiguration"
    body["profiles"][0]["pluginConfig"].append(
        {
            "name": "MigrationController",
            "args": {"arbitrationArgs": {"interval": "50ms"}} | arguments,
        }
    )
    return configuration.read(body, "test")


class Cluster:
    """Three nodes, a ReplicaSet of two pods that are up on the first of them."""

    def __init__(self, world: schedulers.World) -> None:
        self.world = world

    async def fill(self) -> None:
        """Make it."""
        for name in ("n1", "n2", "n3"):
            await self.world.node(name)
        for name in ("web-1", "web-2"):
            await self.up(await self.world.pod(name, on="n1", meta=OWNER, labels=APP, cpu="1"))
        # Objects have whole seconds: a sibling of the second in which room is opened would be taken
        # for the replacement.
        filled = int(time.time())
        await deadline.comes(lambda: int(time.time()) > filled)

    async def up(self, ref: objects.Ref) -> None:
        """A pod is ready."""
        await self.world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")

    async def ask(self, name: str = "web-1", **more: Any) -> str:
        """A new job; its name."""
        body = job.request(PodRef("d", name), **more)
        made = await self.world.store.create(JOBS, body)
        return objects.text(made, "name")

    async def job(self, name: str, *phases: str) -> Mapping[str, Any]:
        """The status of a job in one of these phases."""

        def there(known: Mapping[str, Any]) -> bool:
            return known.get(name, {}).get("status", {}).get("phase") in phases

        body = (await self.world.until(there, JOBS))[name]
        status: Mapping[str, Any] = body["status"]
        return status

    async def budget(self, allowed: int) -> None:
        """A PodDisruptionBudget that lets so many go."""
        ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "b", "d")
        with contextlib.suppress(refusals.AlreadyExists):
            await self.world.store.create(ref.kind, BUDGET)
        status = {**CLOSED, "disruptionsAllowed": allowed}
        await self.world.store.patch(ref, objects.Merge({"status": status}), subresource="status")

    async def asked(self, name: str) -> None:
        """Wait until a pod is to go."""
        await self.world.until(lambda known: "deletionTimestamp" in known[name]["metadata"])

    async def gone(self, name: str) -> None:
        """Its kubelet has stopped a pod."""
        await self.world.store.delete(objects.Ref(kinds.PODS, name, "d"), grace_seconds=0)

    async def reservations(self) -> dict[str, Any]:
        """All reservations."""
        listing = await objects.collect(self.world.store.list(kinds.RESERVATIONS))
        return {objects.text(body, "name"): body for body in listing.items}


@asynccontextmanager
async def scene(
    ram: Path, *, over_http: bool, runs: bool = True, **arguments: Any
) -> AsyncGenerator[Cluster]:
    """The cluster, with a scheduler and a descheduler at work."""
    async with (
        schedulers.world(ram, over_http=over_http, custom=KINDS) as world,
        schedulers.scheduler(world.client),
    ):
        cluster = Cluster(world)
        await cluster.fill()
        if not runs:
            yield cluster
            return
        async with working(world, **arguments):
            yield cluster


@asynccontextmanager
async def working(
    world: schedulers.World, disruption: DisruptionSettings = FREE, **arguments: Any
) -> AsyncGenerator[descheduler.Descheduler]:
    """A descheduler at work."""
    made = descheduler.Descheduler(
        world.client, settings(**arguments), instance="one", disruption=disruption
    )
    task = asyncio.ensure_future(made.run())
    try:
        await deadline.comes(lambda: made.ready, seconds=30.0)
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@both
def test_a_job_holds_room_before_its_pod_goes_and_ends_when_the_replacement_is_ready(
    ram: Path, *, over_http: bool
) -> None:
    """Each step is a condition, in the peer's order and words."""

    async def body() -> None:
        async with scene(ram, over_http=over_http) as cluster:
            name = await cluster.ask(ttl_seconds=300, reason="it is hot")
            await cluster.asked("web-1")
            (held,) = (await cluster.reservations()).values()
            target = held["status"]["nodeName"]
            assert target != "n1"
            await cluster.gone("web-1")
            ref = await cluster.world.pod("web-3", meta=OWNER, cpu="1")
            placed = await cluster.world.until_placed("web-3")
            assert placed["web-3"] == target
            await cluster.up(ref)
            status = await cluster.job(name, "Succeeded", "Failed")
            assert status["phase"] == "Succeeded"
            assert (status["status"], status["nodeName"]) == ("Complete", target)
            assert (
                status["message"]
                == f'Bind Pod "d/web-3" in Reservation "{held["metadata"]["name"]}"'
            )
            assert status["podRef"]["name"] == "web-3"
            assert [(each["type"], each["status"]) for each in status["conditions"]] == [
                ("ReservationCreated", "True"),
                ("ReservationScheduled", "True"),
                ("Eviction", "True"),
                ("PodBoundReservation", "True"),
                ("BoundPodReady", "True"),
            ]

    schedulers.run(body())


@both
def test_a_budget_that_allows_nobody_is_waited_for_and_told(ram: Path, *, over_http: bool) -> None:
    """The job waits in Eviction with its room held, and goes on when the budget opens."""

    async def body() -> None:
        async with scene(ram, over_http=over_http) as cluster:
            await cluster.budget(0)
            name = await cluster.ask()

            def refused(known: Mapping[str, Any]) -> bool:
                return bool(known[name].get("status", {}).get("reason") == "FailedEvict")

            body = (await cluster.world.until(refused, JOBS))[name]
            assert body["status"]["status"] == "Eviction"
            assert body["status"]["message"].startswith("PDB: ")
            (held,) = (await cluster.reservations()).values()
            assert held["status"]["phase"] == "Available"
            await cluster.budget(1)
            await cluster.asked("web-1")

    schedulers.run(body())


@both
def test_a_job_that_is_ended_or_deleted_leaves_no_reservation(
    ram: Path, *, over_http: bool
) -> None:
    """Nobody was evicted: all is as it was."""

    async def body() -> None:
        async with scene(ram, over_http=over_http) as cluster:
            store = cluster.world.store
            await cluster.budget(0)
            for ends in (True, False):
                name = await cluster.ask()
                await cluster.world.until(bool, kinds.RESERVATIONS)
                ref = objects.Ref(JOBS, name)
                if ends:
                    note = {"metadata": {"annotations": {job.ABORT: "true"}}}
                    await store.patch(ref, objects.Merge(note))
                    assert (await cluster.job(name, "Aborted"))["phase"] == "Aborted"
                else:
                    await store.delete(ref)
                await cluster.world.until(lambda known: not known, kinds.RESERVATIONS)
            assert "deletionTimestamp" not in (await cluster.world.pods())["web-1"]["metadata"]

    schedulers.run(body())


def test_what_cannot_be_moved_is_refused_at_once(ram: Path) -> None:
    """A pod that nobody would create again, one that is not there, one that a job moves already."""

    async def body() -> None:
        async with scene(ram, over_http=False) as cluster:
            await cluster.up(await cluster.world.pod("bare", on="n1"))
            for pod, reason, words in (
                ("bare", "ForbiddenMigratePod", "nobody would create pod d/bare again"),
                ("nobody", "MissingPod", 'missing Pod "d/nobody"'),
            ):
                status = await cluster.job(await cluster.ask(pod), "Failed")
                assert status["reason"] == reason
                assert words in status["message"]
            first = await cluster.ask()
            await cluster.job(first, "Running")
            status = await cluster.job(await cluster.ask(), "Failed")
            assert status["message"] == f'pod d/web-1 is migrated by job "{first}"'
            # Neither pod is in a gang: to follow would pass the bounds of moves.
            note = {"metadata": {"annotations": {job.GANG: "true"}}}
            await cluster.world.store.patch(objects.Ref(JOBS, first), objects.Merge(note))
            body = job.following(MigrationJob(name=first, uid="", pod=PodRef("", "")), WEB_2)
            await cluster.world.store.create(JOBS, body)
            status = await cluster.job(f"{first}.web-2", "Failed")
            assert status["message"] == f'job "{first}" does not move the gang of this pod'

    schedulers.run(body())


def test_a_job_made_by_hand_moves_no_pod_that_the_evictor_protects(ram: Path) -> None:
    """As the peer's; whoever wants it all the same annotates the pod."""

    async def body() -> None:
        local = [{"name": "v", "emptyDir": {}}]
        async with scene(ram, over_http=False) as cluster:
            ref = await cluster.world.pod("data", on="n1", meta=OWNER, labels=APP, volumes=local)
            await cluster.up(ref)
            status = await cluster.job(await cluster.ask("data"), "Failed")
            assert status["reason"] == "ForbiddenMigratePod"
            assert status["message"] == (
                'Pod "d/data" is forbidden to migrate because it does not meet the requirements:'
                " pod has local storage and is protected against eviction"
            )
            note = {"metadata": {"annotations": {"descheduler.alpha.kubernetes.io/evict": ""}}}
            await cluster.world.store.patch(ref, objects.Merge(note))
            await cluster.job(await cluster.ask("data"), "Running")

    schedulers.run(body())


def test_a_job_without_a_mode_is_carried_out_as_is_configured(ram: Path) -> None:
    """No room is held where the profile evicts directly."""

    async def body() -> None:
        async with scene(ram, over_http=False, defaultJobMode="EvictDirectly") as cluster:
            asked = job.request(PodRef("d", "web-1"))
            del asked["spec"]["mode"]
            made = await cluster.world.store.create(JOBS, asked)
            await cluster.asked("web-1")
            await cluster.gone("web-1")
            status = await cluster.job(objects.text(made, "name"), "Succeeded", "Failed")
            assert status["message"] == 'Pod "d/web-1" has been evicted'
            assert await cluster.reservations() == {}

    schedulers.run(body())


def test_a_job_goes_on_where_another_process_left_it(ram: Path) -> None:
    """It was made by one that is gone, and killed after each of its writes."""

    async def body() -> None:
        async with scene(ram, over_http=False, runs=False) as cluster:
            name = await cluster.ask(ttl_seconds=300, creator="one that is gone")
            for kind, there in (
                (JOBS, lambda known: known[name].get("status", {}).get("phase") == "Running"),
                (kinds.RESERVATIONS, bool),
                (JOBS, lambda known: known[name].get("status", {}).get("status") == "Eviction"),
            ):
                async with working(cluster.world):
                    await cluster.world.until(there, kind)
            async with working(cluster.world):
                await cluster.asked("web-1")
            await cluster.gone("web-1")
            await cluster.up(await cluster.world.pod("web-3", meta=OWNER, cpu="1"))
            async with working(cluster.world):
                assert (await cluster.job(name, "Succeeded", "Failed"))["phase"] == "Succeeded"
            assert len(await cluster.reservations()) == 1

    schedulers.run(body())


@pytest.mark.parametrize(("asks", "seconds"), [(7200.0, [7200.0]), (None, [3600.0]), (0.0, [])])
def test_the_workload_avoids_the_node_for_as_long_as_its_job_says(
    ram: Path, asks: float | None, seconds: list[float]
) -> None:
    """An hour where it says nothing."""

    async def body() -> None:
        async with scene(ram, over_http=False) as cluster:
            name = await cluster.ask(avoid_seconds=asks)
            await cluster.asked("web-1")
            await cluster.gone("web-1")
            await cluster.up(await cluster.world.pod("web-3", meta=OWNER, cpu="1"))
            await cluster.job(name, "Succeeded")
            listing = await objects.collect(cluster.world.store.list(kinds.NODE_AVOIDANCES))
            several = map(node_avoidances.node_avoidance, listing.items)
            lengths = [entry.until - entry.since for known in several for entry in known.entries]
            assert lengths == seconds

    schedulers.run(body())


def test_a_strategy_moves_its_pod_by_a_job_and_chooses_it_once(ram: Path) -> None:
    """The job says which strategy wants it, and why; ``--once`` waits for it."""

    async def body() -> None:
        async with scene(ram, over_http=False, runs=False) as cluster:
            container = {"name": "c", "restartCount": 9, "image": "i", "imageID": "", "ready": True}
            status = {**READY, "containerStatuses": [container]}
            ref = objects.Ref(kinds.PODS, "web-1", "d")
            await cluster.world.store.patch(
                ref, objects.Merge({"status": status}), subresource="status"
            )
            policy = descheduling.policy(
                {"RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5}},
                leaderElection={"leaderElect": False},
                deschedulingInterval="100ms",
            )
            policy["kind"] = "DeschedulerConfiguration"
            arguments = {"skipCheckExpectedReplicas": True, "arbitrationArgs": {"interval": "50ms"}}
            policy["profiles"][0]["pluginConfig"].append(
                {"name": "MigrationController", "args": arguments}
            )
            made = descheduler.Descheduler(
                cluster.world.client, configuration.read(policy, "test"), instance="one",
                disruption=FREE,
            )  # fmt: skip
            task = asyncio.ensure_future(made.run(once=True))
            await cluster.asked("web-1")
            assert not task.done()
            (body,) = (await cluster.world.until(bool, JOBS)).values()
            notes = body["metadata"]["annotations"]
            assert notes[job.TRIGGER] == "descheduler/RemovePodsHavingTooManyRestarts"
            assert notes[job.REASON] == "containers restarted 9 times, at most 4"
            assert (body["spec"]["ttl"], notes[job.AVOID]) == ("5m0s", "1h0m0s")
            await cluster.gone("web-1")
            await cluster.up(await cluster.world.pod("web-3", meta=OWNER, cpu="1"))
            await task
            assert len(await cluster.world.until(bool, JOBS)) == 1
            assert 'koordlet_migration_jobs{phase="Succeeded"} 1' in made.metrics()

    schedulers.run(body())
