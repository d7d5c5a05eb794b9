"""A descheduler over both stores: pods that restarted too often, and one round over them.

Covers: the store with its pods, a round of given strategies.
Does not cover: who must go (the tests).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.disruption.settings import DisruptionSettings, LimiterSettings
from koordlet.scheduler.loop import descheduler
from tests.kit import descheduling, schedulers
from tests.kit.schedulers import OWNER, READY

TOO_MANY = {"RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5}}
#: A limiter that lets several pods of one workload go at once.
FREE = DisruptionSettings(
    limiter=LimiterSettings(
        per_node_in_flight=10, per_node_five_minutes=10, cool_down_seconds=0.0, pending_percent=100
    )
)


def restarted(count: int, phase: str = "Running") -> dict[str, Any]:
    """The status of a pod whose container restarted so often."""
    containers = [{"name": "c", "restartCount": count, "image": "i", "imageID": "", "ready": True}]
    return {**READY, "phase": phase, "containerStatuses": containers}


async def pod(world: schedulers.World, name: str, status: Mapping[str, Any], **more: Any) -> None:
    """A pod on node n1 with this status."""
    ref = await world.pod(name, on="n1", meta=OWNER, **more)
    await world.store.patch(ref, objects.Merge({"status": dict(status)}), subresource="status")


@asynccontextmanager
async def scene(ram: Path, *, over_http: bool) -> AsyncGenerator[schedulers.World]:
    """Two nodes; of three pods two restarted too often, and one of these is no ReplicaSet's."""
    custom = kinds.RESERVATIONS, kinds.NODE_AVOIDANCES
    async with schedulers.world(ram, over_http=over_http, custom=custom) as world:
        await world.node("n1")
        await world.node("n2")
        for name, count in (("often", 9), ("rarely", 1)):
            await pod(world, name, restarted(count))
        ref = await world.pod("bare", on="n1")
        await world.store.patch(ref, objects.Merge({"status": restarted(9)}), subresource="status")
        yield world


async def ending(world: schedulers.World) -> list[str]:
    """The pods that are gone or going."""
    pods = await world.pods()
    gone = {"often", "rarely", "bare"} - pods.keys()
    return sorted(gone | {name for name, body in pods.items()
                          if body["metadata"].get("deletionTimestamp")})  # fmt: skip


async def played(
    world: schedulers.World,
    strategies: Mapping[str, Mapping[str, Any]],
    *,
    evictor: Mapping[str, Any] | None = None,
    dry_run: bool = False,
    **top: Any,
) -> descheduler.Descheduler:
    """One round of these strategies."""
    body = descheduling.policy(strategies, leaderElection={"leaderElect": False}, **top)
    if evictor is not None:
        body["kind"] = "DeschedulerConfiguration"
        arguments = {"name": "MigrationController", "args": dict(evictor)}
        body["profiles"][0]["pluginConfig"].append(arguments)
    made = descheduler.Descheduler(
        world.client, configuration.read(body, "test"), instance="one",
        dry_run=dry_run, disruption=FREE,
    )  # fmt: skip
    await made.run(once=True)
    return made
