"""Storage of a random cluster: classes, drivers, volumes and claims, by the path that makes them.

Covers: volumes that wait for their consumer or do not, with zones, limits, and room that is
tracked; claims that are lost, about to go, or whose class nobody made. Does not cover: who makes a
volume that a claim waits for (``kube_scheduler``).
"""

from __future__ import annotations

import random

from tests.cluster.fleet_nodes import HELD
from tests.oracle.objects import Body
from tests.oracle.spreading import ZONE

DRIVER, TRACKED = "csi.example", "tracked.example"
#: How many claims there are, then how many of which something is odd; pods ask for some more,
#: which nobody made.
CLAIMS, ODD_CLAIMS = 30, 9
#: Name, provisioner, and whether its volumes wait for their consumer.
_CLASSES = (
    ("local", "kubernetes.io/no-provisioner", True),
    ("made", DRIVER, True),
    ("zoned", DRIVER, True),
    ("tracked", TRACKED, True),
    ("at-once", DRIVER, False),
)
_KEPT = 6
#: The driver that has taken over a kind of disk, and how a node says so.
_DISKS, _TAKEN_OVER = "pd.csi.storage.gke.io", "kubernetes.io/gce-pd"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_BOUND = "pv.kubernetes.io/bind-completed"
_SIZES = ("1Gi", "2Gi", "4Gi")
_GROUP = "/apis/storage.k8s.io/v1"


def storage(roll: random.Random) -> dict[str, list[Body]]:
    """What is there before the nodes."""
    return {
        f"{_GROUP}/csidrivers": [
            {"metadata": {"name": TRACKED}, "spec": {"storageCapacity": True}},
        ],
        f"{_GROUP}/storageclasses": [_class(*known) for known in _CLASSES],
        f"{_GROUP}/namespaces/d/csistoragecapacities": [
            {
                "metadata": {"name": f"room-{zone}"},
                "storageClassName": "tracked",
                "nodeTopology": {"matchLabels": {ZONE: zone}},
                "capacity": roll.choice(_SIZES),
            }
            for zone in ("z1", "z2")
        ],
        "/api/v1/persistentvolumes": [
            *(_volume(f"disk-{at}", "local", roll) for at in range(8)),
            *(_volume(f"net-{at}", "at-once", roll) for at in range(6)),
            *(_kept(f"kept-{at}", roll) for at in range(_KEPT)),
            *_odd_volumes(),
        ],
        "/api/v1/namespaces/d/persistentvolumeclaims": [
            *(_claim(f"claim-{at}", roll) for at in range(CLAIMS)),
            *_odd_claims(),
        ],
    }


def node_drivers(count: int, roll: random.Random) -> dict[str, list[Body]]:
    """How many volumes of each driver some nodes take, and what is attached there already."""
    attached = [
        {
            "metadata": {"name": f"attached-{at}"},
            "spec": {
                "attacher": DRIVER,
                "nodeName": f"n{roll.randrange(count)}",
                "source": {"persistentVolumeName": f"kept-{at % _KEPT}"},
            },
        }
        for at in range(2 * _KEPT)
    ]
    return {
        f"{_GROUP}/csinodes": [
            _node_driver(f"n{at}", roll) for at in range(count) if roll.random() < 0.6
        ],
        f"{_GROUP}/volumeattachments": attached,
    }


def _node_driver(name: str, roll: random.Random) -> Body:
    counts = {DRIVER: roll.choice((0, 1, 1, 2, 20))}
    notes = {}
    if roll.random() < 0.5:
        counts[_DISKS] = roll.choice((0, 1))
        notes = {_MIGRATED: _TAKEN_OVER} if roll.random() < 0.7 else {}
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": {"count": count}}
        for driver, count in counts.items()
    ]
    return {"metadata": {"name": name, "annotations": notes}, "spec": {"drivers": drivers}}


def _class(name: str, provisioner: str, waits: bool) -> Body:
    zones = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
    return {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **({"allowedTopologies": zones} if name == "zoned" else {}),
    }


def _volume(name: str, storage_class: str, roll: random.Random) -> Body:
    """Local ones by their node affinity, those of a driver by the label alone."""
    zone = f"z{roll.randint(1, 3)}"
    spec: Body = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": roll.choice(_SIZES)},
        "storageClassName": storage_class,
    }
    if storage_class != "local":
        labels = {ZONE: roll.choice((zone, "z1__z2", "z9"))} if roll.random() < 0.7 else {}
        spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    spec["local"] = {"path": f"/{name}"}
    spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"metadata": {"name": name}, "spec": spec}


def _kept(name: str, roll: random.Random) -> Body:
    """A volume that no claim gets.

    One that is attached before a pod of the node has it counts twice for kube-scheduler 1.36.
    """
    volume = _volume(name, "at-once", roll)
    volume["spec"]["claimRef"] = {"namespace": "d", "name": f"nobody-made-{name}"}
    return volume


def _claim(name: str, roll: random.Random) -> Body:
    storage_class, _, _ = roll.choice(_CLASSES)
    mode = roll.choice(("ReadWriteOnce", "ReadWriteOncePod"))
    return {
        "metadata": {"name": name},
        "spec": {
            # A volume of the fleet's own allows one node, and a claim that is bound at once to
            # none of them would wait for ever.
            "accessModes": ["ReadWriteOnce" if storage_class == "at-once" else mode],
            "resources": {"requests": {"storage": roll.choice(("1Gi", "2Gi", "3Gi"))}},
            "storageClassName": storage_class,
        },
    }


def _odd_claims() -> list[Body]:
    """Claims of which something is odd, numbered on."""
    bound, old = {_BOUND: "yes"}, {"volume.beta.kubernetes.io/storage-class": "local"}
    odd: tuple[tuple[Body, Body], ...] = (
        ({}, {"storageClassName": ""}),
        ({}, {"storageClassName": "nowhere"}),
        ({}, {"storageClassName": "local", "volumeName": "gone"}),
        ({"annotations": bound}, {"storageClassName": "local", "volumeName": "lost"}),
        ({"finalizers": [HELD]}, {"storageClassName": "local"}),
        ({"annotations": old}, {}),
        ({}, {"storageClassName": "local", "selector": {"matchLabels": {"tier": "fast"}}}),
        ({}, {"storageClassName": "local", "volumeMode": "Block"}),
        ({}, {"storageClassName": "local", "accessModes": ["ReadOnlyMany", "ReadWriteMany"]}),
    )
    usual: Body = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return [
        {"metadata": {"name": f"claim-{CLAIMS + at}", **meta}, "spec": {**usual, **spec}}
        for at, (meta, spec) in enumerate(odd)
    ]


def _odd_volumes() -> list[Body]:
    """Volumes with a label, with a block device, for many, for a claim that is not there."""
    zones = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        for zone in ("z1", "z2")
    ]
    usual: Body = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1.5Gi"},
        "storageClassName": "local",
        "local": {"path": "/odd"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": zones}},
    }
    several: tuple[tuple[Body, Body], ...] = (
        ({"labels": {"tier": "fast"}}, {}),
        ({}, {"volumeMode": "Block"}),
        ({}, {"accessModes": ["ReadOnlyMany", "ReadWriteMany"]}),
        ({}, {"claimRef": {"namespace": "d", "name": "nobody-made-it"}}),
        ({"labels": {"tier": "fast", ZONE: "z9"}}, {"capacity": {"storage": "1Gi"}}),
    )
    return [
        {"metadata": {"name": f"odd-{at}", **meta}, "spec": {**usual, **spec}}
        for at, (meta, spec) in enumerate(several)
    ]
