"""Drains over both stores, beside a scheduler: room first, budgets, progress, the way back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import addresses
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import errors
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import pod_moves
from koordlet.scheduler.migration import job as jobs
from koordlet.scheduler.reservation import keys
from tests.kit import deadline, schedulers
from tests.kit.apiserver.faults import Fault, Manner
from tests.kit.migration_scene import JOBS
from tests.kit.schedulers import OWNER, READY, both

KINDS = (kinds.RESERVATIONS, kinds.DISRUPTION_RATES, kinds.NODE_AVOIDANCES, JOBS)


class Moving:
    """A cluster of three nodes whose ReplicaSet and kubelets do what theirs would do."""

    def __init__(self, world: schedulers.World) -> None:
        self.world = world
        self.told: list[tuple[str, str]] = []
        #: Fewest pods that were up at any time.
        self.fewest = 99
        #: What kubelets and the controller do, while it is under way.
        self.living: asyncio.Future[None]
        self._next = 0

    async def pod(self, *, on: str = "", **more: Any) -> str:
        """One more pod of the ReplicaSet; up, where it has a node."""
        self._next += 1
        name = f"web-{self._next}"
        placed = {"on": on} if on else {}
        labels = {"app": "web"}
        ref = await self.world.pod(name, meta=OWNER, cpu="1", labels=labels, **placed, **more)
        if on:
            await self._up(ref)
        return name

    async def _up(self, ref: objects.Ref) -> None:
        await self.world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")

    async def live(self) -> None:
        """Replace each pod that ends, and start each that was placed, until cancelled."""
        while True:
            pods = (await self.world.pods()).values()
            up = [
                each
                for each in pods
                if each.get("status", {}).get("phase") == "Running"
                and "deletionTimestamp" not in each["metadata"]
            ]
            self.fewest = min(self.fewest, len(up))
            for body in pods:
                ref = objects.ref(kinds.PODS, body)
                if "deletionTimestamp" in body["metadata"]:
                    await self.world.store.delete(ref, grace_seconds=0)
                    await self.pod()
                elif body["spec"].get("nodeName") and body not in up:
                    await self._up(ref)
            await asyncio.sleep(0.05)

    def moves(self, **wanted: Any) -> pod_moves.PodMoves:
        """A drain of node n1, unless something else is wanted."""
        options = {"by": "drain/n1", "node": "n1", **wanted}
        return pod_moves.PodMoves(
            self.world.client,
            pod_moves.MoveOptions(**options),
            {schedulers.NAME: profile.default(schedulers.NAME)},
            DisruptionSettings(),
            instance="person",
            tell=lambda progress: self.told.append((progress.pod, progress.state)),
        )

    async def left(self) -> tuple[list[str], list[str], bool]:
        """Jobs under way, reservations that hold room, whether n1 is cordoned."""
        store = self.world.store
        listing = await objects.collect(store.list(JOBS))
        active = [each.name for each in map(jobs.read, listing.items) if each.active]
        listing = await objects.collect(store.list(kinds.RESERVATIONS))
        held = [
            objects.text(body, "name")
            for body in listing.items
            if body.get("status", {}).get("phase") in {None, "Pending", "Available"}
        ]
        node = await store.get(objects.Ref(kinds.NODES, "n1"))
        return active, held, node["spec"].get("unschedulable") is True

    async def comes(self, wanted: tuple[list[str], list[str], bool]) -> None:
        """Wait until that is left: the phase of a reservation is written a moment later."""
        async with asyncio.timeout(schedulers.PATIENCE):
            while await self.left() != wanted:  # noqa: ASYNC110 -- asks the store
                await asyncio.sleep(0.1)


@asynccontextmanager
async def moving(ram: Path, *, over_http: bool, pods: int = 3) -> AsyncGenerator[Moving]:
    """Pods on n1, a scheduler at work, kubelets and a controller."""
    async with schedulers.scheduled(ram, over_http=over_http, custom=KINDS) as (world, _):
        cluster = Moving(world)
        for name in ("n1", "n2", "n3"):
            await world.node(name)
        for _ in range(pods):
            await cluster.pod(on="n1")
        cluster.living = asyncio.ensure_future(cluster.live())
        try:
            yield cluster
        finally:
            cluster.living.cancel()
            await asyncio.gather(cluster.living, return_exceptions=True)


@both
async def test_a_drain_empties_the_node_room_first_and_leaves_nothing_behind(
    ram: Path, *, over_http: bool
) -> None:
    """Each pod is told of as it waits, has room, goes; a DaemonSet's pod stays."""
    async with moving(ram, over_http=over_http) as cluster:
        daemon = {"ownerReferences": [{**OWNER["ownerReferences"][0], "kind": "DaemonSet"}]}
        await cluster.world.pod("agent", on="n1", meta=daemon)
        assert await cluster.moves().run() is True
        placed = await cluster.world.placed()
        assert [name for name, node in placed.items() if node == "n1"] == ["agent"]
        states = [state for pod, state in cluster.told if pod == "d/web-1"]
        assert (states[0], states[-1]) == ("Waiting", "Moved")
        assert ("d/agent", "Stays") in cluster.told
        await cluster.comes(([], [], True))
        assert await pod_moves.undo(cluster.world.client, "n1") == 0
        assert (await cluster.left())[2] is False


