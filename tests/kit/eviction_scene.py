"""A scheduler over a store with two ready pods of one controller, and evictions that do not wait.

Covers: the store, the evictions, their events. Does not cover: what must follow (the tests).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.disruption import answers
from koordlet.scheduler.loop import event_messages, evictions, runner
from koordlet.scheduler.objects.pods import Pod
from tests.kit import deadline, schedulers
from tests.kit.schedulers import OWNER, READY

CUSTOM = (kinds.RESERVATIONS, kinds.DISRUPTION_RATES, kinds.NODE_AVOIDANCES)
MOVER = answers.Mover(name="descheduler/test", acts=True)


class Scene:
    """A scheduler over a store with one ready pod, and a way to evict it that does not wait."""

    def __init__(self, world: schedulers.World, loop: runner.Loop) -> None:
        self.world, self.loop = world, loop
        events = event_messages.EventBuilder("test", lambda: loop.disruptions.now().wall)
        self.evictions = evictions.Evictions(
            world.client, loop.disruptions.limiter, loop.core.measures, events, loop.now, pause=0.0
        )

    async def pod(self, name: str = "a") -> Pod:
        """The pod, once the scheduler sees it up."""
        cache = self.loop.core.pod_cache

        def up() -> bool:
            pod = cache.get(f"d/{name}")
            return pod is not None and pod.up

        await deadline.comes(up, seconds=schedulers.PATIENCE)
        pod = cache.get(f"d/{name}")
        assert pod is not None
        return pod

    async def evict(self, name: str = "a", **fields: Any) -> evictions.EvictionResult:
        """Ask for it."""
        request = {"mover": MOVER, "cause": "Rebalanced", "reason": "too full", **fields}
        return await self.evictions.evict(
            evictions.EvictionRequest(pod=await self.pod(name), **request)
        )

    def entries(self) -> list[tuple[str, bool]]:
        """Cause of each debited disruption, and whether an answer is awaited."""
        held = self.loop.disruptions.limiter.rates.get("d/web")
        assert held is not None
        return [(entry.cause, entry.asked) for entry in held.ledger("ReplicaSet/web")]


@asynccontextmanager
async def scene(ram: Path, *, over_http: bool, **spec: Any) -> AsyncGenerator[Scene]:
    """Two ready pods of one controller, and a rate."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.node("n1")
        meta = {"name": "web", "namespace": "d"}
        body = {"metadata": meta, "spec": {"byController": True, **spec}}
        await world.store.create(kinds.DISRUPTION_RATES, body)
        for name in "ab":
            ref = await world.pod(name, on="n1", labels={"app": "web"}, meta=OWNER)
            await world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")
        async with schedulers.scheduler(world.client) as loop:
            known = loop.disruptions.limiter.rates
            await deadline.comes(lambda: len(loop.core.pod_cache) == 2 and [*known])
            yield Scene(world, loop)


async def events(world: schedulers.World, reason: str) -> list[Mapping[str, Any]]:
    """The events with a reason."""
    listing = await objects.collect(world.store.list(kinds.EVENTS))
    return [event for event in listing.items if event["reason"] == reason]
