"""The service ``Moves`` over a socket: a stream of states, errors as codes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import refusals
from koordlet.model import errors
from koordlet.rpc import client as rpc_client
from koordlet.rpc import moving, server


class Backend:
    """Moves one pod for ever."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def move(self, wanted: moving.MoveRequest) -> AsyncIterator[moving.PodMove]:
        if wanted.node == "n9":
            raise refusals.NotFound("no such node", culprit=wanted.node)
        try:
            yield moving.PodMove(pod="d/a", state="Waiting", node=wanted.node)
            yield moving.PodMove(pod="d/a", state="Reserved", node="n2", message=wanted.reason)
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def undo_drain(self, node: str) -> int:
        if node == "n9":
            raise refusals.NotFound("no such node", culprit=node)
        return 3

    async def objects(self) -> AsyncIterator[moving.ClusterObject]:
        for name in "ab":
            yield moving.ClusterObject(json=name)


class HangingBackend(Backend):
    """Stops in the middle of its objects."""

    async def objects(self) -> AsyncIterator[moving.ClusterObject]:
        yield moving.ClusterObject(json="a")
        await asyncio.Event().wait()


async def test_scheduler_that_stops_in_the_middle_of_its_objects_is_not_waited_for(
    ram: Path,
) -> None:
    """Half a cluster is no rehearsal: the caller learns what did not answer."""
    service = moving.MovingService(HangingBackend())
    serving = server.RpcServer(ram / "s.sock", (service,))
    await serving.start()

    def ask() -> None:
        with (
            rpc_client.MovesClient(ram / "s.sock") as client,
            pytest.raises(errors.HostError, match="does not answer ListObjects"),
        ):
            list(client.objects(timeout=0.2))

    await asyncio.to_thread(ask)
    await serving.stop()


async def test_a_caller_is_told_of_each_state_and_its_going_ends_the_moves(ram: Path) -> None:
    """The iterator of the backend is closed; a refusal has the scheduler's words."""
    backend = Backend()
    serving = server.RpcServer(ram / "s.sock", (moving.MovingService(backend),))
    await serving.start()

    def ask() -> None:
        with rpc_client.MovesClient(ram / "s.sock") as client:
            moves: Any = client.move(moving.MoveRequest(node="n1", reason="a fan"))
            states = [(move.state, move.node, move.message) for move in (next(moves), next(moves))]
            assert states == [("Waiting", "n1", ""), ("Reserved", "n2", "a fan")]
            moves.close()
            assert client.undo_drain("n1") == 3
            assert list(client.objects()) == ["a", "b"]
            with pytest.raises(errors.HostError, match="no such node"):
                next(client.move(moving.MoveRequest(node="n9")))
            with pytest.raises(errors.HostError, match="no such node"):
                client.undo_drain("n9")

    await asyncio.to_thread(ask)
    await backend.ended.wait()
    await serving.stop()