async def test_a_job_whose_creation_got_no_answer_is_gone_on_with(ram: Path) -> None:
    """A second one for the same pod would be refused, and the drain would seem to have failed."""
    async with moving(ram, over_http=True, pods=1) as cluster:
        serving = cluster.world.serving
        assert serving is not None
        path = addresses.collection(JOBS, "")
        cut = serving.faults.add(Fault(Manner.CUT, method="POST", path=path))
        assert await cluster.moves().run() is True
        assert cut.times == 0
        listing = await objects.collect(cluster.world.store.list(JOBS))
        assert [jobs.read(each).status.phase for each in listing.items] == ["Succeeded"]


@both
async def test_a_rate_stops_a_drain_and_what_it_holds_is_given_back(
    ram: Path, *, over_http: bool
) -> None:
    """One an hour: the first has gone, the second waits in vain until somebody interrupts."""
    async with moving(ram, over_http=over_http, pods=2) as cluster:
        meta = {"name": "web", "namespace": "d"}
        rate = {"metadata": meta, "spec": {"byController": True}}
        await cluster.world.store.create(kinds.DISRUPTION_RATES, rate)
        drain = cluster.moves()
        work = asyncio.ensure_future(drain.run())

        def stands() -> bool:
            states = sorted(drain.states.values(), key=lambda each: each.state)
            return (
                len(states) == 2
                and states[0].state == "Moved"
                and ("allows 1 in 1h, and 1 happened; the next is" in states[1].message)
            )

        await deadline.comes(stands, seconds=schedulers.PATIENCE)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await cluster.comes(([], [], True))
        assert cluster.fewest >= 1


async def test_a_pod_whose_room_a_sibling_took_gets_other_room(ram: Path) -> None:
    """Rooms of one workload are open to each replacement: one came for a pod that a budget kept."""
    async with moving(ram, over_http=False, pods=2) as cluster:
        store, meta = cluster.world.store, {"name": "web", "namespace": "d"}
        spec: dict[str, Any] = {"replicas": 2, "selector": {}}
        await store.create(kinds.REPLICA_SETS, {"metadata": meta, "spec": spec})
        pod = objects.Ref(kinds.PODS, "web-1", "d")
        await store.patch(pod, objects.Merge({"metadata": {"labels": {"kept": "yes"}}}))
        budgets = [
            await _budget(store, operator, allowed=0) for operator in ("Exists", "DoesNotExist")
        ]
        drain = cluster.moves()
        work = asyncio.ensure_future(drain.run())

        def waits() -> bool:
            wanted = "a PodDisruptionBudget in d allows no disruption"
            states = drain.states.values()
            return len(states) == 2 and all(wanted in each.message for each in states)

        await deadline.comes(waits, seconds=schedulers.PATIENCE)
        listing = await objects.collect(store.list(JOBS))
        room = next(
            job.reservation for job in map(jobs.read, listing.items) if job.pod.name == "web-1"
        )
        first = objects.Merge({"metadata": {"labels": {keys.ORDER: "1"}}})
        await store.patch(objects.Ref(kinds.RESERVATIONS, room), first)
        await _allow(store, budgets[1], 1)

        await deadline.comes(
            lambda: drain.states["d/web-2"].state == "Moved", seconds=schedulers.PATIENCE
        )
        await cluster.world.until(
            lambda known: known[room]["status"].get("phase") == "Succeeded", kinds.RESERVATIONS
        )
        await _allow(store, budgets[0], 1)
        assert await work is True
        assert "n1" not in (await cluster.world.placed()).values()
        await cluster.comes(([], [], True))


