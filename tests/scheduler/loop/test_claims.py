"""Claims at work: devices are chosen, written before the binding, known again, given back."""

from __future__ import annotations

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


async def report(world: World, name: str, pool: str, condition: str) -> None:
    """A driver says that a condition of the claim's device ``g`` is true."""
    true = {"type": condition, "status": "True"}
    device = {"driver": kit.DRIVER, "pool": pool, "device": "g", "conditions": [true]}
    patch = objects.Merge({"status": {"devices": [device]}})
    where = objects.Ref(kinds.RESOURCE_CLAIMS, name, "d")
    await world.store.patch(where, patch, subresource="status")


async def test_a_claim_is_written_before_the_pod_is_bound(ram: Path) -> None:
    """Finalizer, allocation, who uses it; another pod gets the next device of the node."""
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


async def test_a_claim_that_comes_later_lets_its_pod_enter_the_queue(ram: Path) -> None:
    """Nobody else is tried for it; what has no claim is placed meanwhile."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n")
        async with schedulers.scheduler(world.client):
            await pod(world, "early")
            await world.pod("plain")
            assert await world.until_placed("plain") == {"plain": "n"}
            await claim(world)
            await world.until_placed("early")


async def test_a_pod_waits_for_devices_and_gets_those_that_a_claim_gives_back(ram: Path) -> None:
    """The message is kube-scheduler's; a new slice helps as well."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n", devices=1)
        await claim(world)
        await claim(world, name="e")
        await claim(world, name="f")
        async with schedulers.scheduler(world.client):
            await pod(world, "a")
            await world.until_placed("a")
            await pod(world, "b", "e")
            message = await world.until_told("b")
            assert message == (
                "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable,"
                " preemption: 0/1 nodes are available:"
                " 1 Preemption is not helpful for scheduling."
            )
            where = objects.Ref(kinds.RESOURCE_CLAIMS, "c", "d")
            free = objects.Merge({"status": {"allocation": None, "reservedFor": None}})
            await world.store.patch(where, free, subresource="status")
            await world.until_placed("b")
            assert devices(await allocated(world, "e")) == ["n/g0"]
            await pod(world, "late", "f")
            await world.until_told("late")
            more = kit.resource_slice(["x"], node="n", pool="more")
            await world.store.create(kinds.RESOURCE_SLICES, more)
            await world.until_placed("late")
            assert devices(await allocated(world, "f")) == ["more/x"]


async def test_pods_that_share_a_claim_go_where_its_devices_are(ram: Path) -> None:
    """Both are in reservedFor, whoever is bound first."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n", "m")
        await claim(world)
        await pod(world, "a")
        await pod(world, "b")
        async with schedulers.scheduler(world.client):
            placed = await world.until_placed("a", "b")
            assert placed["a"] == placed["b"]
            shared = await allocated(world)
            names = {each["name"] for each in shared["status"]["reservedFor"]}
            assert names == {"a", "b"}


async def test_a_restart_between_allocation_and_binding_binds_where_the_devices_are(
    ram: Path,
) -> None:
    """The claim is as a scheduler left it that was killed before the binding."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n", "m")
        await claim(world)
        ref = await pod(world, "a")
        uid = objects.text(await world.store.get(ref), "uid")
        term = {"key": "metadata.name", "operator": "In", "values": ["m"]}
        result = {"request": "r", "driver": kit.DRIVER, "pool": "m", "device": "g1"}
        status = {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [term]}]},
            },
            "reservedFor": [{"resource": "pods", "name": "a", "uid": uid}],
        }
        where = objects.Ref(kinds.RESOURCE_CLAIMS, "c", "d")
        await world.store.patch(where, objects.Merge({"status": status}), subresource="status")
        async with schedulers.scheduler(world.client):
            assert await world.until_placed("a") == {"a": "m"}
            assert devices(await allocated(world)) == ["m/g1"]


async def test_devices_that_nobody_uses_are_given_back_for_a_pod_that_cannot_reach_them(
    ram: Path,
) -> None:
    """PostFilter takes them from the claim; the pod is tried again and gets others."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n", "m")
        await claim(world)
        term = {"key": "metadata.name", "operator": "In", "values": ["m"]}
        result = {"request": "r", "driver": kit.DRIVER, "pool": "m", "device": "g1"}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [term]}]},
        }
        where = objects.Ref(kinds.RESOURCE_CLAIMS, "c", "d")
        status = {"status": {"allocation": allocation}}
        await world.store.patch(where, objects.Merge(status), subresource="status")
        async with schedulers.scheduler(world.client):
            await pod(world, "a", nodeSelector={"kubernetes.io/hostname": "n"})
            assert await world.until_placed("a") == {"a": "n"}
            assert devices(await allocated(world)) == ["n/g0"]


async def test_a_claim_that_cannot_be_judged_is_told_by_its_own_name(ram: Path) -> None:
    """Pods that ask for the same share the search, not the message; another selector helps."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n")
        bad = kit.request("r", 'device.attributes["gpu.example"].nope == "x"')
        for name in ("one", "two"):
            await claim(world, bad, name=name)
        await claim(world)
        async with schedulers.scheduler(world.client):
            for name in ("one", "two"):
                await pod(world, name, name)
                message = await world.until_told(name)
                why = f"claim d/{name}: selector #0: CEL runtime error: no such key: nope"
                assert message.startswith(f"0/1 nodes are available: 1 {why}. ")
            await pod(world, "fine")
            await world.until_placed("fine")


