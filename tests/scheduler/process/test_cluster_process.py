"""The one client of a scheduler: what stalls for pods does not keep it from its lease."""

from __future__ import annotations

import asyncio
from pathlib import Path

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.loop import binder, reporter
from koordlet.scheduler.process import cluster_process
from tests.kit import deadline, schedulers
from tests.kit.apiserver.faults import Fault, Manner

LEASE = objects.Ref(kinds.LEASES, "scheduler", "d")


async def test_a_lease_is_renewed_while_every_lane_waits_for_the_answer_about_a_pod(
    ram: Path,
) -> None:
    """As where a webhook for pods hangs: who lost the lease by it would only begin anew."""
    async with schedulers.world(ram, over_http=True) as world:
        assert world.serving is not None
        serving = world.serving
        spec = {"holderIdentity": "one"}
        lease = {"metadata": {"name": LEASE.name, "namespace": LEASE.namespace}, "spec": spec}
        await world.store.create(kinds.LEASES, lease)
        path = "/api/v1/namespaces/d/pods/"
        serving.faults.add(Fault(Manner.HOLD, path=path, times=-1))
        file = str(ram / "kubeconfig")
        async with cluster_process.cluster(file, "", "test") as store:
            lanes = binder.LANES + reporter.LANES
            waiting = [
                asyncio.ensure_future(store.get(objects.Ref(kinds.PODS, f"p{lane}", "d")))
                for lane in range(lanes)
            ]
            await deadline.comes(lambda: len(serving.asked("GET", path)) == lanes)
            renewed = await asyncio.wait_for(store.get(LEASE), 5.0)
            assert renewed["spec"] == spec
            serving.go_on.set()
            await asyncio.gather(*waiting, return_exceptions=True)
