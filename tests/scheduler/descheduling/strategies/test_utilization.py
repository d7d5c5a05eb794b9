"""Strategies by what is requested of nodes, with the numbers of upstream's tables."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit import descheduling
from tests.kit.descheduling import Body, evicted, node, play, pod, policy

LOW, HIGH = "LowNodeUtilization", "HighNodeUtilization"
BOUNDS = {"thresholds": {"cpu": 30, "pods": 30}, "targetThresholds": {"cpu": 50, "pods": 50}}


def cluster(size: int = 5, **more: Any) -> list[Body]:
    """Node n1 with pods of 400m, of which three are protected; n2 with one; n3 cordoned."""
    return [
        node("n1", cpu="4", pods=9),
        node("n2", cpu="4", pods=10),
        node("n3", cpu="4", pods=10, unschedulable=True),
        *(pod(f"p{place + 1}", "n1", cpu="400m", **more) for place in range(size)),
        pod("p6", "n1", cpu="400m", owner="DaemonSet/d"),
        pod("p7", "n1", cpu="400m", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("p8", "n1", cpu="400m", priority=2_000_000_000),
        pod("p9", "n2", cpu="400m"),
    ]


def test_pods_leave_until_the_node_is_at_its_target() -> None:
    """Eight of nine pods and 80 % of the CPU: four go, the rest is at half of both."""
    assert evicted(cluster(), policy({LOW: BOUNDS})) == ["p1", "p2", "p3", "p4"]
    assert evicted(cluster(0), policy({LOW: BOUNDS})) == []


def test_pods_stop_when_the_targets_are_full() -> None:
    """Pods of 400m that use little here leave less room there: the third finds none."""
    bodies = [*cluster(), pod("q", "n2", cpu="700m")]
    assert evicted(bodies, policy({LOW: BOUNDS})) == ["p1", "p2", "p3"]


def test_the_least_important_go_first() -> None:
    """Priority, then the QoS class; of equals, who asks to stay goes last."""
    bodies = cluster(0)
    more: Body = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    stays = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}
    bodies += [
        *(pod("important", "n1", cpu="400m", priority=10), pod("plain", "n1", cpu="400m")),
        *(pod("nothing", "n1", **more), pod("asks", "n1", cpu="400m", annotations=stays)),
        pod("more", "n1", cpu="400m", priority=9),
    ]
    names = evicted(bodies, policy({LOW: BOUNDS}))
    assert names == ["nothing", "plain", "asks", "more"]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"evictableNamespaces": {"exclude": ["default"]}}, []),
        ({"evictionLimits": {"node": 2}}, ["p1", "p2"]),
        ({"numberOfNodes": 1}, []),
        ({"thresholds": {"cpu": 5, "pods": 30}}, []),
        ({"targetThresholds": {"cpu": 90, "pods": 90}}, []),
        ({"thresholds": {"cpu": 100}, "targetThresholds": {"cpu": 100}}, []),
    ],
)
def test_arguments_bound_what_goes(change: dict[str, Any], names: list[str]) -> None:
    """No node is under-used, none over-used, too few, or its share has gone."""
    assert evicted(cluster(), policy({LOW: {**BOUNDS, **change}})) == names


def test_what_keeps_the_strategy_idle_is_a_note() -> None:
    """An operator sees which threshold to tune."""
    args = {**BOUNDS, "thresholds": {"cpu": 5, "pods": 5}}
    result = play(cluster(), policy({LOW: args}))
    assert result.notes == [("p", LOW, "no node is underutilized")]


def test_deviations_are_around_the_mean_of_all_nodes() -> None:
    """80, 10 and 0 % are 30: 5 below and above it; what room is left is asked before each pod."""
    args = {
        "thresholds": {"cpu": 5},
        "targetThresholds": {"cpu": 5},
        "useDeviationThresholds": True,
    }
    assert len(evicted(cluster(), policy({LOW: args}))) == 3


def test_a_pod_stays_where_it_tolerates_no_target() -> None:
    """Any one of the targets is enough."""
    bodies = cluster()
    bodies[1]["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    assert evicted(bodies, policy({LOW: BOUNDS})) == []
    bodies.append(node("n4", cpu="4"))
    assert len(evicted(bodies, policy({LOW: BOUNDS}))) == 4


def test_the_fullest_node_is_the_one_with_the_highest_mean_percentage() -> None:
    """The peer adds milli-CPU and bytes, so that a large idle node comes first."""
    big = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 30}}
    bodies = [
        *(node("big", cpu="10", memory="64Gi"), node("hot", cpu="1"), node("idle", cpu="10")),
        *(pod(f"b{place}", "big", cpu="1", memory="8Gi") for place in range(4)),
        *(pod(f"h{place}", "hot", cpu="300m") for place in range(3)),
    ]
    assert evicted(bodies, policy({LOW: big}))[0] == "h0"


def test_the_use_that_agents_report_counts_where_metrics_are_asked_for() -> None:
    """Requests are 80 %, and really nothing is used; a pod that nobody measures stays."""
    args = {**BOUNDS, "metricsUtilization": {"source": "KubernetesMetrics"}}
    idle = [metric("n1", "100m"), metric("n2", "100m"), metric("n3", "100m")]
    pods = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
    assert evicted([*cluster(), *idle], policy({LOW: {**args, **pods}})) == []
    busy = [metric("n1", "3", p1="900m", p2="900m"), *idle[1:]]
    assert evicted([*cluster(), *busy], policy({LOW: {**args, **pods}})) == ["p1", "p2"]


def metric(name: str, cpu: str, **pods: str) -> Body:
    """The NodeMetric of a node."""
    return {
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "status": {
            "updateTime": descheduling.ago(10),
            "nodeMetric": {"nodeUsage": {"resources": {"cpu": cpu, "memory": "0"}}},
            "podsMetric": [
                {"namespace": "default", "name": pod, "podUsage": {"resources": {"cpu": amount}}}
                for pod, amount in pods.items()
            ],
        },
    }


def packing() -> list[Body]:
    """One node that is nearly empty, one that is in use, one that is cordoned."""
    return [
        *(node("n1", cpu="4", pods=9), node("n2", cpu="4", pods=10)),
        node("n3", cpu="4", pods=10, unschedulable=True),
        *(pod("a", "n1", cpu="400m"), pod("b", "n1", cpu="0")),
        *(pod(f"c{place}", "n2", cpu="400m") for place in range(5)),
        *(pod(f"d{place}", "n3", cpu="400m") for place in range(5)),
    ]


def test_under_used_nodes_are_emptied_while_others_have_room() -> None:
    """Of a node below the thresholds all pods go, or those that request what is given."""
    args = {"thresholds": {"cpu": 30, "pods": 30}}
    assert sorted(evicted(packing(), policy({HIGH: args}))) == ["a", "b"]
    only = {**args, "evictionModes": ["OnlyThresholdingResources"], "thresholds": {"cpu": 30}}
    assert evicted(packing(), policy({HIGH: only})) == ["a"]


def test_under_used_nodes_stay_where_nothing_else_has_room() -> None:
    """A full node and a cordoned one take nobody."""
    bodies = [*packing(), pod("big", "n2", cpu="2")]
    assert evicted(bodies, policy({HIGH: {"thresholds": {"cpu": 30, "pods": 30}}})) == []
    assert evicted(packing(), policy({HIGH: {"thresholds": {"cpu": 5}}})) == []