async def test_a_class_that_does_not_exist_is_told_and_waited_for(ram: Path) -> None:
    """In kube-scheduler's words."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n")
        await claim(world, kit.request(device_class="card"))
        async with schedulers.scheduler(world.client):
            await pod(world, "a")
            message = await world.until_told("a")
            assert message.startswith(
                "0/1 nodes are available: request r: device class card does not exist."
                " no new claims to deallocate, preemption: "
            )
            await world.store.create(kinds.DEVICE_CLASSES, kit.device_class("card", "true"))
            await world.until_placed("a")


async def test_a_gang_whose_members_have_claims_gets_devices_for_all_or_none(ram: Path) -> None:
    """One whose claim is missing keeps the others; three of two devices are too many."""
    label = "pod-group.scheduling.sigs.k8s.io"
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n", devices=2)
        for name, least in (("two", 2), ("three", 3)):
            group: dict[str, Any] = {"metadata": {"name": name, "namespace": "d"}}
            group |= {"spec": {"minMember": least}}
            await world.store.create(kinds.POD_GROUPS, group)
        async with schedulers.scheduler(world.client):
            for number in range(3):
                await claim(world, name=f"t{number}")
                await pod(world, f"t{number}", f"t{number}", labels={label: "three"})
            await world.until_told("t0", "cannot allocate all claims")
            await claim(world, name="a")
            await pod(world, "a", "a", labels={label: "two"})
            await pod(world, "b", "b", labels={label: "two"})
            await world.until_told("a")
            await claim(world, name="b")
            assert await world.until_placed("a", "b") == {"a": "n", "b": "n"}


async def test_devices_with_conditions_are_waited_for_before_the_binding(ram: Path) -> None:
    """An event says so; the pod is bound when the driver says that they are there."""
    async with schedulers.world(ram, over_http=False) as world:
        await furnished(world, "n")
        conditional = kit.device(
            "g", bindingConditions=["Attached"], bindingFailureConditions=["Broken"]
        )
        piece = kit.resource_slice([conditional], node="n", pool="late")
        await world.store.create(kinds.RESOURCE_SLICES, piece)
        await claim(world, kit.request("r", count=3))
        async with schedulers.scheduler(world.client):
            await pod(world, "a")
            assert "late/g" in devices(await allocated(world))
            events = await world.until(bool, kinds.EVENTS)
            assert [(each["reason"], each["note"]) for each in events.values()] == [
                (
                    "BindingConditionsPending",
                    "waiting for binding conditions for device on node n",
                )
            ]
            assert not await world.placed()
            await report(world, "c", "late", "Attached")
            assert await world.until_placed("a") == {"a": "n"}


async def broken(world: World, *users: str) -> None:
    """A claim whose device ``late/g`` has failed, used by these pods."""
    await furnished(world, "n", devices=1)
    result = {"request": "r", "driver": kit.DRIVER, "pool": "late", "device": "g"}
    asked = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    status = {
        "allocation": {"devices": {"results": [{**result, **asked}]}},
        "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
    }
    await claim(world)
    where = objects.Ref(kinds.RESOURCE_CLAIMS, "c", "d")
    await world.store.patch(where, objects.Merge({"status": status}), subresource="status")
    await report(world, "c", "late", "Broken")


async def test_a_claim_whose_device_has_failed_gets_another_one(ram: Path) -> None:
    """Nobody uses it: PostFilter takes the device from it, before any binding is tried."""
    async with schedulers.world(ram, over_http=False) as world:
        await broken(world)
        async with schedulers.scheduler(world.client):
            await pod(world, "a")
            assert await world.until_placed("a") == {"a": "n"}
            assert devices(await allocated(world)) == ["n/g0"]


async def test_what_was_said_of_a_device_is_forgotten_when_it_is_given_back(ram: Path) -> None:
    """The same device is chosen again, since there is no other: it may become ready this time."""
    async with schedulers.world(ram, over_http=False) as world:
        await broken(world)
        await world.store.delete(objects.Ref(kinds.RESOURCE_SLICES, f"{kit.DRIVER}-n-1"))
        conditional = kit.device(
            "g", bindingConditions=["Attached"], bindingFailureConditions=["Broken"]
        )
        piece = kit.resource_slice([conditional], node="n", pool="late")
        await world.store.create(kinds.RESOURCE_SLICES, piece)
        async with schedulers.scheduler(world.client):
            await pod(world, "a")
            await world.until(
                lambda several: (
                    bool(several["c"]["status"].get("reservedFor"))
                    and not several["c"]["status"].get("devices")
                ),
                kinds.RESOURCE_CLAIMS,
            )
            await report(world, "c", "late", "Attached")
            assert await world.until_placed("a") == {"a": "n"}


async def test_a_failed_device_that_another_pod_uses_keeps_its_claim_off_all_nodes(
    ram: Path,
) -> None:
    """That pod keeps it, and who comes later is told so."""
    async with schedulers.world(ram, over_http=False) as world:
        await broken(world, "other")
        async with schedulers.scheduler(world.client):
            await pod(world, "a")
            message = await world.until_told("a")
            why = "1 resourceclaim not available on the node. still not schedulable"
            assert message.startswith(f"0/1 nodes are available: {why}")
            assert devices(await allocated(world)) == ["late/g"]
