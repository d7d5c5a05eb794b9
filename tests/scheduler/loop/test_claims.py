"""Claims at work: devices are chosen, written before the binding, known again, given back."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from tests.kit import device_claims as kit
from tests.kit import schedulers
from tests.kit.schedulers import World

Claim = Mapping[str, Any]
SERVED = (kinds.RESERVATIONS, kinds.DEVICE_CLASSES, kinds.RESOURCE_SLICES, kinds.RESOURCE_CLAIMS)
FINALIZER = "resource.kubernetes.io/delete-protection"


async def furnished(world: World, *nodes: str, devices: int = 2) -> None:
    """Nodes with devices of their own, and a class of all of them."""
    await world.store.create(kinds.DEVICE_CLASSES, kit.device_class("gpu", "true"))
    for node in nodes:
        await world.node(node)
        listed = [kit.device(f"g{n}", {"index": n}) for n in range(devices)]
        await world.store.create(kinds.RESOURCE_SLICES, kit.resource_slice(listed, node=node))


async def claim(world: World, *requests: Mapping[str, Any], name: str = "c", **more: Any) -> None:
    """A new claim; of one device unless requests say otherwise."""
    body = kit.claim(*(requests or (kit.request(),)), name=name, **more)
    await world.store.create(kinds.RESOURCE_CLAIMS, body)


async def pod(world: World, name: str, *claims: str, **more: Any) -> objects.Ref:
    """A new pod that uses these claims."""
    entries = [{"name": each, "resourceClaimName": each} for each in claims or ("c",)]
    return await world.pod(name, resourceClaims=entries, **more)


async def allocated(world: World, name: str = "c") -> Claim:
    """A claim, once it has devices."""
    known = await world.until(
        lambda several: bool(several[name].get("status", {}).get("allocation")),
        kinds.RESOURCE_CLAIMS,
    )
    return known[name]


def devices(body: Claim) -> list[str]:
    """The devices of a claim, ``pool/device``."""
    results = body["status"]["allocation"]["devices"]["results"]
    return [f"{each['pool']}/{each['device']}" for each in results]


def test_a_claim_is_written_before_the_pod_is_bound(ram: Path) -> None:
    """Finalizer, allocation, who uses it; another pod gets the next device of the node."""

    async def body() -> None:
        async with schedulers.world(ram, over_http=True, custom=SERVED) as world:
            await furnished(world, "n")
            await claim(world)
            async with schedulers.scheduler(world.client):
                await pod(world, "a")
                await world.until_placed("a")
                written = await allocated(world)
                assert devices(written) == ["n/g0"]
                assert written["metadata"]["finalizers"] == [FINALIZER]
                uid = (await world.pods())["a"]["metadata"]["uid"]
                mine = {"resource": "pods", "name": "a", "uid": uid}
                assert written["status"]["reservedFor"] == [mine]
                term = {"key": "metadata.name", "operator": "In", "values": ["n"]}
                selector = written["status"]["allocation"]["nodeSelector"]
                assert selector == {"nodeSelectorTerms": [{"matchFields": [term]}]}
                await claim(world, name="e")
                await pod(world, "b", "e")
                assert devices(await allocated(world, "e")) == ["n/g1"]

    schedulers.run(body())
