"""A scheduler at work over a store, in this loop.

Covers: both stores, objects to schedule, waiting for what must come by watching the store.
Does not cover: the scheduler itself.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import election, runner
from koordlet.scheduler.store import adapter
from tests.kit import clusters, deadline
from tests.kit.apiserver import server, store_server

NAME = "koordlet-scheduler"
#: How long a test waits for what must come; some of them start three programs, one after the other.
PATIENCE = deadline.PATIENCE
#: Metadata of a pod of a ReplicaSet, and the status of one that is up.
OWNER = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
         "uid": "r", "controller": True}]}  # fmt: skip
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
#: A test is once for the store itself, and once for the store over HTTP.
both = pytest.mark.parametrize("over_http", [False, True], ids=["file", "http"])


@dataclass
class World:
    """A store, what it looks like from a client, and the server between them, if there is one."""

    store: adapter.Store
    client: objects.Objects
    serving: server.Server | None

    async def node(self, name: str, **more: Any) -> None:
        """A new node."""
        body = clusters.node(name, **more)
        status = body.pop("status")
        made = {**body, "apiVersion": "v1"}
        await self.store.create(kinds.NODES, made)
        ref = objects.Ref(kinds.NODES, name)
        await self.store.patch(ref, objects.Merge({"status": status}), subresource="status")

    async def pod(self, name: str, **more: Any) -> objects.Ref:
        """A new pod for our scheduler."""
        body = clusters.pod(name, **{"schedulerName": NAME, **more})
        await self.store.create(kinds.PODS, {**body, "apiVersion": "v1"})
        return objects.Ref(kinds.PODS, name, "d")

    async def pods(self) -> dict[str, Mapping[str, Any]]:
        """All pods by name."""
        listing = await objects.collect(self.store.list(kinds.PODS))
        return {objects.text(body, "name"): body for body in listing.items}

    async def placed(self) -> dict[str, str]:
        """Pod to node, of those that have one."""
        nodes = {
            name: body["spec"].get("nodeName", "") for name, body in (await self.pods()).items()
        }
        return {name: node for name, node in nodes.items() if node}

    async def until(
        self,
        good: Callable[[dict[str, Mapping[str, Any]]], bool],
        kind: kinds.Kind = kinds.PODS,
    ) -> dict[str, Mapping[str, Any]]:
        """Wait until the objects of a kind are as they should be."""
        listing = await objects.collect(self.store.list(kind))
        known = {objects.text(body, "name"): body for body in listing.items}
        if good(known):
            return known
        watch = self.store.watch(kind, listing.revision)
        try:
            async with asyncio.timeout(PATIENCE):
                async for change in watch:
                    name = objects.text(change.object, "name")
                    if change.verb is objects.Verb.DELETED:
                        known.pop(name, None)
                    elif change.verb is not objects.Verb.BOOKMARK:
                        known[name] = change.object
                    if good(known):
                        return known
        finally:
            await watch.aclose()
        raise AssertionError

    async def until_placed(self, *names: str) -> dict[str, str]:
        """Wait until these pods have a node; the nodes of all pods."""

        def good(known: dict[str, Mapping[str, Any]]) -> bool:
            return all(known.get(name, {}).get("spec", {}).get("nodeName") for name in names)

        await self.until(good)
        return await self.placed()

    async def until_seen(self, method: str, path: str) -> None:
        """Wait until the server has been asked something."""
        assert self.serving is not None
        asked = functools.partial(self.serving.asked, method, path)
        await deadline.comes(asked, seconds=PATIENCE)

    async def until_told(self, name: str, words: str = "") -> str:
        """Wait until a pod's condition says why it has no node; the message."""

        def message(known: dict[str, Mapping[str, Any]]) -> str:
            conditions = known.get(name, {}).get("status", {}).get("conditions", ())
            return next(
                (condition["message"] for condition in conditions if condition.get("message")), ""
            )

        known = await self.until(lambda known: bool(message(known)) and words in message(known))
        return str(message(known))


@asynccontextmanager
async def world(
    path: Path,
    *,
    over_http: bool,
    custom: Sequence[kinds.Kind] = (kinds.RESERVATIONS,),
    ahead: float = 0.0,
) -> AsyncGenerator[World]:
    """An empty store, reached directly or through an API server; ``ahead``: its clock, seconds."""

    def clock() -> float:
        return time.time() + ahead

    if over_http:
        opened = store_server.opened(path, custom=custom, clock=clock)
        async with opened as (serving, client, store):
            await store.create(kinds.NAMESPACES, {"metadata": {"name": "d"}})
            yield World(store, client, serving)
        return
    store = adapter.Store(path / "store.db", clock=clock)
    await store.open()
    await store.create(kinds.NAMESPACES, {"metadata": {"name": "d"}})
    yield World(store, store, None)
    await store.close()


@asynccontextmanager
async def scheduler(
    client: objects.Objects,
    *,
    terms: election.Terms | None = None,
    instance: str = "one",
    profiles: Mapping[str, profile.Profile] | None = None,
    **more: Any,
) -> AsyncGenerator[runner.Loop]:
    """A loop that runs meanwhile."""
    usual = profiles or {NAME: profile.default(NAME)}
    loop = runner.Loop(client, usual, instance=instance, terms=terms, first=0.01, **more)
    task = asyncio.ensure_future(loop.run())
    try:
        yield loop
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def scheduled(
    path: Path,
    *,
    over_http: bool = False,
    custom: Sequence[kinds.Kind] = (kinds.RESERVATIONS,),
    ahead: float = 0.0,
    **more: Any,
) -> AsyncGenerator[tuple[World, runner.Loop]]:
    """A world, and a scheduler for it that runs meanwhile."""
    async with (
        world(path, over_http=over_http, custom=custom, ahead=ahead) as made,
        scheduler(made.client, **more) as loop,
    ):
        yield made, loop


def run(body: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine with a deadline."""
    asyncio.run(asyncio.wait_for(body, 2 * PATIENCE))
