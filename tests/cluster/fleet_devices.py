"""Devices of a random cluster: a class, slices of some nodes, claims, by the path that makes them.

Covers: claims that pods share, templates, the extended resource that the class stands for, devices
that every node reaches or that are tainted. Does not cover: a pod that leaves, whose devices a
controller frees: only clusters in which nobody leaves have devices.
"""

from __future__ import annotations

import random

from tests.kit import device_claims
from tests.oracle.objects import Body
from tests.oracle.spreading import ZONE

CLAIMS, TEMPLATES = 12, 4
#: What containers ask for in place of a claim.
CARD = "example.com/card"
_GROUP = "/apis/resource.k8s.io/v1"
_TERM = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}
_IN_ZONE = {"nodeSelectorTerms": [_TERM]}


def devices(count: int, roll: random.Random) -> dict[str, list[Body]]:
    """What is there besides so many nodes."""
    return {
        f"{_GROUP}/deviceclasses": [device_claims.device_class(extendedResourceName=CARD)],
        f"{_GROUP}/resourceslices": [
            *(
                device_claims.resource_slice(_devices(roll), node=f"n{at}")
                for at in range(count)
                if roll.random() < 0.2
            ),
            device_claims.resource_slice(_devices(roll), pool="all", allNodes=True),
            device_claims.resource_slice(_devices(roll), pool="zone", nodeSelector=_IN_ZONE),
        ],
        f"{_GROUP}/namespaces/d/resourceclaims": [
            device_claims.claim(*requests, name=f"device-{at}", **_constraints(requests, roll))
            for at, requests in enumerate(_requests(roll) for _ in range(CLAIMS))
        ],
        f"{_GROUP}/namespaces/d/resourceclaimtemplates": [
            {
                "metadata": {"name": f"devices-{at}"},
                "spec": {"spec": device_claims.claim(*_requests(roll))["spec"]},
            }
            for at in range(TEMPLATES)
        ],
    }


def _devices(roll: random.Random) -> list[Body]:
    taint = {"key": "worn", "effect": "NoSchedule"}
    return [
        device_claims.device(
            f"d{number}",
            {"model": roll.choice(("a", "b"))},
            **({"taints": [taint]} if roll.random() < 0.15 else {}),
        )
        for number in range(roll.randint(1, 3))
    ]


def _constraints(requests: list[Body], roll: random.Random) -> Body:
    """Perhaps all devices of a claim have the same model.

    Where every device is asked for and they have not, kube-scheduler 1.36 fails in its own words.
    """
    attribute = {"matchAttribute": f"{device_claims.DRIVER}/model"}
    wanted = roll.random() < 0.5 and "every" not in {request["name"] for request in requests}
    return {"constraints": [attribute]} if wanted else {}


def _requests(roll: random.Random) -> list[Body]:
    model = f"device.attributes['{device_claims.DRIVER}'].model == '{roll.choice('ab')}'"
    few, rare = device_claims.wish("few"), device_claims.wish("rare", model, count=2)
    choices = (
        [device_claims.request("any")],
        [device_claims.request("model", model)],
        [device_claims.request("two", count=2)],
        [device_claims.request("every", allocationMode="All")],
        [device_claims.request("worn", tolerations=[{"operator": "Exists"}])],
        [device_claims.request("left"), device_claims.request("right", model)],
        [device_claims.first_available("best", rare, few)],
    )
    return roll.choice(choices)
