"""Load-aware placement, as the simulation decides it."""

from __future__ import annotations

import json
from typing import Any

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.plugins import load_aware
from koordlet.scheduler.sim import simulation
from tests.kit import clusters, reservations
from tests.kit.clusters import node, pod

Body = dict[str, Any]
NOW = "2026-01-01T00:10:00Z"


def metric(name: str, cpu: str, *, at: str = NOW, pods: Body | None = None, **more: Any) -> Body:
    """What a node used at a time."""
    return {
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
        "status": {
            "updateTime": at,
            "nodeMetric": {
                "nodeUsage": {"resources": {"cpu": cpu, "memory": "1Gi"}},
                **more,
            },
            "podsMetric": [
                {
                    "namespace": "d",
                    "name": pod_name,
                    "priority": "koord-prod",
                    "podUsage": {"resources": {"cpu": used, "memory": "100Mi"}},
                }
                for pod_name, used in (pods or {}).items()
            ],
        },
    }


def bound_at(name: str, cpu: str, at: str) -> Body:
    """A pod that got its node ``n`` at a time."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    return pod(name, on="n", cpu=cpu, status={"conditions": [condition]})


def test_a_busy_node_is_refused() -> None:
    """Above 65 % of the CPU with the estimate of the pod: 2.1 + 0.85 of 4 are 74 %."""
    bodies = (node("n"), metric("n", "2100m"))
    assert (
        clusters.message("p", *bodies, pod("p", cpu="1"))
        == "0/1 nodes are available: 1 node(s) cpu usage exceed threshold."
    )
    assert clusters.places(node("n"), metric("n", "1750m"), pod("p", cpu="1")) == {"p": "n"}


def test_new_pods_count_by_their_estimate() -> None:
    """A pod that the report does not know well counts for what is missing in it."""
    fresh = bound_at("new", "2", "2026-01-01T00:09:30Z")
    old = bound_at("new", "2", "2026-01-01T00:01:00Z")
    known = metric("n", "1100m", pods={"new": "100m"})

    assert "cpu usage" in clusters.message("p", node("n"), known, fresh, pod("p", cpu="500m"))
    assert clusters.places(node("n"), known, old, pod("p", cpu="500m")) == {"p": "n"}


def test_the_idle_node_is_preferred() -> None:
    """Of two nodes with equal requests, the one that uses less."""
    places = clusters.places(
        node("a"), node("b"), metric("a", "2"), metric("b", "100m"), pod("p", cpu="100m")
    )
    assert places == {"p": "b"}


def test_an_old_report_refuses_or_counts_for_nothing() -> None:
    """As the arguments say; a node without any report is not judged."""
    late = 1_767_226_200 + 181.0  # NOW and a second more than the default of expiration

    def message(*bodies: Body) -> str:
        outcome = simulation.Simulation(inventory.load(bodies), now=late).run().document()
        return str([entry["message"] for entry in outcome["pending"]])

    bodies = (node("n"), metric("n", "100m"), pod("p", cpu="1"))
    assert "1 node(s) nodeMetric expired" in message(*bodies)
    assert message(node("n"), pod("p", cpu="1")) == "[]"


def test_the_scarcest_resource_counts_alone_where_nothing_else_has_a_weight() -> None:
    """``dominantResourceWeight`` without ``resourceWeights``: the lower of CPU and memory."""
    args = {"dominantResourceWeight": 1}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "pluginConfig": [{"name": "LoadAwareScheduling", "args": args}],
                "plugins": {
                    "score": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": "LoadAwareScheduling"}],
                    }
                },
            }
        ],
    }
    scores = clusters.scores(
        "p", node("a"), node("b"), metric("a", "1"), metric("b", "2"), pod("p", cpu="100m"),
        config=config,
    )  # fmt: skip

    # (4000 - 1000 - 85) / 4000 of the CPU; memory is at 85 %.
    assert scores == {"a": 72, "b": 47}


def test_an_estimate_counts_sidecars_overhead_and_the_pod_as_a_whole() -> None:
    """What a pod may use at most is more than the limits of its plain containers."""
    plugin = load_aware.LoadAwareScheduling({})

    def cpu(**spec: Any) -> int:
        limited = {"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}
        decoded = Decoder({}).decode(pod("p", container={"resources": limited}, **spec), 0)
        return plugin.estimate(decoded.pod_class)["cpu"]

    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}
    assert cpu() == 850
    assert cpu(initContainers=[sidecar]) == 1700
    assert cpu(overhead={"cpu": "500m"}) == 1275
    assert cpu(resources={"limits": {"cpu": "4"}}) == 3400


def test_a_use_that_is_unknown_is_not_zero() -> None:
    """A fresh report without the node's use, as after an agent's start, makes no node idle."""
    empty = metric("new", "0")
    empty["status"]["nodeMetric"] = {
        "nodeUsage": {"resources": {}},
        "aggregatedNodeUsages": [{"duration": "5m0s", "usage": {}}],
    }
    places = clusters.places(
        node("new"), node("old"), empty, metric("old", "1200m"), pod("p", cpu="100m")
    )

    assert places == {"p": "old"}


def test_a_node_has_limits_of_its_own() -> None:
    """The annotation replaces the group that it names."""
    limited = node("n")
    limited["metadata"]["annotations"] = {
        "scheduling.koordinator.sh/usage-thresholds": json.dumps({"usageThresholds": {"cpu": 90}})
    }
    assert clusters.places(limited, metric("n", "2100m"), pod("p", cpu="1")) == {"p": "n"}


def test_daemons_are_not_kept_away() -> None:
    """A DaemonSet's pod passes wherever it belongs."""
    owner = {"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True, "apiVersion": "v1"}
    daemon = pod("p", cpu="1", meta={"ownerReferences": [owner]})
    assert clusters.places(node("n"), metric("n", "3900m"), daemon) == {"p": "n"}


def test_what_belongs_to_a_busy_node_may_reserve_there() -> None:
    """A reservation for a unit is not refused for the load that the unit makes itself."""
    busy = (node("n"), metric("n", "3500m"))
    match = {"annotations": {"koordlet.io/match": '{"unit":"db.service"}'}}
    mine = reservations.reservation("db", cpu="1", meta=match, pod={"nodeName": "n"})
    other = reservations.reservation("web", cpu="1")

    assert reservations.states(*busy, mine)["db"]["phase"] == "Available"
    assert reservations.states(*busy, other)["web"]["phase"] == "Pending"
