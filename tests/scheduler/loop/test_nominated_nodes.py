"""Nodes that others are nominated for: who keeps a place there, and what they say of others."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.loop import preemptors
from koordlet.scheduler.loop.outcomes import Refusal
from tests.scheduler.loop.test_preemptors import Cluster


def test_a_pod_that_preempts_nobody_keeps_the_place_that_it_was_nominated_for() -> None:
    """Somebody else has nominated it; of one that may preempt the place is withdrawn."""
    cluster = Cluster()
    cluster.node("n", cpu="2")
    nominated: dict[str, Any] = {"status": {"nominatedNodeName": "n"}, "cpu": "3"}
    cluster.pod("patient", preemptionPolicy="Never", **nominated)
    cluster.pod("usual", **nominated)

    for name, place in (("patient", "n"), ("usual", "")):
        refusal = cluster.core.step(cluster.now)
        assert isinstance(refusal, Refusal)
        assert (refusal.pod.name, refusal.node) == (name, place)
        assert cluster.core.nominated.node(cluster.pods[name]) == place


def test_who_preempts_nobody_keeps_the_place_that_its_group_gave_up_to_be_tried() -> None:
    """It is tried with its group, and alone where it finds no room."""
    cluster = Cluster()
    cluster.node("n")
    cluster.pod("low", on="n", cpu="4")
    status = {"nominatedNodeName": "n"}
    cluster.pod("never", cpu="4", priority=9, status=status, preemptionPolicy="Never")
    cluster.settle()
    core, never = cluster.core, cluster.pods["never"]
    assert core.nominated.node(never) == "n"

    core.nominated.drop(never.key)
    entry = core.queue.get(never.key)
    assert entry is not None
    assert isinstance(core.attempt(entry.pod, cluster.now), Refusal)
    assert core.nominated.node(never) == "n"
    assert not any(core.nominated.withdrawn.values())


def test_who_waits_for_victims_keeps_the_place_that_its_group_gave_up_to_be_tried() -> None:
    """Else somebody of the group gets it each time, and the room that is withdrawn wakes it."""
    cluster = Cluster()
    cluster.node("n")
    cluster.pod("low", on="n", cpu="4")
    cluster.pod("high", cpu="4", priority=9)
    cluster.settle()
    core, high = cluster.core, cluster.pods["high"]
    assert (cluster.leaving, core.nominated.node(high)) == (["low"], "n")

    core.nominated.drop(high.key)
    entry = core.queue.get(high.key)
    assert entry is not None
    refusal = core.attempt(entry.pod, cluster.now)
    assert isinstance(refusal, Refusal)
    assert refusal.message.endswith(preemptors.AWAITED)
    assert core.nominated.node(high) == "n"
    assert not any(core.nominated.withdrawn.values())


def test_reasons_of_a_node_that_refuses_a_pod_anyway_include_its_nominated_pods() -> None:
    """kube-scheduler looks at such a node with them on it first, unless they are less important."""
    cluster = Cluster()
    cluster.node("n")
    cluster.pod("full", on="n", cpu="4", priority=9)
    gated: dict[str, Any] = {
        "status": {"nominatedNodeName": "n"},
        "schedulingGates": [{"name": "g"}],
    }
    cluster.pod("guest", memory="7Gi", priority=5, **gated)
    for priority, reasons in (
        (5, "1 Insufficient cpu, 1 Insufficient memory"),
        (6, "1 Insufficient cpu"),
    ):
        cluster.pod(f"late-{priority}", cpu="1", memory="2Gi", priority=priority)
        refusal = cluster.core.step(cluster.now)
        assert isinstance(refusal, Refusal)
        assert refusal.message.startswith(f"0/1 nodes are available: {reasons}. ")


def test_a_node_that_is_promised_to_others_counts_in_no_score() -> None:
    """Taints are compared with the worst of the nodes that are feasible: four here, or one."""
    cluster = Cluster()

    def taints(count: int) -> list[Any]:
        return [{"key": f"k{at}", "effect": "PreferNoSchedule"} for at in range(count)]

    for name, count in (("loaded", 0), ("tainted", 1), ("promised", 4)):
        cluster.node(name, spec={"taints": taints(count)})
    cluster.pod("runs", on="loaded", cpu="3600m", memory="7Gi")
    nominated: dict[str, Any] = {"status": {"nominatedNodeName": "promised"}}
    cluster.pod("guest", cpu="4", priority=9, schedulingGates=[{"name": "g"}], **nominated)
    cluster.pod("late", cpu="100m", memory="100Mi")
    cluster.settle()

    assert cluster.place("late") == "loaded"
