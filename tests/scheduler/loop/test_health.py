"""The state of the cluster as the limiter of evictions asks for it."""

from __future__ import annotations

import pytest

from koordlet.scheduler.disruption.limiter import ClusterHealth
from koordlet.scheduler.loop import health
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene


@pytest.mark.parametrize("key", ["not-ready", "unreachable"])
def test_nodes_count_by_their_taints_and_pods_by_their_place_in_the_queue(key: str) -> None:
    """A pod that is gated waits for no node, and a cordoned node is ready."""
    taint = {"key": f"node.kubernetes.io/{key}", "effect": "NoExecute"}
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    scene = QuotaScene(
        clusters.node("n0"),
        clusters.node("n1", spec={"taints": [taint]}),
        clusters.node("n2", spec={"taints": [cordoned]}),
    )
    scene.pod("runs", "", on="n0")
    scene.pod("waits", "")
    scene.pod("gated", "", schedulingGates=[{"name": "later"}])

    assert health.of(scene.core) == ClusterHealth(nodes=3, not_ready=1, pods=2, pending=1)
