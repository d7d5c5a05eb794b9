"""The manual's walk-throughs, run as they are printed, end as it prints them.

One difference is wanted: ``reservation-demo`` may be used once, so that it has succeeded.
"""

from __future__ import annotations

from koordlet.kubeapi import manifests
from koordlet.scheduler.loop import configuration
from tests.kit import reservations
from tests.kit.reservations import manual


def test_quick_start() -> None:
    """The pod follows its reservation to its node and draws 200m and 400Mi of it."""
    outcome = reservations.tried(*manual("nodes", "pod-demo-0", "reservation-demo"))
    [placed], [state] = outcome["placements"], outcome["reservations"]

    assert (placed["node"], placed["reservation"]) == ("node-0", "reservation-demo")
    assert state["phase"] == "Succeeded"
    assert state["node"] == "node-0"
    assert state["allocatable"] == {"cpu": "500m", "memory": "800Mi"}
    assert state["allocated"] == {"cpu": "200m", "memory": "400Mi"}
    [owner] = state["currentOwners"]
    assert (owner["namespace"], owner["name"]) == ("default", "pod-demo-0")
    conditions = {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in state["conditions"]
    }
    assert conditions == {"Scheduled": ("True", "Scheduled"), "Ready": ("False", "Succeeded")}


def test_several_owners_on_the_pinned_node() -> None:
    """Both pods draw on one reservation of node-1; nothing is counted twice."""
    outcome = reservations.tried(*manual("nodes", "reservation-demo-big", "app-demo"))
    [state] = outcome["reservations"]

    assert {
        (placement["node"], placement["reservation"]) for placement in outcome["placements"]
    } == {("node-1", "reservation-demo-big")}
    assert (state["phase"], state["node"]) == ("Available", "node-1")
    assert state["allocatable"] == {"cpu": "6", "memory": "20Gi"}
    assert state["allocated"] == {"cpu": "4", "memory": "20Gi"}
    assert [owner["name"] for owner in state["currentOwners"]] == [
        "app-demo-798c66db46-ctnbr",
        "app-demo-798c66db46-pzphc",
    ]


def test_pre_allocation_of_an_owner() -> None:
    """The running pod that the owners mean is adopted; its room is promised, and waited for."""
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": _room("500m")}}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "old", "uid": "old", "labels": {"app": "my-app"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": _asks("500m")}]},
    }
    [state] = reservations.tried(node, pod, *manual("reservation-prealloc"))["reservations"]

    assert (state["phase"], state["node"]) == ("Waiting", "n")
    assert [owner["name"] for owner in state["currentOwners"]] == ["old"]
    assert state["allocated"] == {"cpu": "500m", "memory": "800Mi"}


def test_pre_allocation_of_the_cluster_takes_the_highest_priority() -> None:
    """Of two jobs that would do, the one with the higher number is adopted."""
    bodies = manual("batch-jobs", "reservation-cluster-mode")
    for body in bodies:
        if body["kind"] == "Pod":
            [container] = body["spec"]["containers"]
            container["resources"] = {"requests": {"cpu": 2, "memory": "4Gi"}}
        if body["kind"] == "Node":
            body["status"]["allocatable"] |= {"cpu": 4, "memory": "8Gi"}
    [state] = reservations.tried(*bodies)["reservations"]

    assert state["phase"] == "Waiting"
    assert [owner["name"] for owner in state["currentOwners"]] == ["batch-job-1"]


def test_pre_allocation_of_several_pods() -> None:
    """One CPU and one CPU are two."""
    [state] = reservations.tried(*manual("batch-jobs", "reservation-multi-pods"))["reservations"]

    assert (state["phase"], state["node"]) == ("Waiting", "node-2")
    assert [owner["name"] for owner in state["currentOwners"]] == ["batch-job-1", "batch-job-2"]


def test_configuration() -> None:
    """The manual's configuration is read; with it, a node with room is taken without adopting."""
    path = reservations.FOLDER / "scheduler-configuration.yaml"
    [body] = manifests.load(str(path))
    config = configuration.read(body, "manual")
    bodies = manual("batch-jobs", "nodes", "reservation-multi-pods")
    [state] = reservations.tried(*bodies, config=config)["reservations"]

    assert (state["phase"], state["currentOwners"]) == ("Available", [])
    assert config.deciding == {"pod.koordinator.sh/pre-allocatable-priority"}


def _room(cpu: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": "800Mi", "pods": "110"}


def _asks(cpu: str) -> dict[str, dict[str, str]]:
    return {"requests": {"cpu": cpu, "memory": "800Mi"}}


def test_the_deployment_itself() -> None:
    """Pending pods are assumed where the input has none of its pods, and only there."""
    outcome = reservations.tried(*manual("nodes", "reservation-demo-big", "app-demo-deployment"))
    assert {placement["pod"]: placement["reservation"] for placement in outcome["placements"]} == {
        "default/app-demo-0": "reservation-demo-big",
        "default/app-demo-1": "reservation-demo-big",
    }
    assert outcome["reservations"][0]["allocated"] == {"cpu": "4", "memory": "20Gi"}

    both = manual("nodes", "reservation-demo-big", "app-demo", "app-demo-deployment")
    assert len(reservations.tried(*both)["placements"]) == 2
