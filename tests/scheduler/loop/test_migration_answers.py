"""Jobs whose making is answered late: the watch may have shown their end before."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

from koordlet.kubeapi import objects
from koordlet.scheduler.descheduling.round import EvictionProposal
from tests.kit import deadline, schedulers
from tests.kit.migration_scene import JOBS, scene, settings, working


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


def test_a_job_that_is_over_before_its_making_was_answered_holds_its_pod_no_longer(
    ram: Path,
) -> None:
    """Another one is about the pod: it fails at once. ``--once`` does not wait for it either."""

    async def body() -> None:
        async with scene(ram, over_http=False, runs=False) as cluster:
            await cluster.budget(0)
            store: Any = LateAnswers(cluster.world.client)
            async with working(dataclasses.replace(cluster.world, client=store)) as made:
                first = await cluster.ask()
                await cluster.job(first, "Running")
                (resident,) = (
                    each for each in made.state().residents(0) if each.pod.name == "web-1"
                )
                (profile,) = settings().profiles
                proposal = EvictionProposal(
                    resident=resident, reason="r", strategy="s", profile="p", node="n1",
                    target="", evictor=profile.evictor,
                )  # fmt: skip
                known = made.migrations
                moving = asyncio.ensure_future(known.move(proposal))
                await deadline.comes(lambda: any(not job.active for job in known.jobs()))
                await cluster.world.store.delete(objects.Ref(JOBS, first))
                await deadline.comes(lambda: not known.held(resident))
                store.over.set()
                assert (await moving).evicted
                assert known.held(resident) == ""
                await asyncio.wait_for(known.finished(), 5.0)

    schedulers.run(body())
