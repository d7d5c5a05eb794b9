"""Migration jobs over both stores, beside a scheduler: whole lives, and what is left of them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, node_avoidances, objects, refusals
from koordlet.scheduler.descheduling import configuration, evictor_settings
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import job
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from tests.kit import deadline, descheduling
from tests.kit.descheduler_scene import FREE
from tests.kit.migration_scene import APP, JOBS, scene, working
from tests.kit.schedulers import OWNER, READY, both

WEB_2 = PodRef("d", "web-2")


@both
async def test_a_job_holds_room_before_its_pod_goes_and_ends_when_the_replacement_is_ready(
    ram: Path, *, over_http: bool
) -> None:
    """Each step is a condition, in the peer's order and words."""
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
            status["message"] == f'Bind Pod "d/web-3" in Reservation "{held["metadata"]["name"]}"'
        )
        assert status["podRef"]["name"] == "web-3"
        assert [(each["type"], each["status"]) for each in status["conditions"]] == [
            ("ReservationCreated", "True"),
            ("ReservationScheduled", "True"),
            ("Eviction", "True"),
            ("PodBoundReservation", "True"),
            ("BoundPodReady", "True"),
        ]


@both
async def test_a_budget_that_allows_nobody_is_waited_for_and_told(
    ram: Path, *, over_http: bool
) -> None:
    """The job waits in Eviction with its room held, and goes on when the budget opens."""
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


@both
async def test_a_job_that_is_ended_or_deleted_leaves_no_reservation(
    ram: Path, *, over_http: bool
) -> None:
    """Nobody was evicted: all is as it was."""
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


async def test_what_cannot_be_moved_is_refused_at_once(ram: Path) -> None:
    """A pod that nobody would create again, one that is not there, one that a job moves already."""
    async with scene(ram, over_http=False) as cluster:
        await cluster.up(await cluster.world.pod("bare", on="n1"))
        room, direct = evictor_settings.MODES
        for pod, mode, reason, words in (
            ("bare", room, "ForbiddenMigratePod", "nobody would create pod d/bare again"),
            ("bare", direct, "ForbiddenMigratePod", "d/bare is not evicted: nobody would"),
            ("nobody", room, "MissingPod", 'missing Pod "d/nobody"'),
        ):
            status = await cluster.job(await cluster.ask(pod, mode=mode), "Failed")
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


async def test_a_job_made_by_hand_moves_no_pod_that_the_evictor_protects(ram: Path) -> None:
    """As the peer's; whoever wants it all the same annotates the pod."""
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


class Hiccup:
    """A store that fails to read the first pod that it is asked for."""

    def __init__(self, store: objects.Objects) -> None:
        self.store, self.failed = store, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def get(self, ref: objects.Ref) -> objects.Object:
        """One object."""
        if ref.kind is kinds.PODS and not self.failed:
            self.failed = True
            raise refusals.Unavailable("nobody answers", culprit=str(ref))
        return await self.store.get(ref)


async def test_a_pod_that_could_not_be_read_is_asked_about_again_before_its_job_begins(
    ram: Path,
) -> None:
    """It may be protected: a server that fails once gives nobody away."""
    local = [{"name": "v", "emptyDir": {}}]
    async with scene(ram, over_http=False, runs=False) as cluster:
        ref = await cluster.world.pod("data", on="n1", meta=OWNER, labels=APP, volumes=local)
        await cluster.up(ref)
        name = await cluster.ask("data")
        store: Any = Hiccup(cluster.world.client)
        async with working(dataclasses.replace(cluster.world, client=store)):
            status = await cluster.job(name, "Running", "Failed")
        assert store.failed
        assert status["reason"] == "ForbiddenMigratePod"


async def test_a_pod_stays_taken_while_any_job_about_it_is_under_way(ram: Path) -> None:
    """A second job is refused at once, and its end does not give the pod to strategies."""
    async with scene(ram, over_http=False, runs=False) as cluster:
        await cluster.budget(0)
        async with working(cluster.world) as made:
            first = await cluster.ask()
            await cluster.job(first, "Running")
            second = await cluster.ask()
            status = await cluster.job(second, "Failed")
            assert status["message"] == f'pod d/web-1 is migrated by job "{first}"'
            await deadline.comes(
                lambda: made.migrations.source.snapshot["", second].status.phase == "Failed"
            )
            (resident,) = (each for each in made.state().residents(0) if each.pod.name == "web-1")
            assert made.migrations.held(resident) == f'pod is migrated by job "{first}"'


