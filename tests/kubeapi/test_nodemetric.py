"""A NodeMetric is usage by node, pod and window."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from koordlet.kubeapi import nodemetric
from tests.kit import pods

OBJECT: dict[str, Any] = {
    "status": {
        "updateTime": "2026-01-01T00:00:00Z",
        "nodeMetric": {
            "nodeUsage": {"resources": {"cpu": "1500m", "memory": "1Gi"}},
            "aggregatedNodeUsages": [
                {"duration": "1h5m0s", "usage": {"p95": {"resources": {"cpu": "2"}}}},
                {"duration": "soon"},
            ],
        },
        "podsMetric": [
            {"namespace": "a", "name": "b", "podUsage": {"resources": {"cpu": "100m"}}},
            7,
        ],
        "hostApplicationMetric": [{"name": "nginx", "usage": {"resources": {"cpu": "1"}}}],
    }
}


def test_what_it_says() -> None:
    """In our units; what does not fit is said."""
    metric = nodemetric.decode(OBJECT)

    assert metric.updated == 1767225600.0
    assert metric.node == {"cpu": 1500, "memory": 1 << 30}
    assert metric.pods == {"a/b": {"cpu": 100}}
    assert metric.applications == {"nginx": {"cpu": 1000}}
    assert metric.windows == {3900: {"p95": {"cpu": 2000}}}
    assert len(metric.problems) == 2


@given(body=pods.broken(OBJECT))
def test_no_object_raises(body: Any) -> None:
    """However it is broken, what fits is there, and nothing is negative."""
    metric = nodemetric.decode(body)

    assert all(value >= 0 for value in metric.node.values())
