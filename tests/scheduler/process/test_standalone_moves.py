"""Drains of a standalone scheduler over its socket: the command, an early end, the way back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.kubeapi import kinds, node_avoidances, objects, pod_groups
from koordlet.model import errors
from koordlet.rpc import client as rpc_client
from koordlet.rpc import moving, server
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework import profile
from koordlet.scheduler.process import standalone_moves
from koordlet.state import paths
from tests.kit import gangs, schedulers
from tests.kit.schedulers import OWNER
from tests.scheduler.loop.test_pod_moves import KINDS, Moving


@asynccontextmanager
async def standalone(ram: Path, *, pods: int) -> AsyncGenerator[tuple[Moving, Path]]:
    """Pods on n1 of three nodes, a scheduler, its socket."""
    profiles = {schedulers.NAME: profile.default(schedulers.NAME)}
    where = paths.choose(os.environ, root=True, state_dir=str(ram)).scheduler_socket
    where.parent.mkdir(parents=True, exist_ok=True)
    async with schedulers.scheduled(ram, custom=(*KINDS, kinds.POD_GROUPS)) as (world, loop):
        moves = standalone_moves.StandaloneMoves(
            world.store, loop, profiles, DisruptionSettings(), instance="one"
        )
        serving = server.RpcServer(where, (moving.MovingService(moves),))
        await serving.start()
        cluster = Moving(world)
        for name in ("n1", "n2", "n3"):
            await world.node(name)
        for _ in range(pods):
            await cluster.pod(on="n1")
        living = asyncio.ensure_future(cluster.live())
        try:
            yield cluster, where
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)
            await serving.stop()


async def test_the_command_empties_a_node_and_its_undo_gives_it_back(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a cluster: cordoned, room first, a line for each change; then uncordoned."""
    async with standalone(ram, pods=2) as (cluster, _):
        words = "n1", "--state-dir", str(ram)
        assert await asyncio.to_thread(cli.main, ["drain", *words]) == 0
        out, err = capsys.readouterr()
        lines = [line for line in out.splitlines() if " d/web-1 " in line]
        assert (lines[0], lines[-1].split()[0]) == ("Waiting   d/web-1 n1", "Moved")
        assert "2 moved, 0 left" in err
        assert "n1" not in (await cluster.world.placed()).values()
        await cluster.comes(([], [], True))
        assert await asyncio.to_thread(cli.main, ["drain", "--undo", *words]) == 0
        await cluster.comes(([], [], False))


async def test_a_rehearsal_reads_the_objects_of_the_scheduler_and_changes_nothing(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The calendar of a drain, one eviction, a plan; a gang that needs its pod keeps it."""
    async with standalone(ram, pods=2) as (cluster, _):

        async def ask(*words: str, status: int) -> str:
            whole = [*words, "--state-dir", str(ram)]
            assert await asyncio.to_thread(cli.main, whole) == status
            return capsys.readouterr().out

        placed = await cluster.world.placed()
        assert "n1 is empty from" in await ask("drain", "n1", "--dry-run", status=0)
        text = await ask("evict", "d/web-1", "--dry-run", status=0)
        assert text.startswith("d/web-1 on n1 may be evicted now; its replacement would go to")
        labels = {pod_groups.POD_GROUP: "g"}
        await cluster.world.pod("worker", meta=OWNER, cpu="1", labels=labels, on="n2")
        await cluster.world.store.create(kinds.POD_GROUPS, gangs.pod_group("g", 2))
        text = await ask("drain", "n2", "--dry-run", status=1)
        assert "blocks: GangStays: gang d/g has 1 members on nodes and needs 2" in text
        text = await ask("explain", "plan", "empty-node", status=0)
        assert "node n2 to be emptied" in text
        assert "gang d/g needs 2 members on nodes and has 1, so all of them move, 1: " in text
        assert {name: (await cluster.world.placed())[name] for name in placed} == placed


async def test_when_the_caller_goes_what_is_held_is_given_back(ram: Path) -> None:
    """A budget lets none go: both have room, the connection ends, all is as it was."""
    async with standalone(ram, pods=2) as (cluster, where):
        meta = {"name": "web", "namespace": "d"}
        spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
        store, budgets = cluster.world.store, kinds.POD_DISRUPTION_BUDGETS
        await store.create(budgets, {"metadata": meta, "spec": spec})
        status = {"disruptionsAllowed": 0, "observedGeneration": 1}
        ref = objects.Ref(budgets, "web", "d")
        await store.patch(ref, objects.Merge({"status": status}), subresource="status")

        def follow() -> None:
            reserved = set()
            with rpc_client.MovesClient(where) as client:
                for move in client.move(moving.MoveRequest(node="n1")):
                    if move.state == "Reserved":
                        reserved.add(move.pod)
                    if len(reserved) == 2:
                        return

        await asyncio.to_thread(follow)
        await cluster.comes(([], [], False))
        assert set((await cluster.world.placed()).values()) == {"n1"}


async def test_what_cannot_be_moved_is_named(ram: Path) -> None:
    """No such node, no such pod, neither: the scheduler's words, and nothing is cordoned."""
    async with standalone(ram, pods=1) as (cluster, where):

        def ask(node: str, pod: str) -> None:
            with rpc_client.MovesClient(where) as client:
                list(client.move(moving.MoveRequest(node=node, pod=pod)))

        for node, pod, words in (
            ("n9", "", "n9"),
            ("", "d/nobody", "no such pod has a node"),
            ("", "", "a node or a pod is moved"),
        ):
            with pytest.raises(errors.HostError, match=words):
                await asyncio.to_thread(ask, node, pod)
        await cluster.comes(([], [], False))


@pytest.mark.parametrize(("avoid", "seconds"), [(None, [3600.0]), (0.0, [])])
async def test_workload_avoids_the_node_for_as_long_as_usual_unless_it_is_said(
    ram: Path, avoid: float | None, seconds: list[float]
) -> None:
    """0: not at all, and the field is absent then where it is not said."""
    async with standalone(ram, pods=1) as (cluster, where):

        def ask(avoid: float | None) -> list[str]:
            with rpc_client.MovesClient(where) as client:
                request = moving.MoveRequest(pod="d/web-1", avoid=avoid)
                return [move.state for move in client.move(request)]

        for bad in (float("nan"), -1.0, 90_000.0):
            with pytest.raises(errors.HostError, match="is no time to avoid a node"):
                await asyncio.to_thread(ask, bad)
        assert (await asyncio.to_thread(ask, avoid))[-1] == "Moved"
        listing = await objects.collect(cluster.world.store.list(kinds.NODE_AVOIDANCES))
        several = [node_avoidances.node_avoidance(body).entries for body in listing.items]
        assert [each.until - each.since for entries in several for each in entries] == seconds


async def test_span_that_is_no_time_and_a_drain_of_no_node_are_refused(ram: Path) -> None:
    """Not a number would be the deadline of a timer, and disorder all others."""
    async with standalone(ram, pods=1) as (cluster, where):

        def ask(seconds: float) -> None:
            with rpc_client.MovesClient(where) as client:
                list(client.move(moving.MoveRequest(node="n1", timeout=seconds)))

        for seconds in (float("nan"), -1.0):
            with pytest.raises(errors.HostError, match="is no span of time"):
                await asyncio.to_thread(ask, seconds)
        with (
            rpc_client.MovesClient(where) as client,
            pytest.raises(errors.HostError, match="name it"),
        ):
            await asyncio.to_thread(client.undo_drain, "")
        await cluster.comes(([], [], False))
