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


async def test_a_pod_whose_claims_are_being_made_has_no_answer_yet(ram: Path) -> None:
    """Whoever hands in pod and template hears of its node; one without a template hears why not."""
    spec = device_claims.claim(device_claims.request())
    template: Body = {"apiVersion": spec["apiVersion"], "kind": "ResourceClaimTemplate"}
    template |= {"metadata": {"name": "t", "namespace": "d"}, "spec": {"spec": spec["spec"]}}
    pod = clusters.pod("a", resourceClaims=[_ENTRY])
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        # Nobody makes claims here.
        await desk.submit([json.dumps(pod)], dry_run=False)
        await deadline.comes(lambda: loop.core.queue.get("d/a") is not None)
        assert (await desk.why("d", "a")).message == 'pod "d/a": ResourceClaim not created yet'
        await desk.submit([json.dumps(template)], dry_run=False)
        assert await desk.why("d", "a") == placing.Why()


async def test_a_selector_that_means_nothing_is_refused_with_its_place(ram: Path) -> None:
    """A server would refuse the object; its pods would wait for ever."""
    wrong = "device.driver = 1"
    claim = device_claims.claim(
        device_claims.request("r", "true"),
        device_claims.first_available("s", device_claims.wish("t", "true", wrong)),
    )
    template = {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}
    device_class = device_claims.device_class("gpu", wrong)
    fine = device_claims.device_class("fine", 'device.attributes["x"].?y.orValue(true)')
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        handed = [json.dumps(each) for each in (device_class, claim, template, fine)]
        taken = await desk.submit(handed, dry_run=False)
        places = [each.error.partition(".cel.expression: ")[0] for each in taken]
        assert [each.rpartition(" ")[2] for each in places] == [
            "spec.selectors[0]",
            "spec.devices.requests[1].firstAvailable[0].selectors[1]",
            "spec.spec.devices.requests[1].firstAvailable[0].selectors[1]",
            "",
        ]
        assert "compilation failed" in taken[0].error


async def test_a_taint_that_ends_pods_gets_its_time_when_it_is_handed_in(ram: Path) -> None:
    """Whoever bears it for some seconds would bear it for ever: no server notes when it came."""
    taint = {"key": "k", "effect": "NoExecute"}
    device = device_claims.device("d", taints=[taint])
    piece = device_claims.resource_slice([device, "e"], node="n")
    node = clusters.node("n", spec={"taints": [taint]})
    async with schedulers.scheduled(ram) as (world, loop):
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
