"""Claims that have a volume, that take one, or that get one made, on the node that was chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes, storage
from koordlet.scheduler.plugins import volume_binding, volume_promises
from koordlet.scheduler.plugins.volumes import WithStorage
from tests.kit import clusters, schedulers
from tests.kit.clusters import node, pod
from tests.scheduler.plugins.test_volumes import claim, mounts, volume

Body = dict[str, Any]


def kind(name: str, provisioner: str = volume_binding.NO_PROVISIONER, **more: Any) -> Body:
    """A storage class whose claims wait for their first consumer."""
    mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": provisioner}
    return {"kind": "StorageClass", "metadata": {"name": name}, **mode, **more}


NONE = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."


def test_a_claim_that_waits_goes_where_a_volume_is() -> None:
    """Of its class, with its modes, large enough; what is taken is not free."""
    world = [
        *(node("a"), node("b"), node("c"), kind("local"), claim("c", kind="local", size="2Gi")),
        volume("small", kind="local", on="a"),
        volume("other", kind="else", size="9Gi", on="a"),
        volume("right", kind="local", size="9Gi", on="b"),
        volume("taken", kind="local", size="2Gi", on="c", claimRef={"namespace": "d", "name": "x"}),
    ]

    assert clusters.places(*world, pod("p", **mounts("c"))) == {"p": "b"}


def test_a_class_that_the_old_annotation_names_is_the_class() -> None:
    """On claims and on volumes, whatever their specification says."""
    note = "volume.beta.kubernetes.io/storage-class"

    def of(body: Body, name: str) -> Body:
        return {**body, "metadata": {**body["metadata"], "annotations": {note: name}}}

    world = [
        *(node("a"), node("b"), kind("local")),
        of(volume("other", kind="local", on="a"), "gone"),
        of(volume("right", on="b"), "local"),
    ]

    waits, without = of(claim("c", kind="gone"), "local"), of(claim("c", kind="local"), "")
    assert clusters.places(*world, waits, pod("p", **mounts("c"))) == {"p": "b"}
    message = clusters.message("p", *world, without, pod("p", **mounts("c")))
    assert message.endswith("pod has unbound immediate PersistentVolumeClaims.")


def test_two_pods_never_get_the_same_volume() -> None:
    """What was chosen is promised, though no object says so yet."""
    world = [node("n"), kind("local"), volume("v", kind="local", on="n")]
    world += [claim("one", kind="local"), claim("two", kind="local")]
    several = [pod("p1", **mounts("one")), pod("p2", **mounts("two"))]

    assert clusters.places(*world, *several) == {"p1": "n"}
    assert clusters.message("p2", *world, *several) == NONE


def test_pods_of_two_profiles_never_get_the_same_volume() -> None:
    """What one has promised is promised for all, also where nobody binds."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name} for name in ("default-scheduler", "other")],
    }  # fmt: skip
    world = [node("n"), kind("local"), volume("v", kind="local", on="n")]
    world += [claim("one", kind="local"), claim("two", kind="local")]
    several = [pod("p1", **mounts("one")), pod("p2", schedulerName="other", **mounts("two"))]

    assert clusters.places(*world, *several, config=config) == {"p1": "n"}


def test_all_claims_of_a_pod_on_one_node() -> None:
    """Each has a volume somewhere, but only one node has both."""
    both: Body = {
        "volumes": [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("x", "y")
        ]
    }
    world = [
        node("a"),
        node("b"),
        kind("local"),
        claim("x", kind="local"),
        claim("y", kind="local"),
    ]
    world += [volume("a1", kind="local", on="a")]
    world += [volume(f"b{n}", kind="local", on="b") for n in (1, 2)]

    assert clusters.places(*world, pod("p", **both)) == {"p": "b"}


def test_a_provisioner_makes_one_where_it_may() -> None:
    """The class says in which topologies."""
    zone = "topology.kubernetes.io/zone"
    allowed = [{"matchLabelExpressions": [{"key": zone, "values": ["east"]}]}]
    world = [
        *(node("w", labels={zone: "west"}), node("e", labels={zone: "east"})),
        kind("made", "csi.example", allowedTopologies=allowed),
        claim("c", kind="made"),
    ]

    assert clusters.places(*world, pod("p", **mounts("c"))) == {"p": "e"}


