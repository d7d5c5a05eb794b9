"""The place of a pod that room is made for: a reservation over the room of those that leave.

Covers: the object, for plans and for preemptors. Does not cover: reservations over running pods
(``reservation.preallocation``).

Rules:
1. It takes over the room of the pods that leave, and of nobody else: what they free is nobody
   else's from the moment when they are gone.
2. It holds what the pod asks for, and at least what they free, so that it can take over all of it.
   What the pod does not take is free again once it is there.
3. It is no member of its pod's gang, whose scheduler would wait for it with the others.
4. That of a plan lives somewhat longer than the plan, which deletes it in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import kinds
from koordlet.model import duration, resources
from koordlet.scheduler.migration import job, room
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import Body
from koordlet.scheduler.rescheduling import plan_places
from koordlet.scheduler.rescheduling.move_plan import MovePlan
from koordlet.scheduler.reservation import keys

_LONGER = 60.0
#: Of a pod's specification what says where it may run.
_PLACING = (
    "affinity",
    "nodeSelector",
    "priority",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
)


def body(
    plan: MovePlan, number: int, pod: Body, asks: Pod, leaving: Sequence[Pod]
) -> dict[str, Any]:
    """The reservation of a plan for one of its places."""
    meta = {"name": plan_places.name(plan, number), "annotations": {job.PLAN: plan.uid}}
    node = plan.places[number].node
    return place(meta, node, pod, asks, leaving, ttl=plan.ttl + _LONGER)


def place(
    named: Mapping[str, Any], node: str, pod: Body, asks: Pod, leaving: Sequence[Pod], *, ttl: float
) -> dict[str, Any]:
    """A reservation for a pod, as the store has it, over the room of others on a node.

    ``named``: its name, and annotations that say whose it is. Where nobody leaves, it holds what is
    free.
    """
    meta, spec = wire.mapping(pod, "metadata"), wire.mapping(pod, "spec")
    freed = resources.total(each.pod_class.requests.real for each in leaving)
    amounts = resources.most((asks.pod_class.requests.real, freed))
    asked = {name: much for name, much in sorted(amounts.items()) if much and name != requests.PODS}
    container = {
        "name": "room",
        "image": "room",
        "resources": {"requests": resources.canonical(asked)},
    }
    owner = {"kind": "Pod", "namespace": asks.namespace, "name": asks.name, "uid": asks.uid}
    adopted = ",".join(sorted(each.uid for each in leaving))
    adopts: dict[str, Any] = {
        "preAllocation": True,
        "preAllocationPolicy": {"enableMultiple": True},
    }
    return {
        "apiVersion": kinds.RESERVATIONS.api_version,
        "kind": kinds.RESERVATIONS.name,
        "metadata": {
            **named,
            "annotations": {
                **named["annotations"],
                **({keys.ADOPTS: adopted} if adopted else {}),
            },
        },
        "spec": {
            "template": {
                "metadata": {
                    "namespace": asks.namespace,
                    "labels": room.kept(wire.mapping(meta, "labels")),
                },
                "spec": {
                    **{key: spec[key] for key in _PLACING if key in spec},
                    "nodeName": node,
                    "containers": [container],
                },
            },
            "owners": [{"object": owner}],
            "allocateOnce": True,
            **(adopts if adopted else {}),
            "ttl": duration.text(ttl),
        },
    }
