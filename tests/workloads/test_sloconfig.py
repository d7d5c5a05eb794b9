"""``slo-controller-config`` gives a node its strategies where no controller does."""

from __future__ import annotations

import dataclasses
import json

import pytest

from koordlet.model import nodeslo
from koordlet.workloads import colocation, sloconfig

THRESHOLD = {
    "clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60},
    "nodeStrategies": [
        {
            "name": "small",
            "nodeSelector": {"matchLabels": {"pool": "a"}},
            "cpuSuppressThresholdPercent": 50,
        },
        {"name": "rest", "nodeSelector": {}, "memoryEvictThresholdPercent": 80},
    ],
}


@pytest.mark.parametrize(
    ("labels", "cpu", "memory"), [({"pool": "a"}, 50, 70), ({"pool": "b"}, 60, 80)]
)
def test_the_first_selector_that_matches_overlays(
    labels: dict[str, str], cpu: int, memory: int
) -> None:
    """Node over cluster over defaults."""
    slo = sloconfig.decode({"resource-threshold-config": json.dumps(THRESHOLD)}, labels)

    assert (True, cpu, memory) == (
        slo.threshold.enable,
        slo.threshold.cpu_suppress_threshold_percent,
        slo.threshold.memory_evict_threshold_percent,
    )
    assert slo.problems == ()
    assert slo.source == sloconfig.NAME


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ({"key": "pool", "operator": "In", "values": ["a"]}, True),
        ({"key": "pool", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "pool", "operator": "Exists"}, True),
        ({"key": "pool", "operator": "DoesNotExist"}, False),
    ],
)
def test_expressions(expression: dict[str, object], matches: object) -> None:
    """The four operators of label selectors."""
    config = {
        "cpuReclaimThresholdPercent": 50,
        "nodeConfigs": [
            {
                "nodeSelector": {"matchExpressions": [expression]},
                "cpuReclaimThresholdPercent": 40,
            }
        ],
    }
    slo = sloconfig.decode({colocation.KEY: json.dumps(config)}, {"pool": "a"})

    assert (40 if matches else 50) == slo.colocation.cpu_reclaim_threshold_percent
    assert slo.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"nodeStrategies": 3}',
        '{"nodeStrategies": [{"nodeSelector": {"matchExpressions": [{"operator": "Near"}]}}]}',
    ],
)
def test_a_broken_key_costs_itself(text: str) -> None:
    """Its section has the defaults, of which none is off that limits; the other keys count."""
    slo = sloconfig.decode(
        {
            "resource-threshold-config": text,
            "cpu-burst-config": '{"clusterStrategy":{"policy":"auto"}}',
        },
        {},
    )

    assert dataclasses.replace(nodeslo.DEFAULTS.threshold, enable=True) == slo.threshold
    assert slo.cpu_burst.policy == "auto"
    assert [
        problem.startswith("slo-controller-config: resource-th") for problem in slo.problems
    ] == [True]


def test_host_applications_of_a_node() -> None:
    """The list of the first match replaces the cluster's."""
    config = {
        "applications": [{"name": "a", "qos": "LS"}],
        "nodeConfigs": [{"nodeSelector": {}, "applications": [{"name": "b", "qos": "BE"}]}],
    }
    slo = sloconfig.decode({"host-application-config": json.dumps(config)}, {})

    assert [application.group for application in slo.applications] == ["host-best-effort/b"]


@pytest.mark.parametrize("data", ["nonsense", [1], 5])
def test_a_map_without_a_map(data: object) -> None:
    """The defaults are in force, and it is said; a map without any data is no mistake."""
    slo = sloconfig.decode(data, {})

    assert dataclasses.replace(nodeslo.DEFAULTS.threshold, enable=True) == slo.threshold
    assert [problem.startswith("slo-controller-config: data: exp") for problem in slo.problems] == [
        True
    ]
    assert sloconfig.decode(None, {}).problems == ()
