"""Over a real store: claims are made, given back and removed; devices send pods away."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.objects import resource_claims
from koordlet.scheduler.standalone import claims, controllers
from tests.kit import device_claims as kit
from tests.kit import schedulers

TEMPLATE = objects.Ref(kinds.RESOURCE_CLAIM_TEMPLATES, "t", "d")


class Scene:
    """A store with a node, its devices, a template, and the controllers."""

    def __init__(self, world: schedulers.World) -> None:
        self.world = world
        self.now = 1_000_000.0
        self.controllers = controllers.Controllers(world.store, dict, lambda: self.now)

    async def furnish(self) -> None:
        """A node with two devices, a class, a template of one device."""
        store = self.world.store
        await self.world.node("n")
        await store.create(kinds.DEVICE_CLASSES, kit.device_class("gpu", "true"))
        await store.create(kinds.RESOURCE_SLICES, kit.resource_slice(["g0", "g1"], node="n"))
        meta = {"name": "t", "namespace": "d"}
        spec = {"metadata": {"labels": {"a": "b"}}, "spec": kit.claim(kit.request())["spec"]}
        await store.create(kinds.RESOURCE_CLAIM_TEMPLATES, {"metadata": meta, "spec": spec})

    async def pod(self, name: str) -> objects.Ref:
        """A pod with a claim by the template."""
        entry = {"name": "x", "resourceClaimTemplateName": "t"}
        return await self.world.pod(name, resourceClaims=[entry])

    async def until(
        self, good: Callable[[dict[str, Mapping[str, Any]]], bool], kind: kinds.Kind
    ) -> dict[str, Mapping[str, Any]]:
        """Wait, while the controllers go round and round."""
        while True:
            listing = await objects.collect(self.world.store.list(kind))
            known = {objects.text(each, "name"): each for each in listing.items}
            if good(known):
                return known
            await self.controllers.once()
            await asyncio.sleep(0.01)

    async def placed(self, name: str) -> Mapping[str, Any]:
        """A pod, once it has a node."""
        known = await self.until(
            lambda several: bool(several[name]["spec"].get("nodeName")), kinds.PODS
        )
        return known[name]


@asynccontextmanager
async def opened(ram: Path) -> AsyncGenerator[Scene]:
    """A scheduler and the controllers' informers at work."""
    async with schedulers.world(ram, over_http=False) as world:
        scene = Scene(world)
        await scene.furnish()
        task = asyncio.ensure_future(scene.controllers.run())
        try:
            async with schedulers.scheduler(world.client):
                yield scene
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_template_makes_a_claim_for_each_pod_which_goes_with_it(ram: Path) -> None:
    """Name, owner, annotation and labels; the next pod gets the device that is free again."""
    async with opened(ram) as scene:
        for name in ("a", "b", "c"):
            await scene.pod(name)
        await scene.placed("a")
        await scene.placed("b")
        status = (await scene.placed("a"))["status"]["resourceClaimStatuses"]
        claim = status[0]["resourceClaimName"]
        known = await scene.until(lambda several: len(several) == 3, kinds.RESOURCE_CLAIMS)
        meta = known[claim]["metadata"]
        assert claim.startswith("a-x-")
        assert meta["labels"] == {"a": "b"}
        assert meta["annotations"] == {"resource.kubernetes.io/pod-claim-name": "x"}
        assert [owner["name"] for owner in meta["ownerReferences"]] == ["a"]
        await scene.world.store.delete(objects.Ref(kinds.PODS, "a", "d"), grace_seconds=0)
        await scene.placed("c")
        left = await scene.until(lambda several: len(several) == 2, kinds.RESOURCE_CLAIMS)
        assert claim not in left


def test_claims_are_found_by_their_owner_and_a_bad_one_keeps_nobody_from_its_own() -> None:
    """Each claim is looked at once for all pods, and none is decoded for it."""
    meta = {"name": "c", "annotations": {"resource.kubernetes.io/pod-claim-name": "x"}}
    owner = {"kind": "Pod", "uid": "u", "controller": True}
    good = {"metadata": {**meta, "ownerReferences": [owner]}, "spec": {"devices": "unread"}}
    bad = {"metadata": {**meta, "ownerReferences": ["u"]}}
    own = claims.by_owner([bad, good, {"metadata": {"name": "d"}}])
    entry = {"name": "x", "resourceClaimTemplateName": "t"}
    waiting = {"metadata": {"uid": "u"}, "spec": {"resourceClaims": [entry]}}

    assert own["u"] == {"x": good}
    assert [each.made for each in claims.missing(waiting, own["u"])] == ["c"]
    assert [each.made for each in claims.missing(waiting, {})] == [""]