async def test_a_job_that_waits_asks_again_about_a_pod_that_is_another_one_by_now(
    ram: Path,
) -> None:
    """It has no UID in it, and its pod was made again with data that would be lost."""
    local = [{"name": "v", "emptyDir": {}}]
    async with scene(ram, over_http=False, maxMigratingGlobally=1) as cluster:
        await cluster.budget(0)
        first = await cluster.ask()
        await cluster.job(first, "Running")
        ref = await cluster.world.pod("data", on="n1", meta=OWNER)
        await cluster.up(ref)
        second = await cluster.ask("data")

        def waits(known: Mapping[str, Any]) -> bool:
            status = known[second].get("status", {})
            return bool(status.get("reason") == "MaxMigratingGlobally")

        await cluster.world.until(waits, JOBS)
        await cluster.gone("data")
        again = await cluster.world.pod("data", on="n1", meta=OWNER, volumes=local)
        await cluster.up(again)
        await cluster.world.store.delete(objects.Ref(JOBS, first))
        status = await cluster.job(second, "Running", "Failed")
        assert status["reason"] == "ForbiddenMigratePod"


class CountingGets:
    """A client that counts the pods that were asked about before the first job began."""

    def __init__(self, store: objects.Objects) -> None:
        self._store, self.pods, self.began = store, 0, 0

    def __getattr__(self, name: str) -> Any:
        """Everything else as it is."""
        return getattr(self._store, name)

    async def get(self, ref: objects.Ref) -> objects.Object:
        """One more."""
        self.pods += ref.kind is kinds.PODS
        return await self._store.get(ref)

    async def patch(self, ref: objects.Ref, patch: Any, **more: Any) -> objects.Object:
        """The first that lets a job begin."""
        begins = job.PASSED in patch.body.get("metadata", {}).get("annotations", {})
        self.began = self.began or begins * self.pods
        return await self._store.patch(ref, patch, **more)


async def test_of_thousands_of_jobs_the_first_begin_before_all_pods_were_asked_about(
    ram: Path,
) -> None:
    """Whoever is under way already does not wait for them either."""
    async with scene(ram, over_http=False, runs=False) as cluster:
        for number in range(120):
            await cluster.world.pod(f"w-{number}", on="n1", meta=OWNER, cpu="1m")
            await cluster.ask(f"w-{number}")
        store: Any = CountingGets(cluster.world.client)
        async with working(dataclasses.replace(cluster.world, client=store)):
            await deadline.comes(lambda: store.began > 0)
        assert store.began <= 110


async def test_a_job_without_a_mode_is_carried_out_as_is_configured(ram: Path) -> None:
    """No room is held where the profile evicts directly."""
    async with scene(ram, over_http=False, defaultJobMode="EvictDirectly") as cluster:
        asked = job.request(PodRef("d", "web-1"))
        del asked["spec"]["mode"]
        made = await cluster.world.store.create(JOBS, asked)
        await cluster.asked("web-1")
        await cluster.gone("web-1")
        status = await cluster.job(objects.text(made, "name"), "Succeeded", "Failed")
        assert status["message"] == 'Pod "d/web-1" has been evicted'
        assert await cluster.reservations() == {}


async def test_a_job_goes_on_where_another_process_left_it(ram: Path) -> None:
    """It was made by one that is gone, and killed after each of its writes."""
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


@pytest.mark.parametrize(("asks", "seconds"), [(7200.0, [7200.0]), (None, [3600.0]), (0.0, [])])
async def test_the_workload_avoids_the_node_for_as_long_as_its_job_says(
    ram: Path, asks: float | None, seconds: list[float]
) -> None:
    """An hour where it says nothing."""
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


async def test_a_strategy_moves_its_pod_by_a_job_and_chooses_it_once(ram: Path) -> None:
    """The job says which strategy wants it, and why; ``--once`` waits for it."""
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