def test_a_bound_claim_is_where_its_volume_is() -> None:
    """And nowhere, where the volume is gone."""
    bound = [node("a"), node("b"), volume("v", on="b"), claim("c", volume="v")]
    assert clusters.places(*bound, pod("p", **mounts("c"))) == {"p": "b"}
    lost = "1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."
    assert clusters.message(
        "p", node("a"), claim("c", volume="v"), pod("p", **mounts("c"))
    ).endswith(lost)


async def test_a_pod_is_bound_when_the_volume_controller_has_bound_its_claims(ram: Path) -> None:
    """The claim names the node, or the volume the claim; then nobody is bound before they are."""
    async with schedulers.world(ram, over_http=True) as world:
        await world.node("n")
        for of, made in (
            (kinds.STORAGE_CLASSES, kind("made", "csi.example")),
            (kinds.STORAGE_CLASSES, kind("local")),
            (kinds.PERSISTENT_VOLUMES, volume("v", kind="local", on="n")),
            (kinds.PERSISTENT_VOLUME_CLAIMS, claim("new", kind="made")),
            (kinds.PERSISTENT_VOLUME_CLAIMS, claim("old", kind="local")),
        ):
            await world.store.create(of, {"apiVersion": of.api_version, **made})
        await world.pod("p", **mounts("new"))
        await world.pod("q", **mounts("old"))
        async with schedulers.scheduler(world.client):
            await _until_promised(world, "new", "v")
            await world.pod("plain")
            assert await world.until_placed("plain") == {"plain": "n"}
            made = {"apiVersion": "v1", **volume("made-for-new", kind="made")}
            await world.store.create(kinds.PERSISTENT_VOLUMES, made)
            await _bind(world, "new", "made-for-new")
            assert await world.until_placed("p") == {"plain": "n", "p": "n"}
            await _bind(world, "old", "v")
            await world.until_placed("q")