async def test_a_claim_keeps_its_name_when_the_pod_was_not_told(ram: Path) -> None:
    """Whoever ended between the two writes: the claim is found by owner and annotation."""
    async with opened(ram) as scene:
        ref = await scene.pod("a")
        await scene.placed("a")
        pods = await scene.until(lambda several: "a" in several, kinds.PODS)
        before = pods["a"]["status"]["resourceClaimStatuses"]
        gone = objects.Merge({"status": {"resourceClaimStatuses": None}})
        await scene.world.store.patch(ref, gone, subresource="status")
        told = await scene.until(
            lambda several: bool(several["a"]["status"].get("resourceClaimStatuses")), kinds.PODS
        )
        assert told["a"]["status"]["resourceClaimStatuses"] == before


async def test_a_claim_without_a_template_gives_its_devices_back_and_stays(ram: Path) -> None:
    """When its last pod has ended; its finalizer goes with them, so that it can be deleted."""
    async with opened(ram) as scene:
        await scene.world.store.create(kinds.RESOURCE_CLAIMS, kit.claim(kit.request()))
        entry = {"name": "x", "resourceClaimName": "c"}
        ref = await scene.world.pod("a", resourceClaims=[entry])
        await scene.placed("a")
        claim = objects.Ref(kinds.RESOURCE_CLAIMS, "c", "d")
        await scene.world.store.delete(claim)
        known = await scene.until(lambda several: "c" in several, kinds.RESOURCE_CLAIMS)
        assert known["c"]["metadata"]["deletionTimestamp"]
        ended = objects.Merge({"status": {"phase": "Succeeded"}})
        await scene.world.store.patch(ref, ended, subresource="status")
        await scene.until(lambda several: not several, kinds.RESOURCE_CLAIMS)


def test_what_a_driver_said_of_a_device_goes_with_the_device() -> None:
    """Else it would count for the same device of the next pod."""
    device = {"driver": kit.DRIVER, "pool": "n", "device": "g"}
    status = {
        "allocation": {"devices": {"results": [{"request": "r", **device}]}},
        "reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}],
        "devices": [{**device, "conditions": [{"type": "Broken", "status": "True"}]}],
    }
    body = kit.claim(kit.request(), status=status)
    claim = resource_claims.decode(body)

    assert claims.wish(body, claim, {"u": True}).status is None
    free = {"reservedFor": None, "allocation": None, "devices": None}
    assert claims.wish(body, claim, {"u": False}).status == free


async def test_a_taint_of_a_device_sends_its_pod_away(ram: Path) -> None:
    """The pod is told why; one that bears the taint for a minute leaves a minute later."""
    async with opened(ram) as scene:
        bearing = {"key": "k", "operator": "Exists", "tolerationSeconds": 60}
        for name, tolerations in (("now", []), ("later", [bearing])):
            request = kit.request(tolerations=tolerations) if tolerations else kit.request()
            claim = kit.claim(request, name=name)
            await scene.world.store.create(kinds.RESOURCE_CLAIMS, claim)
            entry = {"name": "x", "resourceClaimName": name}
            await scene.world.pod(name, resourceClaims=[entry])
            await scene.placed(name)
        taint = {"key": "k", "effect": "NoExecute", "timeAdded": "1970-01-12T13:46:40Z"}
        devices = [kit.device(name, taints=[taint]) for name in ("g0", "g1")]
        body = kit.resource_slice(devices, node="n")
        where = objects.Ref(kinds.RESOURCE_SLICES, objects.text(body, "name"))
        await scene.world.store.patch(where, objects.Merge({"spec": body["spec"]}))

        def leaves(name: str, several: Mapping[str, Any]) -> bool:
            return bool(several[name]["metadata"].get("deletionTimestamp"))

        known = await scene.until(functools.partial(leaves, "now"), kinds.PODS)
        condition = known["now"]["status"]["conditions"][-1]
        assert condition["reason"] == "DeletionByDeviceTaintManager"
        assert condition["observedGeneration"] == 2, "it was made, and bound"
        assert not leaves("later", known)
        scene.now += 61.0
        await scene.until(functools.partial(leaves, "later"), kinds.PODS)
