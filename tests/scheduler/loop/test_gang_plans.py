"""Plans for gangs that wait, beside a scheduler: room for all members first, and none for half."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects, pod_groups
from koordlet.scheduler.disruption.settings import PlanSettings
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.rescheduling import move_plan
from tests.kit.schedulers import both
from tests.scheduler.loop.test_plan_controller import PLANS, Planned, planned, working

GANG = {pod_groups.LIGHT_NAME: "train", pod_groups.LIGHT_MINIMUM: "2"}


@asynccontextmanager
async def ganged(ram: Path, *, over_http: bool = False) -> AsyncGenerator[Planned]:
    """Beside the crowded node a free one: of two members, each as large as a node, one fits."""
    async with planned(ram, over_http=over_http, works=False) as cluster:
        store = cluster.world.store
        await store.delete(objects.Ref(kinds.PODS, "big", "d"), grace_seconds=0)
        for name in ("g0", "g1"):
            await cluster.world.pod(name, cpu="3", labels=GANG)
        await cluster.world.node("n4", cpu="3")
        await cluster.world.until_told("g1", "Gang")
        yield cluster


@both
async def test_a_gang_that_waits_is_bound_whole_once_all_members_have_room(
    ram: Path, *, over_http: bool
) -> None:
    """One place is free and one is made by three moves; each member draws on its own."""
    async with ganged(ram, over_http=over_http) as cluster, working(cluster):
        await cluster.ask(pod="g1")
        plan = await cluster.plan("Done", "Failed", "Aborted")
        assert plan.status.phase == "Done", plan.status
        assert plan.status.message == "d/g1 and 1 more of its gang have nodes n4, n1"
        assert [move.origin for move in plan.moves] == ["n1"] * 3
        placed = await cluster.world.placed()
        assert (placed.pop("g1"), placed.pop("g0")) == ("n4", "n1")
        assert sorted(placed.values()) == sorted(move.target for move in plan.moves)
        await cluster.nothing_left()


async def test_a_plan_for_a_gang_that_somebody_ends_keeps_no_place_of_any_member(ram: Path) -> None:
    """All room is held, the free place too, and a budget lets nobody go; then nothing is left."""
    async with ganged(ram) as cluster, working(cluster):
        await cluster.let_nobody_go()
        await cluster.ask(pod="g0")
        plan = await cluster.plan("Moving", "Failed")
        assert plan.status.phase == "Moving", plan.status
        _, held = await cluster.left()
        assert len(held) == 5
        assert {f"plan-{plan.uid}", f"plan-{plan.uid}-1"} <= set(held)
        await cluster.patch({"metadata": {"annotations": {jobs.ABORT: "true"}}})
        assert (await cluster.plan("Aborted")).status.reason == "Aborted"
        await cluster.nothing_left()
        assert set((await cluster.world.placed()).values()) == {"n1"}


async def test_a_gang_that_has_waited_gets_a_plan_that_shows_room_for_all_of_it(ram: Path) -> None:
    """Nobody asks for it, and nothing is held."""
    async with ganged(ram) as cluster, working(cluster, PlanSettings(make_room_after=0.1)):

        def shown(known: Mapping[str, Any]) -> bool:
            several = [each.get("status", {}) for each in known.values()]
            return any(each.get("reason") == "Shadow" for each in several)

        (body,) = (await cluster.world.until(shown, PLANS)).values()
        plan = move_plan.decode(body)
        assert sorted(place.pod.name for place in plan.places) == ["g0", "g1"]
        assert (plan.starter, len(plan.moves)) == (move_plan.STARTER, 3)
        assert await cluster.left() == ([], [])
