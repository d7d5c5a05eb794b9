"""Plans of moves over both stores, beside a scheduler: room first, kills at any moment, the end."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, pod_groups
from koordlet.scheduler.disruption.settings import PlanSettings
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import move_plan
from tests.kit import reservations, schedulers
from tests.kit.descheduler_scene import FREE
from tests.kit.migration_scene import JOBS, at_work, settings
from tests.kit.schedulers import OWNER, READY, both

PLANS = kinds.MOVE_PLANS
KINDS = (kinds.RESERVATIONS, kinds.DISRUPTION_RATES, kinds.NODE_AVOIDANCES, JOBS, PLANS)
PROFILES = {schedulers.NAME: profile.default(schedulers.NAME)}


def owner(app: str) -> dict[str, Any]:
    """A ReplicaSet."""
    (reference,) = OWNER["ownerReferences"]
    return {"ownerReferences": [{**reference, "name": app, "uid": f"uid-{app}"}]}


class Planned:
    """A node of three small workloads, two nodes with half of it free, a large pod that waits."""

    def __init__(self, world: schedulers.World, gang: dict[str, str]) -> None:
        self.world = world
        #: What the small pods say of the gang that they are in.
        self._gang = gang
        self._next = 0
        #: Everybody who was ever up at once, by workload: the fewest.
        self.seen: list[dict[str, str]] = []

    async def fill(self) -> None:
        """Make it."""
        await self.world.node("n1", cpu="3")
        for name in ("n2", "n3"):
            await self.world.node(name, cpu="2")
        for app in ("a", "b", "c"):
            await self.pod(app, on="n1")
        await self.world.pod("big", cpu="3")
        await self.world.until_told("big")

    async def pod(self, app: str, on: str = "") -> None:
        """One more pod of a workload; up, where it has a node."""
        self._next += 1
        placed: dict[str, Any] = {"on": on} if on else {}
        name, meta = f"{app}-{self._next}", owner(app)
        meta["annotations"] = dict(self._gang)
        if on:  # It has come by an earlier move, as its annotation says for good.
            meta["annotations"] |= reservations.drawn("past")
        ref = await self.world.pod(name, meta=meta, cpu="1", labels={"app": app}, **placed)
        if on:
            await self.up(ref)

    async def up(self, ref: objects.Ref) -> None:
        """A pod is ready."""
        await self.world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")

    async def live(self) -> None:
        """Replace each pod that ends, and start each that was placed, until cancelled."""
        while True:
            for body in (await self.world.pods()).values():
                ref = objects.ref(kinds.PODS, body)
                if "deletionTimestamp" in body["metadata"]:
                    await self.world.store.delete(ref, grace_seconds=0)
                    await self.pod(body["metadata"]["labels"]["app"])
                elif body["spec"].get("nodeName") and body["status"].get("phase") != "Running":
                    await self.up(ref)
            await asyncio.sleep(0.05)

    async def let_nobody_go(self) -> None:
        """A budget of all workloads that is used up."""
        store = self.world.store
        budget = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "all", "d")
        selector = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        meta, spec = {"name": "all", "namespace": "d"}, {"selector": selector}
        await store.create(budget.kind, {"metadata": meta, "spec": spec})
        status = {"disruptionsAllowed": 0, "observedGeneration": 1}
        await store.patch(budget, objects.Merge({"status": status}), subresource="status")

    async def ask(self, name: str = "p", pod: str = "big", **more: Any) -> None:
        """A new plan for a pod; for none: it empties a node."""
        ref = PodRef("d", pod) if pod else None
        await self.world.store.create(PLANS, move_plan.request(name, pod=ref, **more))

    async def plan(self, *phases: str, name: str = "p") -> move_plan.MovePlan:
        """The plan in one of these phases."""

        def there(known: Mapping[str, Any]) -> bool:
            return known.get(name, {}).get("status", {}).get("phase") in phases

        return move_plan.read((await self.world.until(there, PLANS))[name])

    async def patch(self, body: dict[str, Any], name: str = "p") -> None:
        """Somebody changes a plan."""
        await self.world.store.patch(objects.Ref(PLANS, name), objects.Merge(body))

    async def left(self) -> tuple[list[str], list[str]]:
        """Jobs under way, reservations that hold room."""
        store = self.world.store
        listing = await objects.collect(store.list(JOBS))
        active = [each.name for each in map(jobs.read, listing.items) if each.active]
        listing = await objects.collect(store.list(kinds.RESERVATIONS))
        held = [
            objects.text(body, "name")
            for body in listing.items
            if body.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        ]
        return active, held

    async def nothing_left(self) -> None:
        """Wait until nothing is held."""
        async with asyncio.timeout(schedulers.PATIENCE):
            while await self.left() != ([], []):  # noqa: ASYNC110 -- asks the store
                await asyncio.sleep(0.1)


@asynccontextmanager
async def planned(
    ram: Path, *, over_http: bool, works: bool = True, gang: dict[str, str] | None = None
) -> AsyncGenerator[Planned]:
    """The cluster, with a scheduler, kubelets, controllers and a descheduler at work."""
    async with schedulers.scheduled(ram, over_http=over_http, custom=KINDS) as (world, _):
        cluster = Planned(world, gang or {})
        await cluster.fill()
        living = asyncio.ensure_future(cluster.live())
        try:
            if works:
                async with working(cluster):
                    yield cluster
            else:
                yield cluster
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)


@asynccontextmanager
async def working(
    cluster: Planned,
    plans: PlanSettings | None = None,
    kind: type[descheduler.Descheduler] = descheduler.Descheduler,
    **more: Any,
) -> AsyncGenerator[descheduler.Descheduler]:
    """A descheduler at work; ``more``: of its limits."""
    disruption = dataclasses.replace(FREE, plans=plans or PlanSettings(), **more)
    made = kind(
        cluster.world.client, settings(), instance="one", disruption=disruption, profiles=PROFILES
    )
    async with at_work(made):
        yield made


@both
async def test_a_plan_makes_room_and_the_pod_that_waits_takes_it(
    ram: Path, *, over_http: bool
) -> None:
    """Three moves, found here, each where room was held; then nothing is left of it."""
    async with planned(ram, over_http=over_http) as cluster:
        await cluster.ask(reason="train")
        plan = await cluster.plan("Done", "Failed", "Aborted")
        assert plan.status.phase == "Done", plan.status
        assert plan.status.message == "d/big has node n1"
        assert [move.origin for move in plan.moves] == ["n1"] * 3
        assert [state.phase.value for state in plan.status.moves] == ["Done"] * 3
        placed = await cluster.world.placed()
        assert placed.pop("big") == plan.node == "n1"
        assert sorted(placed.values()) == sorted(move.target for move in plan.moves)
        await cluster.nothing_left()


async def test_a_gang_of_several_workloads_moves_whole_led_by_one_job(ram: Path) -> None:
    """All are needed: each member has its move, and their jobs are made for the gang."""
    gang = {pod_groups.GANG_NAME: "train", pod_groups.GANG_MINIMUM: "3"}
    async with planned(ram, over_http=False, gang=gang) as cluster:
        await cluster.ask()
        plan = await cluster.plan("Done", "Failed", "Aborted")
        assert plan.status.phase == "Done", plan.status
        assert [move.gang for move in plan.moves] == ["d/train"] * 3
        listing = await objects.collect(cluster.world.store.list(JOBS))
        made = {job.name: job for job in map(jobs.read, listing.items)}
        leader, *others = (made[plan.job(place)] for place in range(3))
        assert (len(made), leader.whole_gang, leader.leader) == (3, True, "")
        assert {(job.whole_gang, job.leader) for job in others} == {(False, leader.name)}
        placed = await cluster.world.placed()
        assert placed.pop("big") == "n1"
        assert sorted(placed.values()) == sorted(move.target for move in plan.moves)
        await cluster.nothing_left()


async def test_a_plan_in_shadow_says_what_it_would_do_and_acts_once_it_is_told_to(
    ram: Path,
) -> None:
    """Its moves are in the object; nobody holds or moves anything before."""
    async with planned(ram, over_http=False) as cluster:
        await cluster.ask(acts=False)

        def shown(known: Mapping[str, Any]) -> bool:
            return bool(known.get("p", {}).get("status", {}).get("reason") == "Shadow")

        plan = move_plan.decode((await cluster.world.until(shown, PLANS))["p"])
        assert plan.status.message == (
            "3 moves would make room for d/big; set spec.mode to Act to make them"
        )
        assert [move.origin for move in plan.moves] == ["n1"] * 3
        assert await cluster.left() == ([], [])
        await cluster.patch({"spec": {"mode": "Act"}})
        plan = await cluster.plan("Done", "Failed", "Aborted")
        assert plan.status.phase == "Done", plan.status


@pytest.mark.parametrize(
    ("way", "over_http"), [("abort", False), ("delete", True), ("spoil", False)]
)
async def test_a_plan_that_somebody_ends_gives_back_what_it_holds(
    ram: Path, way: str, *, over_http: bool
) -> None:
    """All room is held, and a budget lets nobody go; then nothing is left, and nobody has moved."""
    async with planned(ram, over_http=over_http) as cluster:
        await cluster.let_nobody_go()
        await cluster.ask()
        plan = await cluster.plan("Moving", "Failed")
        assert plan.status.phase == "Moving", plan.status
        assert len((await cluster.left())[1]) == 4

        def asked(known: Mapping[str, Any]) -> bool:
            return "PDB" in known["p"]["status"]["message"]

        await cluster.world.until(asked, PLANS)
        if way == "abort":
            await cluster.patch({"metadata": {"annotations": {jobs.ABORT: "true"}}})
            assert (await cluster.plan("Aborted")).status.reason == "Aborted"
        elif way == "spoil":
            await cluster.patch({"spec": {"ttl": "soon"}})
            await cluster.plan("Failed")
        else:
            await cluster.world.store.delete(objects.Ref(PLANS, "p"))
        await cluster.nothing_left()
        if way == "spoil":
            assert (await cluster.plan("Failed")).status.reason == "InvalidPlan"
        assert set((await cluster.world.placed()).values()) == {"n1"}


async def test_it_goes_on_where_another_process_ended(ram: Path) -> None:
    """One descheduler holds the room and ends; the next lets them go."""
    async with planned(ram, over_http=False, works=False) as cluster:
        await cluster.ask()
        async with working(cluster):
            await cluster.plan("Reserving", "Moving", "Done")
        async with working(cluster):
            plan = await cluster.plan("Done", "Failed", "Aborted")
        assert plan.status.phase == "Done", plan.status
        listing = await objects.collect(cluster.world.store.list(JOBS))
        assert len(listing.items) == 3


async def test_plans_that_cannot_be_made_say_why_and_no_other_suffers_from_them(ram: Path) -> None:
    """Nobody of the name, a pod that has a node, room that is there, or nowhere, no time."""
    async with planned(ram, over_http=False) as cluster:
        bad = {"metadata": {"name": "bad"}, "spec": {"mode": "Act", "ttl": "soon"}}
        await cluster.world.store.create(PLANS, bad)
        await cluster.world.pod("huge", cpu="64")
        for name, pod in (("gone", "nobody"), ("placed", "a-1"), ("none", "huge")):
            await cluster.ask(name, pod)
        roomy = move_plan.request("roomy", room={"cpu": 1000})
        moves = [move_plan.PlanMove(PodRef("d", "a-1"), "n1", "n3")]
        roomy["spec"] |= move_plan.moves_patch("n2", moves, None)["spec"]
        await cluster.world.store.create(PLANS, roomy)
        await cluster.ask("ahead", "", room={"cpu": 64000})
        for name, reason, words in (
            ("roomy", "NotNeeded", "node n2 has room for cpu=1 already"),
            ("ahead", "NoPlan", "no move helps headroom/cpu=64"),
            ("bad", "InvalidPlan", "spec.ttl: "),
            ("gone", "BeneficiaryGone", "there is no pod d/nobody"),
            ("placed", "NotNeeded", "pod d/a-1 has node n1 already"),
            ("none", "NoPlan", "no move helps d/huge"),
        ):
            status = (await cluster.plan("Failed", name=name)).status
            assert (status.reason, words in status.message) == (reason, True)
        await cluster.ask()
        assert (await cluster.plan("Done", "Failed")).status.phase == "Done"