async def test_without_a_cluster_no_claim_is_waited_for(ram: Path) -> None:
    """No volume controller is there that could bind one."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.node("n")
        await world.store.create(kinds.STORAGE_CLASSES, kind("made", "csi.example"))
        await world.store.create(kinds.PERSISTENT_VOLUME_CLAIMS, claim("new", kind="made"))
        await world.pod("p", **mounts("new"))
        async with schedulers.scheduler(world.client, alone=True):
            await world.until_placed("p")


async def _until_promised(world: schedulers.World, claim_name: str, volume_name: str) -> None:
    """Wait until a claim names its node, and a volume the claim ``old``."""
    await world.until(
        lambda known: known[claim_name]["metadata"].get("annotations") == {storage.SELECTED: "n"},
        kinds.PERSISTENT_VOLUME_CLAIMS,
    )
    await world.until(
        lambda known: known[volume_name]["spec"].get("claimRef", {}).get("name") == "old",
        kinds.PERSISTENT_VOLUMES,
    )


async def _bind(world: schedulers.World, claim_name: str, volume_name: str) -> None:
    """Do what the volume controller does."""
    mark = {"metadata": {"annotations": {volume_promises.BOUND: "yes"}}}
    patch = objects.Merge({**mark, "spec": {"volumeName": volume_name}})
    ref = objects.Ref(kinds.PERSISTENT_VOLUME_CLAIMS, claim_name, "d")
    await world.store.patch(ref, patch)


def room(name: str, zone: str, **more: Any) -> Body:
    """What a provisioner has left in a zone."""
    where = {"matchLabels": {"topology.kubernetes.io/zone": zone}}
    return {
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "csi"},
        "storageClassName": "made",
        "nodeTopology": where,
        **more,
    }


def test_a_provisioner_makes_one_where_it_has_room() -> None:
    """What it reports decides, the largest single volume before the sum; others are not asked."""
    zone = "topology.kubernetes.io/zone"
    driver = {
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example"},
        "spec": {"storageCapacity": True},
    }
    nodes = [node(name, labels={zone: name}) for name in ("a", "b", "c")]
    world = [*nodes, kind("made", "csi.example"), claim("c", kind="made", size="10Gi")]
    reported = [
        room("one", "a", capacity="5Gi"),
        room("two", "b", capacity="100Gi", maximumVolumeSize="10Gi"),
        room("three", "c", capacity="100Gi", maximumVolumeSize="9Gi"),
    ]
    wanted = pod("p", **mounts("c"))

    assert clusters.places(*world, driver, *reported, wanted) == {"p": "b"}
    assert clusters.places(*world, *reported, wanted) == {"p": "a"}
    assert clusters.message("p", *world, driver, reported[0], wanted) == (
        "0/3 nodes are available: 3 node(s) did not have enough free storage."
    )


def test_every_reason_of_a_node_is_said() -> None:
    """A bound claim elsewhere, nothing for one that waits; of bound claims the first to fail."""
    both: Body = {
        "volumes": [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("x", "y")
        ]
    }
    world = [node("a"), volume("v", on="b"), claim("x", volume="v"), kind("local")]
    assert clusters.message("p", *world, claim("y", kind="local"), pod("p", **both)) == (
        "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind,"
        " 1 node(s) didn't match PersistentVolume's node affinity."
    )
    assert clusters.message("p", *world, claim("y", volume="gone"), pod("p", **both)) == (
        "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity."
    )


def test_a_volume_that_names_the_claim_is_the_one() -> None:
    """Before a smaller one; another claim of the same name had another UID; one is not released."""
    mine = {"namespace": "d", "name": "c", "uid": "uid-c"}
    former = {**mine, "uid": "gone"}
    world = [node("a"), node("b"), kind("local"), claim("c", kind="local")]
    small = volume("small", kind="local", on="a")

    large = volume("large", kind="local", on="b", size="9Gi", claimRef=mine)
    assert clusters.places(*world, small, large, pod("p", **mounts("c"))) == {"p": "b"}
    large = volume("large", kind="local", on="b", size="9Gi", claimRef=former)
    assert clusters.places(*world, small, large, pod("p", **mounts("c"))) == {"p": "a"}
    released = small | {"status": {"phase": "Released"}}
    assert NONE.replace("0/1", "0/2").replace("1 node", "2 node") == clusters.message(
        "p", *world, released, pod("p", **mounts("c"))
    )


def test_a_claim_that_is_being_made_is_waited_for_where_it_is_made() -> None:
    """Its node was selected before; no other is taken, no volume is."""
    wanted = claim("c", kind="made")
    wanted["metadata"]["annotations"] = {storage.SELECTED: "b"}
    world = [node("a"), node("b"), kind("made", "csi.example"), wanted]
    assert clusters.places(*world, pod("p", **mounts("c"))) == {"p": "b"}
    assert clusters.message("p", node("a"), *world[2:], pod("p", **mounts("c"))) == NONE


def test_claims_that_no_node_helps() -> None:
    """Lost, or not agreed upon by the volume controller."""
    lost = claim("c", volume="v") | {"status": {"phase": "Lost"}}
    assert clusters.message("p", node("a"), lost, pod("p", **mounts("c"))) == (
        '0/1 nodes are available: persistentvolumeclaim "c" bound to non-existent'
        ' persistentvolume "v".'
    )
    wished = claim("c", volume="v") | {"status": {"phase": "Pending"}}
    assert clusters.message("p", node("a"), volume("v"), wished, pod("p", **mounts("c"))) == (
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    )


def test_a_claim_that_is_not_there_is_named_before_those_that_are_not_bound() -> None:
    """In whatever order the pod mounts them: nobody will bind a claim that does not exist."""
    pods = pod("p", **mounts("c", "absent")), pod("p", **mounts("absent", "c"))
    immediate = kind("made", "csi.example", volumeBindingMode="Immediate"), claim("c", kind="made")
    assert {clusters.message("p", node("a"), *immediate, each) for each in pods} == {
        '0/1 nodes are available: persistentvolumeclaim "absent" not found.'
    }


def test_a_volume_that_a_failed_binding_gives_back_wakes_who_waits_for_it() -> None:
    """No object says so: it was only promised."""
    served = profile.default("default-scheduler")
    core = Core({"default-scheduler": served})
    objects_there = storage.Storage()
    for plugin in served.plugins:
        if isinstance(plugin, WithStorage):
            plugin.storage = objects_there
    several = (volume("v", kind="local"), claim("one", kind="local"), claim("two", kind="local"))
    for body in (kind("local"), *several):
        objects_there.add(body)
    core.node(None, nodes.decode(node("n")), 0.0)
    for name in ("one", "two"):
        core.pod(None, core.decoder.decode(pod(name, **mounts(name)), 0), 0.0)
    first, refused = core.step(0.0), core.step(0.0)
    assert isinstance(first, Bind)
    assert isinstance(refused, Refusal)
    assert core.step(20.0) is None
    core.unbound(first.pod, 20.0, again=False)

    again = core.step(40.0)
    assert isinstance(again, Bind)
    assert again.pod.name == "two"
