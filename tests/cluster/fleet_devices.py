"""Devices of a random cluster: a class, slices of some nodes, claims, by the path that makes them.

Covers: claims that pods share, and the extended resource that the class stands for. Does not
cover: claims of templates, which a controller makes after the pod; the same for a pod that leaves,
whose devices a controller frees: only clusters in which nobody leaves have devices.
"""

from __future__ import annotations

import random

from tests.kit import device_claims
from tests.oracle.objects import Body

CLAIMS = 12
#: What containers ask for in place of a claim.
CARD = "example.com/card"
_GROUP = "/apis/resource.k8s.io/v1"


def devices(count: int, roll: random.Random) -> dict[str, list[Body]]:
    """What is there besides so many nodes."""
    return {
        f"{_GROUP}/deviceclasses": [device_claims.device_class(extendedResourceName=CARD)],
        f"{_GROUP}/resourceslices": [
            device_claims.resource_slice(
                [
                    device_claims.device(f"d{number}", {"model": roll.choice(("a", "b"))})
                    for number in range(roll.randint(1, 3))
                ],
                node=f"n{at}",
            )
            for at in range(count)
            if roll.random() < 0.2
        ],
        f"{_GROUP}/namespaces/d/resourceclaims": [
            device_claims.claim(*_requests(roll), name=f"device-{at}") for at in range(CLAIMS)
        ],
    }


def _requests(roll: random.Random) -> list[Body]:
    model = f"device.attributes['{device_claims.DRIVER}'].model == '{roll.choice('ab')}'"
    few, rare = device_claims.wish("few"), device_claims.wish("rare", model, count=2)
    choices = (
        [device_claims.request("any")],
        [device_claims.request("model", model)],
        [device_claims.request("two", count=2)],
        [device_claims.request("every", allocationMode="All")],
        [device_claims.first_available("best", rare, few)],
    )
    return roll.choice(choices)
