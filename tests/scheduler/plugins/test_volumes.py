"""Volumes: limits of drivers, disks in use, zones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.objects import storage
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.volumes import NodeVolumeLimits
from tests.kit import clusters, deadline, schedulers
from tests.kit.clusters import node, pod

Body = dict[str, Any]


def mounts(*claims: str) -> Body:
    """The part of a pod's spec that mounts claims."""
    names = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {"volumes": names}


def claim(name: str, *, volume: str = "", kind: str = "", size: str = "1Gi") -> Body:
    """A claim, bound if it has a volume."""
    spec: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    spec |= {"volumeName": volume} if volume else {}
    spec |= {"storageClassName": kind} if kind else {}
    meta = {"name": name, "namespace": "d", "uid": f"uid-{name}"}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def volume(name: str, *, kind: str = "", size: str = "1Gi", on: str = "", **more: Any) -> Body:
    """A volume, which only the node ``on`` reaches."""
    spec: Body = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, **more}
    spec |= {"storageClassName": kind} if kind else {}
    if on:
        term = {"matchExpressions": [{"key": clusters.HOST, "operator": "In", "values": [on]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def driver(handle: str) -> Body:
    """The source of a volume of a CSI driver."""
    return {"csi": {"driver": "csi.example", "volumeHandle": handle}}


def limit(name: str, most: int) -> Body:
    """How many volumes of that driver a node attaches."""
    drivers = [{"name": "csi.example", "nodeID": name, "allocatable": {"count": most}}]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def attachment(volume: str, node: str) -> Body:
    """A volume is attached to a node, whoever uses it."""
    source = {"persistentVolumeName": volume}
    spec = {"attacher": "csi.example", "nodeName": node, "source": source}
    return {"kind": "VolumeAttachment", "metadata": {"name": f"{volume}-{node}"}, "spec": spec}


FULL = "0/1 nodes are available: 1 node(s) exceed max volume count."


def test_so_many_volumes_and_no_more() -> None:
    """Those of the pods that are there count, each volume once."""
    several = [volume(f"v{n}", **driver(f"h{n}")) for n in range(3)]
    claims = [claim(f"c{n}", volume=f"v{n}") for n in range(3)]
    there = [pod(f"old{n}", on="n", **mounts(f"c{n}")) for n in range(2)]
    world = [node("n"), limit("n", 2), *several, *claims, *there]

    assert clusters.message("p", *world, pod("p", **mounts("c2"))) == FULL
    assert clusters.places(*world, pod("p", **mounts("c1"))) == {"p": "n"}
    assert clusters.places(*world, pod("p")) == {"p": "n"}
    fewer = [limit("n", 1) if body["kind"] == "CSINode" else body for body in world]
    assert clusters.places(*fewer, pod("p", **mounts("c1"))) == {"p": "n"}


def test_a_volume_that_is_still_attached_counts() -> None:
    """Once: whether a pod that is there has it as well, or the one that comes."""
    several = [volume(f"v{n}", **driver(f"h{n}")) for n in range(3)]
    claims = [claim(f"c{n}", volume=f"v{n}") for n in range(3)]
    there = pod("old", on="n", **mounts("c0"))
    world = [node("n"), limit("n", 2), *several, *claims, there, attachment("v0", "n")]

    assert clusters.places(*world, pod("p", **mounts("c1"))) == {"p": "n"}
    leaving = [*world, attachment("v1", "n")]
    assert clusters.message("p", *leaving, pod("p", **mounts("c2"))) == FULL
    assert clusters.places(*leaving, pod("p", **mounts("c1"))) == {"p": "n"}


def test_what_is_attached_elsewhere_or_by_no_driver_takes_no_place() -> None:
    """Neither does what nobody knows any more."""
    world = [
        *(node("n"), limit("n", 1), claim("c", volume="v"), volume("v", **driver("h"))),
        *(volume("far", **driver("f")), attachment("far", "elsewhere")),
        *(volume("nfs", nfs={"server": "s", "path": "/"}), attachment("nfs", "n")),
        attachment("gone", "n"),
    ]

    assert clusters.places(*world, pod("p", **mounts("c"))) == {"p": "n"}


def test_a_pod_without_volumes_leaves_no_place_for_one() -> None:
    """Who waits for a place of a driver is not tried when it goes."""
    plain, mounting = inventory.load([node("n"), pod("a"), pod("b", **mounts("c"))]).pending
    limits = NodeVolumeLimits({})

    assert limits.concerned(ClusterEvent(ActionType.POD_GONE, pod=mounting)) is True
    assert limits.concerned(ClusterEvent(ActionType.POD_GONE, pod=plain)) is False
    assert limits.concerned(ClusterEvent(ActionType.STORAGE)) is True


async def test_who_waits_for_a_place_is_tried_when_a_volume_is_detached(ram: Path) -> None:
    """And not when one is attached: that makes room for nobody."""
    async with schedulers.world(ram, over_http=True) as world:
        await world.node("n")
        for of, made in (
            (kinds.CSI_NODES, limit("n", 1)),
            (kinds.PERSISTENT_VOLUMES, volume("old", **driver("old"))),
            (kinds.VOLUME_ATTACHMENTS, attachment("old", "n")),
            (kinds.PERSISTENT_VOLUMES, volume("v", **driver("h"))),
            (kinds.PERSISTENT_VOLUME_CLAIMS, claim("c", volume="v")),
        ):
            await world.store.create(of, {"apiVersion": of.api_version, **made})
        await world.pod("p", **mounts("c"))
        async with schedulers.scheduler(world.client) as loop:
            assert await world.until_told("p", "exceed max volume count")
            await world.store.create(kinds.VOLUME_ATTACHMENTS, attachment("v", "far"))
            attachments = loop.sources.informers[kinds.VOLUME_ATTACHMENTS]
            await deadline.comes(lambda: len(attachments) == 2)
            waiting = loop.core.queue.get("d/p")
            assert waiting is not None
            assert (waiting.place, waiting.attempts) == (QueuePlace.UNSCHEDULABLE, 1)
            await world.store.delete(objects.Ref(kinds.VOLUME_ATTACHMENTS, "old-n"))
            await world.until_placed("p")


def test_a_volume_that_is_yet_to_be_made_counts() -> None:
    """For the driver that its class names."""
    kind = {
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "csi.example",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    world = [node("n"), limit("n", 1), kind, claim("a", kind="fast"), claim("b", kind="fast")]

    assert (
        clusters.message("p", *world, pod("old", on="n", **mounts("a")), pod("p", **mounts("b")))
        == FULL
    )


def test_a_volume_that_is_gone_counts_for_the_driver_of_its_class() -> None:
    """Its pod is there still: the driver may not have detached it. Without a class nobody knows."""
    kind = {
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "csi.example",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    asks = [claim("b", volume="v"), volume("v", **driver("h")), pod("p", **mounts("b"))]
    world = [node("n"), limit("n", 1), kind, *asks, pod("old", on="n", **mounts("a"))]

    assert clusters.message("p", *world, claim("a", volume="gone", kind="fast")) == FULL
    assert clusters.places(*world, claim("a", volume="gone")) == {"p": "n"}


@pytest.mark.parametrize(
    ("kind", "body", "name", "provisioner"),
    [
        ("awsElasticBlockStore", {"volumeID": "a"}, "ebs.csi.aws.com", "aws-ebs"),
        ("gcePersistentDisk", {"pdName": "a"}, "pd.csi.storage.gke.io", "gce-pd"),
        ("cinder", {"volumeID": "a"}, "cinder.csi.openstack.org", "cinder"),
        ("portworxVolume", {"volumeID": "a"}, "pxd.portworx.com", "portworx-volume"),
        (
            *("azureDisk", {"diskName": "same", "diskURI": "a"}),
            *("disk.csi.azure.com", "azure-disk"),
        ),
    ],
)
def test_volumes_of_kinds_that_a_csi_driver_has_taken_over_count_for_it(
    kind: str, body: Body, name: str, provisioner: str
) -> None:
    """As one of a claim, as a pod's own, and while it is yet to be made."""
    drivers = [{"name": name, "nodeID": "n", "allocatable": {"count": 1}}]
    most = {"kind": "CSINode", "metadata": {"name": "n"}, "spec": {"drivers": drivers}}
    storage_class = {
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": f"kubernetes.io/{provisioner}",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    other = {key: "b" if value == "a" else value for key, value in body.items()}
    source: dict[str, Any] = {kind: body}
    world = [node("n"), most, storage_class, claim("c", volume="v"), volume("v", **source)]
    inline: Body = {"volumes": [{"name": "v", kind: other}]}
    unbound = claim("later", kind="fast")

    assert clusters.places(*world, pod("p", **mounts("c"))) == {"p": "n"}
    for there in (pod("old", on="n", **inline), pod("old", on="n", **mounts("later"))):
        come = [*world, unbound, there, pod("p", **mounts("c"))]
        assert clusters.message("p", *come) == FULL


def test_a_volume_of_a_pods_own_is_a_claim() -> None:
    """It is named after the pod and the volume."""
    own: Body = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}

    assert clusters.message("p", node("n"), pod("p", **own)).startswith(
        "0/1 nodes are available: waiting for ephemeral volume controller to create the"
        ' persistentvolumeclaim "p-v".'
    )
    assert clusters.places(node("n"), volume("v"), claim("p-v", volume="v"), pod("p", **own)) == {
        "p": "n"
    }


@pytest.mark.parametrize(("owner", "placed"), [("uid-p", True), ("uid-old", False), ("", False)])
def test_a_claim_of_anothers_is_no_volume_of_a_pods_own(owner: str, *, placed: bool) -> None:
    """Its controller must be this very pod, in the words of kube-scheduler."""
    own: Body = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}
    mine = claim("p-v", volume="v")
    if owner:
        mine["metadata"]["ownerReferences"] = [{"uid": owner, "controller": True}]
    bodies = node("n"), volume("v"), mine, clusters.stored(pod("p", **own))
    if placed:
        assert clusters.places(*bodies) == {"p": "n"}
    else:
        assert clusters.message("p", *bodies) == (
            "0/1 nodes are available: PVC d/p-v was not created for pod d/p (pod is not owner)."
        )


def test_a_zone_holds_for_the_node() -> None:
    """A label of the volume is one that the node must have, under its old name or its new one.

    A node without any such label is not judged: there may be one zone only.
    """
    zoned = volume("v")
    zoned["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
    bodies = [zoned, claim("c", volume="v"), pod("p", **mounts("c"))]
    far = node("far", labels={"topology.kubernetes.io/zone": "b"})
    near = node("near", labels={"topology.kubernetes.io/zone": "a"})

    assert clusters.places(far, near, *bodies) == {"p": "near"}
    assert clusters.places(node("far"), *bodies) == {"p": "far"}
    region = node("far", labels={"topology.kubernetes.io/region": "a"})
    message = clusters.message("p", region, *bodies)
    assert message == "0/1 nodes are available: 1 node(s) had no available volume zone."
    zoned["metadata"]["labels"] = {"failure-domain.beta.kubernetes.io/zone": "c__a"}
    assert clusters.places(far, near, *bodies) == {"p": "near"}


def test_a_disk_that_is_written_by_another() -> None:
    """One disk, one node that writes; readers share."""
    disk: Body = {"gcePersistentDisk": {"pdName": "d"}}
    writes: Body = {"name": "v", **disk}
    reads: Body = {"name": "v", "gcePersistentDisk": {"pdName": "d", "readOnly": True}}
    there = pod("old", on="n", volumes=[writes])

    assert (
        clusters.message("p", node("n"), there, pod("p", volumes=[reads]))
        == "0/1 nodes are available: 1 node(s) had no available disk."
    )
    there = pod("old", on="n", volumes=[reads])
    assert clusters.places(node("n"), there, pod("p", volumes=[reads])) == {"p": "n"}


def test_an_image_of_ceph_is_one_only_at_a_common_monitor() -> None:
    """Other monitors are another cluster."""

    def mounted(*monitors: str) -> Body:
        image = {"pool": "rbd", "image": "i", "monitors": list(monitors)}
        return {"volumes": [{"name": "v", "rbd": image}]}

    there = pod("old", on="n", **mounted("m1", "m2"))
    assert clusters.places(node("n"), there, pod("p", **mounted("m3"))) == {"p": "n"}
    assert "no available disk" in clusters.message(
        "p", node("n"), there, pod("p", **mounted("m2", "m3"))
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"drivers": "x"},
        {"drivers": [{"name": "d", "allocatable": {"count": "many"}}]},
        {"drivers": [{"name": [], "allocatable": {"count": 1}}]},
        {"storageCapacity": "yes"},
    ],
)
def test_what_a_driver_says_in_another_shape_is_refused_before_it_is_kept(spec: Body) -> None:
    """Whoever keeps it would stumble over it, and the scheduler with it."""
    with pytest.raises(BadObjectError):
        storage.check({"kind": "CSINode", "metadata": {"name": "n"}, "spec": spec})