async def _budget(store: objects.Objects, operator: str, *, allowed: int) -> objects.Ref:
    """A PodDisruptionBudget for pods that have a label, or that lack it."""
    ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, operator.lower(), "d")
    selector = {"matchExpressions": [{"key": "kept", "operator": operator}]}
    spec = {"minAvailable": 1, "selector": selector}
    meta = {"name": ref.name, "namespace": ref.namespace}
    await store.create(ref.kind, {"metadata": meta, "spec": spec})
    await _allow(store, ref, allowed)
    return ref


async def _allow(store: objects.Objects, budget: objects.Ref, number: int) -> None:
    status = {"disruptionsAllowed": number, "observedGeneration": 1}
    await store.patch(budget, objects.Merge({"status": status}), subresource="status")


@both
async def test_an_interrupted_drain_uncordons_a_node_that_nobody_has_left(
    ram: Path, *, over_http: bool
) -> None:
    """Room for all is held, a budget lets none go, Ctrl-C comes: all is as it was."""
    async with moving(ram, over_http=over_http, pods=2) as cluster:
        budget = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "web", "d")
        spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
        meta = {"name": "web", "namespace": "d"}
        await cluster.world.store.create(budget.kind, {"metadata": meta, "spec": spec})
        status = {"disruptionsAllowed": 0, "observedGeneration": 1}
        patch = objects.Merge({"status": status})
        await cluster.world.store.patch(budget, patch, subresource="status")
        drain = cluster.moves()
        work = asyncio.ensure_future(drain.run())

        def waits() -> bool:
            return [each.state for each in drain.states.values()] == ["Reserved"] * 2

        await deadline.comes(waits, seconds=schedulers.PATIENCE)

        def names_the_budget() -> bool:
            wanted = "a PodDisruptionBudget in d allows no disruption"
            return all(wanted in each.message for each in drain.states.values())

        await deadline.comes(names_the_budget, seconds=schedulers.PATIENCE)
        assert len((await cluster.left())[1]) == 2
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await cluster.comes(([], [], False))
        assert set((await cluster.world.placed()).values()) == {"n1"}


async def test_evictions_at_one_time_leave_the_jobs_of_each_other_alone(ram: Path) -> None:
    """Each follows its own pod, and what one gives back is not what the other holds."""
    async with moving(ram, over_http=False, pods=2) as cluster:
        budget = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "web", "d")
        spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
        meta = {"name": "web", "namespace": "d"}
        await cluster.world.store.create(budget.kind, {"metadata": meta, "spec": spec})
        both_moves = [cluster.moves(by="evict", node="", pod=pod) for pod in ("d/web-1", "d/web-2")]
        works = []
        for moves in both_moves:
            works.append(asyncio.ensure_future(moves.run()))

            def waits(moves: pod_moves.PodMoves = moves) -> bool:
                return [each.state for each in moves.states.values()] == ["Reserved"]

            await deadline.comes(waits, seconds=schedulers.PATIENCE)
        assert [list(moves.states) for moves in both_moves] == [["d/web-1"], ["d/web-2"]]
        works[0].cancel()
        await asyncio.gather(works[0], return_exceptions=True)
        assert len((await cluster.left())[0]) == 1, "the job of the other"
        works[1].cancel()
        await asyncio.gather(works[1], return_exceptions=True)
        await cluster.comes(([], [], False))


