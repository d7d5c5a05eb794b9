"""A plan for a gang that waits, on a real API server, with kill -9 of its descheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import move_plan
from tests.cluster import migrating
from tests.cluster.deployed import ACCOUNT, PODS
from tests.cluster.migrating import PLANS, REPLICAS, Machine

pytestmark = pytest.mark.cluster
GANG = {pod_groups.GANG_NAME: "train", pod_groups.GANG_MINIMUM: "2"}


def member(machine: Machine, name: str, node: str, milli: int) -> None:
    """A member of the gang that fits on one node alone."""
    requests = {"cpu": f"{milli}m"}
    spec = {
        "schedulerName": ACCOUNT,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        "nodeSelector": {"kubernetes.io/hostname": node},
    }
    meta = {"name": name, "labels": {"app": "train"}, "annotations": GANG}
    machine.admin.need("POST", PODS, {"metadata": meta, "spec": spec})


def refused(machine: Machine, name: str) -> bool:
    """Whether the scheduler has no room for the gang."""
    status = machine.admin.need("GET", f"{PODS}/{name}")["status"]
    return any(each["reason"] == "Unschedulable" for each in status.get("conditions", ()))


@pytest.mark.soak
def test_a_gang_that_waits_gets_room_for_all_though_its_descheduler_is_killed_again_and_again(
    tmp_path: Path,
) -> None:
    """One member fits as it is and the other once three pods have moved: none is bound before."""
    with migrating.cluster(tmp_path) as machine:
        machine.workload("small", node="n0")
        # Each pod has 100m: two of them are not enough.
        member(machine, "large", "n0", machine.free("n0") + 250)
        member(machine, "light", "n1", 100)
        machine.until(lambda: refused(machine, "large"), "the gang fits nowhere")
        body = move_plan.request("g", pod=PodRef("default", "light"), ttl_seconds=600)
        machine.admin.need("POST", PLANS, body)
        for _ in machine.killed_between(writes=(2, 4, 7, 5, 9), folder=tmp_path):
            assert machine.plan("g").get("phase") not in {"Done", "Failed", "Aborted"}
            assert set(machine.nodes("train").values()) == {""}
        machine.start()
        machine.until(lambda: machine.plan("g").get("phase") == "Done", "the plan is done")
        machine.until(lambda: machine.held() == [], "nothing is held")
        machine.kill()
        plan = move_plan.read(machine.admin.need("GET", f"{PLANS}/g"))
        assert [(place.pod.name, place.node) for place in plan.places] == [
            ("light", "n1"),
            ("large", "n0"),
        ]
        assert len(plan.moves) == REPLICAS
        assert machine.nodes("train") == {"large": "n0", "light": "n1"}
        assert sorted(machine.nodes("small").values()) == sorted(m.target for m in plan.moves)
        # One at a time.
        assert machine.fewest["small"] >= REPLICAS - 1
