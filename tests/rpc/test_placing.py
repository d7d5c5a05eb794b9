"""The service Scheduler over a socket: values as messages, errors as codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from koordlet.kubeapi import refusals
from koordlet.model import errors
from koordlet.rpc import client as rpc_client
from koordlet.rpc import placing, server


class Desk:
    """Knows one pod."""

    def nodes(self, name: str) -> Sequence[placing.Node]:
        return [placing.Node(name=name or "n1")]

    async def assignments(self, node: str, revision: str) -> AsyncIterator[placing.AssignmentEvent]:
        pod = placing.Assignment(name="a", node=node)
        yield placing.AssignmentEvent(verb="SET", revision=revision, assignment=pod)

    async def submit(self, manifests: Sequence[str], *, dry_run: bool) -> Sequence[placing.Taken]:
        return [
            placing.Taken(kind="Pod", name=document, error="no" * dry_run) for document in manifests
        ]

    async def why(self, namespace: str, name: str) -> placing.Why:
        if name != "a":
            raise refusals.NotFound("no such pod", culprit=f"{namespace}/{name}")
        return placing.Why(node="n1", scores={"n1": 3}, refusals={"NodeName": 2})

    async def delete_quota(self, name: str, *, force: bool) -> None:
        if name == "gone":
            raise refusals.NotFound("no quota has this name", culprit=name)
        if not force:
            raise refusals.Invalid(f"quota {name} has 1 child pods: p")


async def test_a_client_is_answered(ram: Path) -> None:
    """What is handed in, and why; an error names its culprit."""
    serving = server.RpcServer(ram / "s.sock", (placing.PlacingService(Desk()),))
    await serving.start()

    def ask() -> None:
        with rpc_client.PlacingClient(ram / "s.sock") as client:
            taken = client.submit(["one", "two"], dry_run=True)
            assert [(t.name, t.error) for t in taken] == [("one", "no"), ("two", "no")]
            known = placing.Why(node="n1", scores={"n1": 3}, refusals={"NodeName": 2})
            assert known == client.why("d", "a")
            with pytest.raises(errors.HostError, match="no such pod"):
                client.why("d", "b")
            client.delete_quota("team", force=True)
            with pytest.raises(refusals.Invalid, match="quota team has 1 child pods"):
                client.delete_quota("team", force=False)
            with pytest.raises(refusals.NotFound, match="gone"):
                client.delete_quota("gone", force=True)

    await asyncio.to_thread(ask)
    await serving.stop()


def test_nobody_listens(ram: Path) -> None:
    """The fix says how to start a scheduler."""
    with (
        rpc_client.PlacingClient(ram / "none.sock") as client,
        pytest.raises(errors.HostError, match="koordlet scheduler --standalone"),
    ):
        client.why("d", "a")


async def test_a_client_hands_in_more_than_one_request_takes(ram: Path) -> None:
    """It sends pieces in their order; an object that is too large for any is refused by name."""
    serving = server.RpcServer(ram / "s.sock", (placing.PlacingService(Desk()),))
    await serving.start()
    large = {"kind": "Pod", "metadata": {"name": "large", "note": "x" * (64 << 10)}}
    several = [f"{number}{'y' * 20_000}" for number in range(9)]

    def ask() -> None:
        with rpc_client.PlacingClient(ram / "s.sock") as client:
            taken = client.submit([*several, json.dumps(large), "last"])
            assert [answer.name for answer in taken] == [*several, "large", "last"]
            errors_of = [answer.error for answer in taken]
            assert "a scheduler takes" in errors_of.pop(-2)
            assert not any(errors_of)

    await asyncio.to_thread(ask)
    await serving.stop()
