"""Plans that begin by themselves, beside a scheduler: for pods, room ahead, a node to empty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.headroom import Headroom
from koordlet.scheduler.disruption.settings import PlanSettings
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.rescheduling import move_plan
from tests.kit import deadline, logs, schedulers
from tests.kit.migration_scene import JOBS
from tests.scheduler.loop.test_plan_controller import PLANS, planned, working


@pytest.mark.parametrize("acts", [False, True])
async def test_a_pod_that_has_waited_gets_a_plan_that_nobody_asked_for(
    ram: Path, *, acts: bool
) -> None:
    """It shows what it would move and moves nobody; to Act it is configured."""
    async with planned(ram, over_http=False, works=False) as cluster:
        wanted = PlanSettings(make_room_after=0.1, acts=acts)
        async with working(cluster, wanted) as made:

            def done(known: Mapping[str, Any]) -> bool:
                several = [each.get("status", {}) for each in known.values()]
                return any(each.get("phase") == "Done" for each in several) or (
                    not acts and any(each.get("reason") == "Shadow" for each in several)
                )

            (name, body), *more = (await cluster.world.until(done, PLANS)).items()
            plan = move_plan.decode(body)
            assert (more, plan.starter, plan.acts) == ([], "defragment", acts)
            assert name.startswith(f"room-{plan.pod.uid[:8]}-" if plan.pod else "?")
            assert (plan.node, len(plan.moves), plan.status.worth is None) == ("n1", 3, False)
            listing = await objects.collect(cluster.world.store.list(JOBS))
            movers = {jobs.read(each).by for each in listing.items}
            assert movers == ({f"defragment/{name}"} if acts else set())
            assert 'koordlet_move_plans{phase="Reserving"} 0' in made.metrics()
            assert ("big" in await cluster.world.placed()) is acts


async def test_shown_plan_that_empties_a_node_makes_way_for_the_next(ram: Path) -> None:
    """Not one that a person wants, nor one that is over."""
    async with planned(ram, over_http=False, works=False) as cluster:
        store = cluster.world.store
        await store.delete(objects.Ref(kinds.PODS, "big", "d"), grace_seconds=0)
        for node in ("n2", "n3"):
            await cluster.pod("more", on=node)
        starter = move_plan.STARTER
        for name, by in (("old", starter), ("over", starter), ("mine", "")):
            await cluster.ask(name, "", acts=False, starter=by)
        status = objects.Merge({"status": {"phase": "Failed"}})
        await store.patch(objects.Ref(PLANS, "over"), status, subresource="status")
        async with working(cluster, PlanSettings(consolidate_every=0.1)):
            known = await cluster.world.until(lambda known: "old" not in known, PLANS)
            assert {"mine", "over"} <= known.keys()

            def next_one(known: Mapping[str, Any]) -> bool:
                return any(name.startswith("empty-node-") for name in known)

            known = await cluster.world.until(next_one, PLANS)
            assert {"mine", "over"} <= known.keys()


@pytest.mark.parametrize("acts", [False, True])
async def test_room_is_made_ahead_where_too_few_nodes_have_it(ram: Path, *, acts: bool) -> None:
    """It is shown; to Act it is made, once, and counted."""
    async with planned(ram, over_http=False, works=False) as cluster:
        store = cluster.world.store
        await store.delete(objects.Ref(kinds.PODS, "big", "d"), grace_seconds=0)
        ahead = (Headroom({"cpu": 1000}, 1), Headroom({"cpu": 3000}, 1))
        async with working(cluster, PlanSettings(acts=acts), headroom=ahead) as made:
            rows = 'koordlet_headroom_nodes{size="cpu=3"} '
            await deadline.comes(lambda: f"{rows}0" in made.metrics(), seconds=30.0)
            assert 'koordlet_headroom_wanted_nodes{size="cpu=1"} 1' in made.metrics()

            def done(known: Mapping[str, Any]) -> bool:
                several = [each.get("status", {}) for each in known.values()]
                wanted = ("phase", "Done") if acts else ("reason", "Shadow")
                return any(each.get(wanted[0]) == wanted[1] for each in several)

            ((name, body),) = (await cluster.world.until(done, PLANS)).items()
            plan = move_plan.decode(body)
            assert name.startswith("headroom-")
            assert (plan.room, plan.mover) == ({"cpu": 3000}, f"defragment/{name}")
            assert [move.origin for move in plan.moves] == ["n1"] * 3
            assert plan.status.message == (
                "room for cpu=3 was made on node n1" if acts else
                "3 moves would make room for cpu=3; set spec.mode to Act to make them"
            )  # fmt: skip
            assert ("n1" in (await cluster.world.placed()).values()) is not acts
            if acts:
                await cluster.nothing_left()
                await deadline.comes(lambda: f"{rows}1" in made.metrics(), seconds=30.0)


class FailsOnce(descheduler.Descheduler):
    """Cannot tell once how the cluster is; its first round had it."""

    calls = 0

    def state(self) -> ClusterState:
        """The cluster now."""
        self.calls += 1
        if self.calls == 2:
            raise ZeroDivisionError("a fault of the planner")
        return super().state()


def test_fault_of_the_planner_costs_one_turn_and_the_plan_begins_later(ram: Path) -> None:
    """Nothing else of the descheduler ends with it."""

    async def body() -> None:
        async with (
            planned(ram, over_http=False, works=False) as cluster,
            working(cluster, PlanSettings(make_room_after=0.1), FailsOnce) as made,
        ):
            await cluster.world.until(bool, PLANS)
            assert made.core.measures.requests["move_plan", "error"] == 1

    with logs.written() as stream:
        schedulers.run(body())
    assert "a fault of the planner" in stream.getvalue()


class WithoutPlans:
    """A store in which nobody may create a plan."""

    def __init__(self, store: objects.Objects) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def create(self, kind: kinds.Kind, body: objects.Object, **more: Any) -> objects.Object:
        """A new object."""
        if kind == PLANS:
            raise refusals.Forbidden("cannot create moveplans", culprit=kind.name)
        return await self._store.create(kind, body, **more)


def test_plan_that_may_not_begin_is_counted_and_logged(ram: Path) -> None:
    """A role that lacks the right is seen by whoever waits for plans."""

    async def body() -> None:
        async with planned(ram, over_http=False, works=False) as cluster:
            cluster.world.client = WithoutPlans(cluster.world.client)
            async with working(cluster, PlanSettings(make_room_after=0.1)) as made:
                counts = made.core.measures.requests
                code = refusals.Forbidden.code
                await deadline.comes(lambda: bool(counts["move_plan", code]), seconds=30.0)

    with logs.written() as stream:
        schedulers.run(body())
    assert "move_plan.not_begun" in stream.getvalue()
