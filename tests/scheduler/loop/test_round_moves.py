"""A round asks what bounds jobs before it searches a landing, and counts the jobs that it makes."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.descheduling.round import EvictionProposal
from koordlet.scheduler.descheduling.traits import PodTraits, Resident
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import cluster_watch, descheduler, runner
from koordlet.scheduler.loop.migration_controller import MigrationController
from koordlet.scheduler.loop.round_moves import RoundMoves
from koordlet.scheduler.migration import flow
from tests.kit import deadline, descheduling, schedulers
from tests.kit.descheduler_scene import FREE, TOO_MANY, restarted
from tests.kit.migration_scene import APP, JOBS, KINDS, Cluster, settings
from tests.kit.schedulers import OWNER


@dataclass
class Bench:
    """Moves of the cluster's two pods, whose jobs no watch shows."""

    world: schedulers.World
    watched: cluster_watch.ClusterWatch
    controller: MigrationController
    now: list[float]

    def round(self, *, dry_run: bool = False) -> RoundMoves:
        """A round begins."""
        return RoundMoves(
            self.world.client, self.watched, self.controller, settings(), dry_run=dry_run
        )

    def proposal(self, name: str) -> EvictionProposal:
        """One of the two shall go."""
        pod = self.watched.sources.informers[kinds.PODS].get(name, "d")
        assert pod is not None
        return EvictionProposal(
            resident=Resident(pod, PodTraits(), 0), reason="r", strategy="s", profile="p",
            node=pod.node, target="", evictor=settings().profiles[0].evictor,
        )  # fmt: skip

    def kept(self, moves: RoundMoves, name: str) -> str:
        """Why a pod stays; empty where it may go."""
        refusal = moves.refusal(self.proposal(name))
        return "" if refusal is None else refusal.reason


@asynccontextmanager
async def bench(ram: Path) -> AsyncGenerator[Bench]:
    """The cluster as a descheduler watches it; the clock stands still."""
    now = [1000.0]
    clocks = runner.Clocks(steady=lambda: now[0])
    async with schedulers.world(ram, over_http=False, custom=KINDS) as world:
        await Cluster(world).fill()
        profiles = {schedulers.NAME: profile.default(schedulers.NAME)}
        watched = cluster_watch.ClusterWatch(
            world.client, profiles, FREE, clocks, instance="one", leads=lambda: True
        )
        # It does not run: its watch shows nothing.
        controller = MigrationController(world.client, watched, settings().profiles[0].evictor)
        task = asyncio.ensure_future(watched.sources.run())
        await watched.sources.synced()
        watched.tidy()
        try:
            yield Bench(world, watched, controller, now)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_job_counts_for_its_round_and_for_later_ones_until_a_watch_should_show_it(
    ram: Path,
) -> None:
    """Else a strategy makes a second job of a workload, which could only wait."""
    async with bench(ram) as scene:
        first = scene.round()
        assert (scene.kept(first, "web-1"), scene.kept(first, "web-2")) == ("", "")
        assert await first.perform(scene.proposal("web-1")) is None
        assert scene.kept(first, "web-2") == "MaxMigratingPerWorkload"
        assert scene.kept(scene.round(), "web-2") == "MaxMigratingPerWorkload"
        scene.now[0] += flow.SETTLE
        assert scene.kept(scene.round(), "web-2") == ""


async def test_a_dry_run_counts_the_jobs_that_it_would_make_and_makes_none(ram: Path) -> None:
    """What it shows is what would be done, within the bounds of jobs; the next begins anew."""
    async with bench(ram) as scene:
        shown = scene.round(dry_run=True)
        assert await shown.perform(scene.proposal("web-1")) is None
        assert scene.kept(shown, "web-2") == "MaxMigratingPerWorkload"
        assert not (await objects.collect(scene.world.store.list(JOBS))).items
        assert scene.kept(scene.round(), "web-2") == ""


@pytest.mark.parametrize("shadow", ["round", "strategy", ""])
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"cordon": True},
        {"stays": True, "deletion_cost": 5},
        {"stays": True, "avoid_seconds": 60.0, "removes": ()},
    ],
    ids=["goes", "cordons", "ranks", "keeps away"],
)
async def test_in_shadow_nothing_at_all_is_written(
    ram: Path, kind: dict[str, Any], *, shadow: str
) -> None:
    """No job, cordon, cost, avoid list or event; who acts writes."""
    async with bench(ram) as scene:
        before = (await objects.collect(scene.world.store.list(kinds.PODS))).revision
        moves = scene.round(dry_run=shadow == "round")
        asked = dataclasses.replace(scene.proposal("web-1"), shadow=shadow == "strategy")
        assert await moves.perform(dataclasses.replace(asked, **kind)) is None
        after = (await objects.collect(scene.world.store.list(kinds.PODS))).revision
        assert (after == before) is bool(shadow)


async def test_no_landing_is_searched_for_a_pod_whose_job_could_only_wait(ram: Path) -> None:
    """Of four pods of one workload one moves: one search; the others are told with their bound."""
    searched = descheduling.Searches()
    body_ = descheduling.policy(TOO_MANY, leaderElection={"leaderElect": False})
    body_["kind"] = "DeschedulerConfiguration"
    arguments = {"name": "MigrationController", "args": {"maxMigratingPerWorkload": 1}}
    body_["profiles"][0]["pluginConfig"].append(arguments)
    async with schedulers.world(ram, over_http=False, custom=KINDS) as world:
        await Cluster(world).fill()
        for name in ("web-3", "web-4"):
            await world.pod(name, on="n1", meta=OWNER, labels=APP, cpu="1")
        for name in await world.pods():
            ref = objects.Ref(kinds.PODS, name, "d")
            patch = objects.Merge({"status": restarted(9)})
            await world.store.patch(ref, patch, subresource="status")
        made = descheduler.Descheduler(
            world.client, configuration.read(body_, "test"), instance="one",
            disruption=FREE, profiles=searched.served(),
        )  # fmt: skip
        task = asyncio.ensure_future(made.run(once=True))
        await deadline.comes(lambda: made.book.last or task.done())
        document = made.round_document()
        assert len(document["moves"]) == searched.number == 1
        whys = [refused["why"].partition(":")[0] for refused in document["refused"]]
        assert whys == ["MaxMigratingPerWorkload"] * 3
        listing = await objects.collect(world.store.list(kinds.EVENTS))
        notes = [each["note"] for each in listing.items if each["reason"] == "MoveRefused"]
        assert [note.partition("(")[2].partition(")")[0] for note in notes] == whys[:1]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