async def test_a_drain_gives_up_when_its_time_is_over(ram: Path) -> None:
    """Whatever it has done by then: nothing is held any more."""
    async with moving(ram, over_http=False, pods=1) as cluster:
        assert await cluster.moves(timeout=0.0).run() is False
        assert (await cluster.left())[:2] == ([], [])


@pytest.mark.parametrize(
    ("more", "state", "words"),
    [
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, "Blocked", "--delete-local-data"),
        ({"schedulerName": "somebody"}, "Blocked", "--without-room"),
    ],
)
async def test_who_would_lose_something_blocks_and_the_flag_is_named(
    ram: Path, more: dict[str, Any], state: str, words: str
) -> None:
    """The rest goes."""
    async with moving(ram, over_http=False, pods=1) as cluster:
        await cluster.pod(on="n1", **more)
        drain = cluster.moves()
        assert await drain.run() is False
        assert drain.states["d/web-1"].state == "Moved"
        assert drain.states["d/web-2"].state == state
        assert words in drain.states["d/web-2"].message


@both
async def test_one_pod_is_evicted_and_its_workload_avoids_the_node(
    ram: Path, *, over_http: bool
) -> None:
    """Its siblings stay; who is not there is an error."""
    async with moving(ram, over_http=over_http, pods=2) as cluster:
        assert await cluster.moves(by="evict", node="", pod="d/web-1").run() is True
        placed = await cluster.world.placed()
        assert placed["web-2"] == "n1"
        assert placed["web-3"] != "n1"
        listing = await objects.collect(cluster.world.store.list(kinds.NODE_AVOIDANCES))
        assert [objects.text(each, "name") for each in listing.items] == ["n1"]
        assert (await cluster.left())[2] is False
        with pytest.raises(errors.ConfigError, match="no such pod has a node"):
            await cluster.moves(by="evict", node="", pod="d/nobody").run()
        with pytest.raises(refusals.NotFound):
            await cluster.moves(node="n9", by="drain/n9").run()


class Faltering:
    """A store that fails at the first reads of pods, and at the first new jobs."""

    def __init__(self, store: objects.Objects, failures: int) -> None:
        self._store, self._left = store, {kinds.PODS: failures, JOBS: failures}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _fail(self, kind: kinds.Kind) -> None:
        if self._left.get(kind, 0):
            self._left[kind] -= 1
            raise refusals.Failed("the disk is slow", culprit=kind.name)

    async def get(self, ref: objects.Ref) -> objects.Object:
        """Read one object."""
        self._fail(ref.kind)
        return await self._store.get(ref)

    async def create(self, kind: kinds.Kind, body: objects.Object, **more: Any) -> objects.Object:
        """A new object."""
        self._fail(kind)
        return await self._store.create(kind, body, **more)


async def test_a_request_that_fails_for_a_while_ends_no_drain(ram: Path) -> None:
    """Reads of pods and new jobs are tried again, and the reason is told meanwhile."""
    async with moving(ram, over_http=False, pods=2) as cluster:
        cluster.world.client = Faltering(cluster.world.client, 3)
        drain = cluster.moves()
        assert await drain.run() is True
        assert ("d/web-1", "Waiting") in cluster.told
        assert {state.state for state in drain.states.values()} == {"Moved"}


async def test_an_interrupted_drain_keeps_the_room_of_a_pod_that_is_leaving(ram: Path) -> None:
    """Its eviction was accepted, and its containers take their time: the node stays cordoned."""
    async with moving(ram, over_http=False, pods=1) as cluster:
        cluster.living.cancel()  # no kubelet ends anybody
        drain = cluster.moves()
        work = asyncio.ensure_future(drain.run())

        def leaves(known: Any) -> bool:
            return "deletionTimestamp" in known["web-1"]["metadata"]

        await cluster.world.until(leaves)
        pod = drain._watch.core.pod_cache.get
        await deadline.comes(
            lambda: (known := pod("d/web-1")) is not None and known.terminating,
            seconds=schedulers.PATIENCE,
        )
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        active, held, cordoned = await cluster.left()
        assert (len(active), len(held), cordoned) == (1, 1, True)
