"""Quotas of a standalone scheduler: handed in, refused, deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import refusals
from koordlet.scheduler.process import standalone_api
from tests.kit import clusters, deadline, quotas, schedulers

Body = dict[str, Any]


def _handed(*bodies: Body) -> list[str]:
    return [json.dumps(body) for body in bodies]


def test_a_quota_is_handed_in_and_heeded_and_one_that_contradicts_itself_is_refused(
    ram: Path,
) -> None:
    """A pod beyond it waits with its message; a minimum above the maximum is not taken."""

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client) as loop,
        ):
            desk = standalone_api.StandaloneApi(world.store, loop)
            await world.node("n1", cpu="4")
            good = quotas.quota("team", {"cpu": "1"}, {"cpu": "2"})
            bad = quotas.quota("other", {"cpu": "3"}, {"cpu": "2"})
            taken = await desk.submit(_handed(*map(clusters.stored, (good, bad))), dry_run=False)
            assert not taken[0].error
            assert taken[1].error.startswith("resourceKey cpu of quota other min 3 > max 2")
            assert "write 2 or less" in taken[1].error
            await world.pod("p", cpu="3", labels={f"{quotas.KEY}name": "team"})
            assert "Insufficient quotas, quotaName: team" in await world.until_told("p")

    schedulers.run(body())


def test_a_quota_with_pods_is_deleted_only_by_force_and_its_pods_are_in_the_default_quota(
    ram: Path,
) -> None:
    """The refusal names a pod; without pods nobody has to force anything."""

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client) as loop,
        ):
            desk = standalone_api.StandaloneApi(world.store, loop)
            await world.node("n1", cpu="4")
            several = [quotas.quota(name, {"cpu": "1"}, {"cpu": "2"}) for name in ("team", "idle")]
            await desk.submit(_handed(*map(clusters.stored, several)), dry_run=False)
            await world.pod("p", cpu="1", labels={f"{quotas.KEY}name": "team"})
            await world.until_placed("p")
            book = loop.core.quotas.book
            await deadline.comes(lambda: book.nodes["team"].used.get("cpu") == 1000)
            await desk.delete_quota("idle", force=False)
            with pytest.raises(refusals.Invalid, match="quota team has 1 child pods: p"):
                await desk.delete_quota("team", force=False)
            assert "team" in book.nodes
            await desk.delete_quota("team", force=True)
            await deadline.comes(lambda: not loop.core.quotas.active or "team" not in book.nodes)
            assert (await world.placed())["p"] == "n1"
            with pytest.raises(refusals.NotFound):
                await desk.delete_quota("team", force=True)

    schedulers.run(body())
