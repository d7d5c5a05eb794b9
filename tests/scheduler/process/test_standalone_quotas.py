"""Quotas of a standalone scheduler: handed in, refused, deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, refusals
from koordlet.scheduler.process import standalone_api
from tests.kit import clusters, deadline, quotas, schedulers

Body = dict[str, Any]

AMOUNTS = {"cpu": "1", "memory": "1Gi"}
#: A profile whose root quota is ``pool-root``.
PROFILE = {
    "apiVersion": kinds.ELASTIC_QUOTA_PROFILES.api_version,
    "kind": kinds.ELASTIC_QUOTA_PROFILES.name,
    "metadata": {"name": "pool"},
    "spec": {"quotaName": "pool-root"},
}


def _handed(*bodies: Body) -> list[str]:
    return [json.dumps(body) for body in bodies]


async def test_a_quota_is_handed_in_and_heeded_and_one_that_contradicts_itself_is_refused(
    ram: Path,
) -> None:
    """A pod beyond it waits with its message; a minimum above the maximum is not taken."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        await world.node("n1", cpu="4")
        good = quotas.quota("team", {"cpu": "1"}, {"cpu": "2"})
        bad = quotas.quota("other", {"cpu": "3"}, {"cpu": "2"})
        taken = await desk.submit(_handed(*map(clusters.stored, (good, bad))), dry_run=False)
        assert not taken[0].error
        assert taken[1].error.startswith("resourceKey cpu of quota other min 3 > max 2")
        assert "write 2 or less" in taken[1].error
        assert (taken[1].namespace, taken[1].name) == ("default", "other")
        await world.pod("p", cpu="3", labels={f"{quotas.KEY}name": "team"})
        assert "Insufficient quotas, quotaName: team" in await world.until_told("p")


async def test_a_file_of_quotas_is_taken_in_whatever_their_order(ram: Path) -> None:
    """As kubectl prints them: by name, children before their parents; a bad one costs itself."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        least, most = {"cpu": "1"}, {"cpu": "2"}
        several = [
            quotas.quota("a", least, most, parent="b"),
            quotas.quota("b", least, most, parent="org", is_parent=True),
            quotas.quota("c", least, most, parent="nobody"),
            quotas.quota("org", least, most, is_parent=True),
        ]
        taken = await desk.submit(_handed(*map(clusters.stored, several)), dry_run=False)
        assert [each.error[:21] for each in taken] == ["", "", "c has parentName nobo", ""]
        assert [node.name for node in loop.core.quotas.book.nodes["a"].path[1:]] == [
            *("org", "b", "a"),
        ]


async def test_a_dry_run_answers_as_the_call_would_and_changes_nothing(ram: Path) -> None:
    """A child beside its parent or its profile, in any order; what is wrong is refused alike."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        await world.node("n1", cpu="4", memory="8Gi")
        book = loop.core.quotas.book
        half, whole = {"cpu": "1"}, {"cpu": "2"}
        known = quotas.quota("org", whole, whole, is_parent=True)
        await desk.submit(_handed(clusters.stored(known)), dry_run=False)
        await world.until(lambda stored: "org" in stored, kinds.ELASTIC_QUOTAS)
        several = [
            quotas.quota("a", half, half, parent="new"),
            quotas.quota("b", half, half, parent="org"),
            quotas.quota("c", whole, whole, parent="org"),
            quotas.quota("d", half, half, parent="nobody"),
            quotas.quota("new", half, half, is_parent=True),
            quotas.quota("new", half, half, namespace="other"),
            quotas.quota("pooled", AMOUNTS, AMOUNTS, parent="pool-root"),
            quotas.quota("greedy", {"cpu": "9"}, {"cpu": "9"}, parent="pool-root"),
        ]
        handed = [PROFILE, *map(clusters.stored, several)]
        rehearsed = await desk.submit(_handed(*handed), dry_run=True)
        assert set(book.nodes) & {"a", "b", "new", "pooled", "pool-root"} == set()
        taken = await desk.submit(_handed(*handed), dry_run=False)
        errors = [each.error for each in taken]
        assert [each.error for each in rehearsed] == errors
        assert [bool(error) for error in errors] == [
            *(False, False, False, True, True, False, True, False, True),
        ]


async def test_a_quota_with_pods_is_deleted_only_by_force_and_its_pods_are_in_the_default_quota(
    ram: Path,
) -> None:
    """The refusal names a pod; without pods nobody has to force anything."""
    async with schedulers.scheduled(ram) as (world, loop):
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


async def test_the_root_of_a_pool_is_deleted_with_its_profile_and_stays_away(ram: Path) -> None:
    """Refused while a quota is below it; the nodes are the default tree's again."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        await world.node("n1", cpu="4")
        child = quotas.quota("team", AMOUNTS, AMOUNTS, parent="pool-root")
        taken = await desk.submit(_handed(PROFILE, clusters.stored(child)), dry_run=False)
        assert [each.error for each in taken] == ["", ""]
        await world.until(lambda known: "pool-root" in known, kinds.ELASTIC_QUOTAS)
        book = loop.core.quotas.book

        def stored() -> bool:
            root = book.owner("pool-root")
            return root is not None and bool(root.uid)

        await deadline.comes(stored)
        with pytest.raises(refusals.Invalid, match="has 1 child quotas: team"):
            await desk.delete_quota("pool-root", force=False)
        await desk.delete_quota("pool-root", force=True)
        await deadline.comes(lambda: book.owner("pool-root") is None)
        await loop.writers.quota_controller.look()
        assert "pool-root" not in await world.until(bool, kinds.ELASTIC_QUOTAS)
        assert await world.until(lambda known: not known, kinds.ELASTIC_QUOTA_PROFILES) == {}
        loop.core.quotas.settle(loop.now())
        assert book.trees[""].total["cpu"] == 4000
