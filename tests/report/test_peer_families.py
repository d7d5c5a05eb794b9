"""The peer's names for what the agent says of itself, read back by the reference parser."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.model import pod, spread
from koordlet.report import metrics, peer_families, view
from tests.kit import views
from tests.report.test_metrics import scraped, value


def test_the_agents_own() -> None:
    """Start, collecting, evictions and allocatable, under the peer's names in both formats."""
    counted = view.AgentCounters(
        started=1.5e9,
        collected={"cpu_info": (7, 1)},
        evictions={
            ("memory_evict", "memory", "evicted"): 3,
            ("memory_evict", "memory", "refused"): 5,
        },
    )
    now = views.view(counters=counted)
    node = dataclasses.replace(
        now.snapshot.node, allocatable={"cpu": 7500, "kubernetes.io/batch-cpu": 2500}
    )
    now = dataclasses.replace(now, snapshot=dataclasses.replace(now.snapshot, node=node))
    for form in (metrics.TEXT, metrics.OPENMETRICS):
        series = scraped(now, form)
        status, reason = "koordlet_collect_node_cpu_info_status", "memory_evict/memory"

        assert value(series, "koordlet_start_time", node="n1") == 1.5e9
        assert value(series, status, node="n1", status="succeeded") == 7
        assert value(series, status, node="n1", status="failed") == 1
        assert value(series, "koordlet_pod_eviction", node="n1", reason=reason) == 3
        allocatable = "koordlet_node_resource_allocatable"
        assert value(series, allocatable, node="n1", resource="cpu", unit="core") == 7.5
        batch = {"resource": "kubernetes.io/batch-cpu", "unit": "integer"}
        assert value(series, allocatable, node="n1", **batch) == 2500


def test_a_pool_has_a_series_for_each_cpu() -> None:
    """The CPUs of the LS pool, and no others."""
    series = scraped(views.view())
    cpus = views.view().plan.ledger.pool("LS")

    for cpu in range(8):
        sample = value(series, "koordlet_cpuset_share_pool_info", node="n1", cpu=str(cpu))
        assert (1 if cpu in cpus else None) == sample


def test_what_was_never_tried_is_not_counted() -> None:
    """No zero for a part of the machine that nobody asked for."""
    rows = {family.name: list(family.rows(views.view())) for family in peer_families.FAMILIES}

    assert rows["koordlet_collect_node_local_storage_info_status"] == []


def test_limits_that_were_raised() -> None:
    """Of the containers that have one, in microseconds; of nobody while nothing was raised."""
    now = views.view()
    container = pod.Container(name="main", id="c0ffee", runtime="containerd", group="shop/a/main")
    workload = dataclasses.replace(views.workload("a"), containers=(container,))
    now = dataclasses.replace(
        now,
        snapshot=dataclasses.replace(now.snapshot, pods=(workload,)),
        scaled={("quota", "shop/a/main"): 240_000, ("burst", "shop/else"): 5},
    )
    labels = {"node": "n1", "pod_namespace": workload.namespace, "pod_name": workload.name}
    labels |= {"container_id": "containerd://c0ffee", "container_name": "main"}
    series, quota = scraped(now), "koordlet_container_scaled_cfs_quota_us"

    assert value(series, quota, **labels) == 240_000
    assert value(series, quota.replace("quota", "burst"), **labels) is None
    assert value(scraped(dataclasses.replace(now, scaled={})), quota, **labels) is None


def test_who_is_killed_first() -> None:
    """A container's score is that of the process that goes first; a group without any has none."""
    containers = tuple(
        pod.Container(name=name, id=name * 8, group=f"shop/a/{name}") for name in ("x", "y", "z")
    )
    workload = dataclasses.replace(views.workload("a"), containers=containers)
    snapshot = dataclasses.replace(
        views.view().snapshot,
        pods=(workload,),
        oom_scores={"shop/a/x": {7: -997, 8: 3}, "shop/a/y": {}},
    )
    series = scraped(dataclasses.replace(views.view(), snapshot=snapshot))
    labels = {"node": "n1", "pod_uid": workload.uid, "pod_name": "a"}
    labels["pod_namespace"] = workload.namespace

    assert [
        value(series, "koordlet_container_oom_score_adj", **labels, container_name=name)
        for name in ("x", "y", "z")
    ] == [3, None, None]


@pytest.mark.parametrize("form", [metrics.TEXT, metrics.OPENMETRICS])
def test_answers_of_the_kubelet(form: metrics.TextFormat) -> None:
    """A histogram that both parsers read; none where no kubelet is asked."""
    took = spread.Spread.empty((0.001, 4.096)).with_one(0.5).with_one(5.0).with_one(0.001)
    now = dataclasses.replace(views.view(), took={("/pods", "200"): took})
    labels = {"node": "n1", "verb": "get", "path": "/pods/", "code": "200"}
    series, name = scraped(now, form), "koordlet_kubelet_request_duration_seconds"

    assert [
        value(series, f"{name}_bucket", **labels, le=le) for le in ("0.001", "4.096", "+Inf")
    ] == [1, 2, 3]
    assert (
        value(series, f"{name}_sum", **labels),
        value(series, f"{name}_count", **labels),
    ) == (5.501, 3)
    assert not [key for key, _ in scraped(views.view(), form) if key.startswith(name)]
