"""A workload of a real controller that wants fewer pods while one of them is being moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import migrating
from tests.cluster.deployed import PODS
from tests.cluster.migrating import MERGE, REPLICAS, SETS, Machine
from tests.kit import deadline

pytestmark = [pytest.mark.cluster, pytest.mark.soak]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The manifests, three hollow nodes, a scheduler and the account of the descheduler."""
    with migrating.cluster(tmp_path_factory.mktemp("scale-in")) as made:
        yield made


@pytest.mark.parametrize("deleted", [False, True])
def test_a_workload_that_wants_no_pod_while_its_pod_ends_ends_the_job(
    machine: Machine, *, deleted: bool
) -> None:
    """The real controllers take the replacement back: nobody waits ten minutes for another."""
    workload = "none" if deleted else "fewer"
    pod = machine.workload(workload)

    def leaves() -> bool:
        return "deletionTimestamp" in machine.admin.need("GET", f"{PODS}/{pod}")["metadata"]

    machine.start()
    try:
        name = machine.move(pod)
        # No replacement comes up meanwhile: pods are not tended.
        deadline.until(leaves, "it is evicted", seconds=60)
        if deleted:
            machine.admin.need("DELETE", f"{SETS}/{workload}")
        else:
            fewer = {"spec": {"replicas": REPLICAS - 1}}
            machine.admin.need("PATCH", f"{SETS}/{workload}", fewer, MERGE)
        machine.until(lambda: machine.over(name), "the job is over")
        machine.until(lambda: not machine.held(), "its room is given back")
    finally:
        machine.kill()
    status = machine.job(name)
    assert status["phase"] == "Succeeded", status
    assert status["message"].endswith("its controller wants no other pod instead")
    assert len(machine.nodes(workload)) == (0 if deleted else REPLICAS - 1)
