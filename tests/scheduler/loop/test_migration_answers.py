"""Jobs whose making is answered late; what is asked about the pods of many jobs at once."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import objects, refusals
from koordlet.scheduler.descheduling.round import EvictionProposal
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import flow, job
from tests.kit import deadline, logs, schedulers
from tests.kit.migration_scene import APP, JOBS, scene, settings, working
from tests.kit.schedulers import OWNER


class LateAnswers:
    """A client whose answer to a new job comes when the job is over."""

    def __init__(self, store: objects.Objects) -> None:
        self._store, self.over = store, asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        """Everything else as it is."""
        return getattr(self._store, name)

    async def create(self, kind: Any, body: Any) -> objects.Object:
        """It is made at once."""
        made = await self._store.create(kind, body)
        if kind is JOBS:
            await self.over.wait()
        return made


async def test_a_job_that_is_over_before_its_making_was_answered_holds_its_pod_no_longer(
    ram: Path,
) -> None:
    """Another one is about the pod: it fails at once. ``--once`` does not wait for it either."""
    async with scene(ram, over_http=False, runs=False) as cluster:
        await cluster.budget(0)
        store: Any = LateAnswers(cluster.world.client)
        async with working(dataclasses.replace(cluster.world, client=store)) as made:
            first = await cluster.ask()
            await cluster.job(first, "Running")
            (resident,) = (each for each in made.state().residents(0) if each.pod.name == "web-1")
            (profile,) = settings().profiles
            proposal = EvictionProposal(
                resident=resident, reason="r", strategy="s", profile="p", node="n1",
                target="", evictor=profile.evictor,
            )  # fmt: skip
            known = made.migrations
            moving = asyncio.ensure_future(known.move(proposal))
            await deadline.comes(lambda: any(not each.active for each in known.jobs()))
            await cluster.world.store.delete(objects.Ref(JOBS, first))
            await deadline.comes(lambda: not known.held(resident))
            store.over.set()
            assert (await moving).evicted
            assert known.held(resident) == ""
            await asyncio.wait_for(known.finished(), 5.0)


async def test_an_error_in_the_step_of_a_job_costs_that_job_alone_and_is_logged_once(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process would end, and after each start again: no job would go on."""
    step, errors = flow.step, 0

    def stumbling(about: job.MigrationJob, *rest: Any) -> flow.Step:
        nonlocal errors
        if about.pod.name == "web-1":
            errors += 1
            raise ZeroDivisionError("whatever nobody thought of")
        return step(about, *rest)

    monkeypatch.setattr(flow, "step", stumbling)
    with logs.written() as stream:
        async with scene(ram, over_http=False) as cluster:
            odd, sound = await cluster.ask("web-1"), await cluster.ask("web-2")
            await cluster.asked("web-2")
            await deadline.comes(lambda: errors > 2)
            assert (await cluster.job(sound, "Running"))["phase"] == "Running"
            stored = await cluster.world.store.get(objects.Ref(JOBS, odd))
            assert "status" not in stored
    assert stream.getvalue().count("migration.failed") == 1


def test_many_jobs_by_hand_are_judged_by_one_picture_of_the_cluster(
    ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has each pod of the cluster: made for each job, thousands of them would hold all up."""
    made = 0

    def state(**parts: Any) -> ClusterState:
        nonlocal made
        made += 1
        return ClusterState(**parts)

    monkeypatch.setattr(descheduler, "ClusterState", state)
    local = [{"name": "v", "emptyDir": {}}]

    def ended(known: Mapping[str, Any]) -> bool:
        return all(each.get("status", {}).get("phase") == "Failed" for each in known.values())

    async def body() -> None:
        async with scene(ram, over_http=False, runs=False) as cluster:
            for number in range(20):
                name = f"data-{number}"
                await cluster.world.pod(name, on="n1", meta=OWNER, labels=APP, volumes=local)
                await cluster.ask(name)
            async with working(cluster.world):
                several = await cluster.world.until(ended, JOBS)
            words = "pod has local storage and is protected against eviction"
            assert [words in each["status"]["message"] for each in several.values()] == [True] * 20
            # That of the round among them.
            assert 1 <= made <= 4

    schedulers.run(body())


class RefusingServer:
    """A client whose server refuses evictions, whatever the budgets that are watched say."""

    def __init__(self, store: objects.Objects) -> None:
        self._store, self.asked = store, 0

    def __getattr__(self, name: str) -> Any:
        """Everything else as it is."""
        return getattr(self._store, name)

    async def evict(self, pod: objects.Ref, **_: Any) -> None:
        """A budget was used up a moment ago."""
        self.asked += 1
        raise refusals.TooMany("used up", culprit=str(pod), retry_after=60.0)


async def test_a_job_whose_eviction_the_server_refuses_says_so_and_ends_when_somebody_ends_it(
    ram: Path,
) -> None:
    """It asks again at its own pace: one that waited for the server would be deaf meanwhile."""
    async with scene(ram, over_http=False, runs=False) as cluster:
        client = RefusingServer(cluster.world.client)
        store: Any = client
        async with working(dataclasses.replace(cluster.world, client=store)):
            name = await cluster.ask()

            def refused(known: Mapping[str, Any]) -> bool:
                return bool(known[name].get("status", {}).get("reason") == "FailedEvict")

            await cluster.world.until(refused, JOBS)
            ended = objects.Merge({"metadata": {"annotations": {job.ABORT: "true"}}})
            await cluster.world.store.patch(objects.Ref(JOBS, name), ended)
            await cluster.job(name, "Aborted")
            assert client.asked == 1
