"""A standalone scheduler is asked about pods whose claims are made of templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
