"""The state of the cluster as the limiter of evictions asks for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from koordlet.scheduler.disruption.limiter import ClusterHealth
from koordlet.scheduler.loop import health
from koordlet.scheduler.objects import terms
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


class Counted(tuple[terms.Taint, ...]):
    """Taints that count how often they are looked at."""

    __slots__ = ()

    looks = 0

    def __iter__(self) -> Iterator[terms.Taint]:
        """Each of them."""
        Counted.looks += 1
        return super().__iter__()


def test_taints_are_looked_at_once_for_all_nodes_that_have_the_same() -> None:
    """It is asked for each eviction that is thought of, in clusters of thousands of nodes."""
    scene = QuotaScene(*(clusters.node(f"n{number}") for number in range(50)))
    columns = scene.core.pod_cache.columns
    taint = terms.Taint("node.kubernetes.io/unreachable", "", "NoExecute")
    for node in [columns.chosen(row) for row in columns.rows.values()]:
        columns.put(dataclasses.replace(node, taints=Counted((taint,))))
    assert health.of(scene.core).not_ready == 50
    Counted.looks = 0
    assert health.of(scene.core).not_ready == 50
    assert Counted.looks == 1
