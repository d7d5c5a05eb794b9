"""Storage of a random cluster: classes, drivers, volumes and claims, by the path that makes them.

Covers: volumes that wait for their consumer or do not, with zones, limits, and room that is
tracked. Does not cover: who makes a volume that a claim waits for (``kube_scheduler``).
"""

from __future__ import annotations

import random

from tests.oracle.objects import Body
from tests.oracle.spreading import ZONE

DRIVER, TRACKED = "csi.example", "tracked.example"
#: How many claims there are; pods ask for some more, which nobody made.
CLAIMS = 30
#: Name, provisioner, and whether its volumes wait for their consumer.
_CLASSES = (
    ("local", "kubernetes.io/no-provisioner", True),
    ("made", DRIVER, True),
    ("zoned", DRIVER, True),
    ("tracked", TRACKED, True),
    ("at-once", DRIVER, False),
)
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
        ],
        "/api/v1/namespaces/d/persistentvolumeclaims": [
            _claim(f"claim-{at}", roll) for at in range(CLAIMS)
        ],
    }


def node_drivers(count: int, roll: random.Random) -> dict[str, list[Body]]:
    """How many volumes of the driver each of some nodes takes."""
    return {
        f"{_GROUP}/csinodes": [
            {
                "metadata": {"name": f"n{at}"},
                "spec": {
                    "drivers": [
                        {
                            "name": DRIVER,
                            "nodeID": f"n{at}",
                            "allocatable": {"count": roll.choice((1, 1, 2, 20))},
                        }
                    ]
                },
            }
            for at in range(count)
            if roll.random() < 0.6
        ]
    }


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
