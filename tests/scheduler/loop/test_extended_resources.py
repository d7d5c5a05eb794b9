"""Claims for extended resources at work: made for the binding, named in the pod, gone with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.objects import generated_claims
from tests.kit import device_claims as kit
from tests.kit import schedulers
from tests.kit.schedulers import World
from tests.scheduler.loop.test_claims import FINALIZER, SERVED, Claim, devices, report

CARD = "example.com/card"


async def card_pod(world: World, name: str, amount: int = 1) -> objects.Ref:
    """A new pod that asks for cards as an extended resource."""
    amounts = {CARD: str(amount)}
    return await world.pod(name, container={"resources": {"requests": amounts, "limits": amounts}})


async def serve_cards(world: World, **device: Any) -> None:
    """A node with one device, and a class that serves cards."""
    await world.node("n")
    piece = kit.resource_slice([kit.device("g", **device)], node="n")
    await world.store.create(kinds.RESOURCE_SLICES, piece)
    served = kit.device_class("cards", "true", extendedResourceName=CARD)
    await world.store.create(kinds.DEVICE_CLASSES, served)


async def extended(world: World, other: str = "") -> Claim:
    """The only claim, once it has devices and is not the other one."""
    known = await world.until(
        lambda several: (
            len(several) == 1
            and other not in several
            and all(each.get("status", {}).get("allocation") for each in several.values())
        ),
        kinds.RESOURCE_CLAIMS,
    )
    (body,) = known.values()
    return body


async def test_a_claim_is_made_for_what_a_node_lacks_and_the_pod_is_told(ram: Path) -> None:
    """Made, written, named in the pod's status with the requests of its containers, then bound."""
    async with schedulers.world(ram, over_http=True, custom=SERVED) as world:
        await serve_cards(world)
        async with schedulers.scheduler(world.client):
            await card_pod(world, "a")
            await world.until_placed("a")
            placed = (await world.pods())["a"]
            made = await extended(world)
            meta, uid = made["metadata"], placed["metadata"]["uid"]
            assert meta["name"].startswith("a-extended-resources-")
            assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
            assert [each["uid"] for each in meta["ownerReferences"]] == [uid]
            assert devices(made) == ["n/g"]
            assert [each["uid"] for each in made["status"]["reservedFor"]] == [uid]
            request = "container-0-request-0"
            assert placed["status"]["extendedResourceClaimStatus"] == {
                "resourceClaimName": meta["name"],
                "requestMappings": [
                    {"containerName": "c", "resourceName": CARD, "requestName": request}
                ],
            }


async def test_a_class_that_serves_a_resource_wakes_the_pods_that_lack_it(ram: Path) -> None:
    """They were refused for an amount; the one that gets no device waits for one."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n")
        async with schedulers.scheduler(world.client):
            await card_pod(world, "a")
            await world.until_told("a", f"1 Insufficient {CARD}")
            piece = kit.resource_slice(["g"], node="n")
            await world.store.create(kinds.RESOURCE_SLICES, piece)
            served = kit.device_class("cards", "true", extendedResourceName=CARD)
            await world.store.create(kinds.DEVICE_CLASSES, served)
            await world.until_placed("a")
            await card_pod(world, "b")
            await world.until_told("b", "1 cannot allocate all claims")


async def test_a_node_that_gets_a_resource_itself_wakes_the_pods_that_lack_its_devices(
    ram: Path,
) -> None:
    """A device plugin comes; it was the devices alone that were missing."""
    async with schedulers.world(ram, over_http=False) as world:
        await serve_cards(world)
        async with schedulers.scheduler(world.client):
            await card_pod(world, "a", amount=2)
            await world.until_told("a", "1 cannot allocate all claims")
            amounts = objects.Merge({"status": {"allocatable": {CARD: "2"}}})
            ref = objects.Ref(kinds.NODES, "n")
            await world.store.patch(ref, amounts, subresource="status")
            assert await world.until_placed("a") == {"a": "n"}


async def test_a_claim_for_extended_resources_goes_with_its_attempt(ram: Path) -> None:
    """A device that fails before the binding: the pod is tried again, with another claim."""
    async with schedulers.world(ram, over_http=False) as world:
        conditions = {"bindingConditions": ["Up"], "bindingFailureConditions": ["Broken"]}
        await serve_cards(world, **conditions)
        async with schedulers.scheduler(world.client):
            await card_pod(world, "a")
            first = objects.text(await extended(world), "name")
            await report(world, first, "n", "Broken")
            second = objects.text(await extended(world, first), "name")
            await report(world, second, "n", "Up")
            assert await world.until_placed("a") == {"a": "n"}
            known = (await world.pods())["a"]["status"]["extendedResourceClaimStatus"]
            assert known["resourceClaimName"] == second


async def test_a_claim_that_an_earlier_scheduler_left_is_deleted_first(ram: Path) -> None:
    """Its devices may not be the right ones any more; the pod gets a new claim."""
    async with schedulers.world(ram, over_http=False) as world:
        await serve_cards(world)
        uid = objects.text(await world.store.get(await card_pod(world, "a")), "uid")
        requests = [kit.request("container-0-request-0", device_class="cards")]
        left = generated_claims.of_resources("d", "a", uid, requests)
        name = objects.text(await world.store.create(kinds.RESOURCE_CLAIMS, left), "name")
        where = objects.Ref(kinds.RESOURCE_CLAIMS, name, "d")
        finalizers = objects.Merge({"metadata": {"finalizers": [FINALIZER]}})
        await world.store.patch(where, finalizers)
        async with schedulers.scheduler(world.client):
            await world.until_placed("a")
            assert devices(await extended(world, name)) == ["n/g"]
