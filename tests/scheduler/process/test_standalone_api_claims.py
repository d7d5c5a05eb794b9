"""A standalone scheduler: claims that are made of templates, taints of nodes and devices."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.rpc import placing
from koordlet.scheduler.process import standalone_api
from tests.kit import clusters, deadline, device_claims, schedulers

Body = dict[str, Any]
_ENTRY = {"name": "x", "resourceClaimTemplateName": "t"}


def test_a_pod_whose_claims_are_being_made_has_no_answer_yet(ram: Path) -> None:
    """Whoever hands in pod and template hears of its node; one without a template hears why not."""
    spec = device_claims.claim(device_claims.request())
    template: Body = {"apiVersion": spec["apiVersion"], "kind": "ResourceClaimTemplate"}
    template |= {"metadata": {"name": "t", "namespace": "d"}, "spec": {"spec": spec["spec"]}}
    pod = clusters.pod("a", resourceClaims=[_ENTRY])

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client) as loop,
        ):
            desk = standalone_api.StandaloneApi(world.store, loop)
            # Nobody makes claims here.
            await desk.submit([json.dumps(pod)], dry_run=False)
            await deadline.comes(lambda: loop.core.queue.get("d/a") is not None)
            assert (await desk.why("d", "a")).message == 'pod "d/a": ResourceClaim not created yet'
            await desk.submit([json.dumps(template)], dry_run=False)
            assert await desk.why("d", "a") == placing.Why()

    schedulers.run(body())


def test_a_taint_that_ends_pods_gets_its_time_when_it_is_handed_in(ram: Path) -> None:
    """Whoever bears it for some seconds would bear it for ever: no server notes when it came."""
    taint = {"key": "k", "effect": "NoExecute"}
    device = device_claims.device("d", taints=[taint])
    piece = device_claims.resource_slice([device, "e"], node="n")
    node = clusters.node("n", spec={"taints": [taint]})

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client) as loop,
        ):
            desk = standalone_api.StandaloneApi(world.store, loop)
            times = set()
            for _, handed in itertools.product(range(2), (piece, node)):
                [taken] = await desk.submit([json.dumps(handed)], dry_run=False)
                assert taken.error == ""
                kind = kinds.NODES if handed is node else kinds.RESOURCE_SLICES
                stored = await world.store.get(objects.Ref(kind, taken.name))
                spec = objects.part(stored, "spec")
                holder = spec if handed is node else spec["devices"][0]
                times.add((taken.name, holder["taints"][0]["timeAdded"]))
            assert len(times) == 2

    schedulers.run(body())
