"""Nodes that reject pods: the entry is written once, what a ReplicaSet leaves is removed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, node_avoidances, objects
from koordlet.scheduler.loop import descheduler
from tests.kit import schedulers
from tests.kit.apiserver import faults
from tests.kit.descheduler_scene import played, pod
from tests.kit.schedulers import READY, both

ACTS = {"PoorService": {"dryRun": False}}
REJECTED = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough"}


@asynccontextmanager
async def scene(ram: Path, *, over_http: bool) -> AsyncGenerator[schedulers.World]:
    """Two nodes; of the pods of a ReplicaSet the kubelet of n1 has just rejected two."""
    custom = (kinds.NODE_AVOIDANCES,)
    async with schedulers.world(ram, over_http=over_http, custom=custom) as world:
        await world.node("n1")
        await world.node("n2")
        for name, status in (("runs", READY), ("r1", REJECTED), ("r2", REJECTED)):
            await pod(world, name, status)
        yield world


async def entries(world: schedulers.World) -> list[tuple[str, str, float]]:
    """Node, message and seconds of each entry."""
    listing = await objects.collect(world.store.list(kinds.NODE_AVOIDANCES))
    return [
        (known.node, entry.message, entry.until - entry.since)
        for known in map(node_avoidances.node_avoidance, listing.items)
        for entry in known.entries
    ]


def shown(made: descheduler.Descheduler) -> list[dict[str, Any]]:
    """What the last round says of nodes that are avoided."""
    several: list[dict[str, Any]] = made.round_document()["avoided"]
    return several


@both
async def test_a_node_that_rejects_pods_is_avoided_once(ram: Path, *, over_http: bool) -> None:
    """The rejected pods go, others stay; dry runs and the default only show; it is done once."""
    async with scene(ram, over_http=over_http) as world:
        for strategies, dry_run in ((ACTS, True), ({"PoorService": {}}, False)):
            made = await played(world, strategies, dry_run=dry_run)
            (only,) = shown(made)
            assert (only["shadow"], only["removes"]) == (not dry_run, ["d/r1", "d/r2"])
        assert (await entries(world), len(await world.pods())) == ([], 3)

        made = await played(world, ACTS)
        text = "2 pods of ReplicaSet/web were rejected by its kubelet in ten minutes"
        wanted = [("n1", f"{text}, the last for OutOfcpu", 1800.0)]
        assert await entries(world) == wanted
        assert (await world.pods()).keys() == {"runs"}
        assert made.round_document()["moves"] == []
        assert (shown(await played(world, ACTS)), await entries(world)) == ([], wanted)


async def test_who_may_not_remove_them_has_the_entry_all_the_same(ram: Path) -> None:
    """And the next round does not write it again, which would double it."""
    async with scene(ram, over_http=True) as world:
        assert world.serving is not None
        world.serving.faults.add(
            faults.Fault(faults.Manner.ANSWER, method="POST", path="/api/v1/", times=-1, status=403)
        )
        assert [each["node"] for each in shown(await played(world, ACTS))] == ["n1"]
        assert shown(await played(world, ACTS)) == []
        assert {"r1", "r2"} < (await world.pods()).keys()
        assert [seconds for _, _, seconds in await entries(world)] == [1800.0]
