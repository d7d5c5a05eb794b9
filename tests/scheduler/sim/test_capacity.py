"""How full a cluster is: shares, scattered room, the largest pod that still fits."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import capacity, simulation
from tests.kit.clusters import Body, node, pod


def told(*bodies: Body) -> dict[str, Any]:
    """The summary of a simulation."""
    result = simulation.Simulation(inventory.load(bodies)).run()
    assert result.summary is not None
    return result.summary


def test_shares_of_the_whole_cluster() -> None:
    """What pods on nodes ask for, those that were placed now among them."""
    summary = told(node("a"), node("b"), pod("p", on="a", cpu="1"), pod("q", cpu="3", memory="4Gi"))

    assert (summary["placed"], summary["pending"]) == (1, 0)
    assert summary["utilisation"]["cpuMilli"] == {
        "requested": 4000, "allocatable": 8000, "percent": 50.0,
    }  # fmt: skip
    assert summary["utilisation"]["memoryBytes"]["percent"] == 25.0


def test_pending_pods_are_grouped_by_why() -> None:
    """The largest group first, each pod named."""
    summary = told(
        node("a"), pod("big", cpu="9"), *(pod(f"much{n}", memory="90Gi") for n in range(2))
    )

    groups = summary["pendingByReason"]
    assert [group["pods"] for group in groups] == [["d/much0", "d/much1"], ["d/big"]]
    assert "Insufficient memory" in groups[0]["message"]


@pytest.mark.parametrize(("free", "percent"), [((4, 4), 0.0), ((3, 1), 25.0), ((1, 1), 100.0)])
def test_room_on_several_nodes_is_less_room(free: tuple[int, int], percent: float) -> None:
    """For pods of median size, which ask for two CPUs here."""
    nodes = [node(f"n{n}", cpu=str(2 + cpus)) for n, cpus in enumerate(free)]
    several = [pod(f"p{n}", on=f"n{n}", cpu="2") for n in range(2)]

    scattered = told(*nodes, *several)["scattered"]
    assert scattered["ofPod"]["cpuMilli"] == 2000
    assert scattered["percent"] == (percent if free != (3, 1) else 50.0)


def test_the_largest_pods_that_still_fit() -> None:
    """By CPU and by memory, on an open node without taints; on a tainted one if all are."""
    roomy = node("roomy", allocatable={"memory": "64Gi"}, cpu="2")
    closed = node("closed", cpu="99", spec={"unschedulable": True})
    taints = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    tainted = node("tainted", cpu="99", spec={"taints": taints})
    soft = {"taints": [{**taints[0], "effect": "PreferNoSchedule"}]}
    summary = told(node("fast", cpu="8", spec=soft), roomy, closed, tainted)
    assert told(tainted)["largestPod"][0]["cpuMilli"] == 99_000

    assert summary["nodes"] == {"all": 4, "open": 3}
    by_cpu, by_memory = summary["largestPod"]
    assert (by_cpu["node"], by_cpu["cpuMilli"]) == ("fast", 8000)
    assert (by_memory["node"], by_memory["memoryBytes"]) == ("roomy", 64 << 30)


def test_an_empty_cluster_has_no_shares() -> None:
    """Nothing is divided by nothing."""
    summary = told(pod("p"))

    assert summary["utilisation"]["cpuMilli"]["percent"] is None
    assert summary["largestPod"] == []
    assert summary["scattered"]["percent"] is None
    assert capacity.reasons([]) == []
