"""The arguments of LowNodeLoad: what a pool has from the top, and each contradiction by name."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.strategies import load_settings


def read(**args: Any) -> load_settings.LoadSettings:
    """The settings of these arguments."""
    return load_settings.read(Fields(args, "f", "args"))


def test_a_pool_has_from_the_top_level_what_it_does_not_say() -> None:
    """And the top level is a pool of its own, before the others, where it has thresholds."""
    pool = {"name": "a", "highThresholds": {"cpu": 90}}
    settings = read(lowThresholds={"cpu": 20}, highThresholds={"cpu": 50}, nodePools=[pool])
    assert [each.name for each in settings.pools] == ["__default_node_pool__", "a"]
    assert settings.pools[1].low == {"cpu": 20.0}
    assert settings.pools[1].high == {"cpu": 90.0}
    alone = read(
        nodePools=[{"name": "b", "lowThresholds": {"cpu": 1}, "highThresholds": {"cpu": 2}}]
    )
    assert [each.name for each in alone.pools] == ["b"]
    assert alone.pools[0].names == ("cpu", "memory")


@pytest.mark.parametrize(
    ("args", "where", "what"),
    [
        (
            {"lowThresholds": {"cpu": 60}, "highThresholds": {"cpu": 50}},
            "args.lowThresholds.cpu", "60 is above highThresholds.cpu, which is 50",
        ),
        (
            {"highThresholds": {"cpu": 50}},
            "args.lowThresholds", "cpu has a value in highThresholds and none here",
        ),
        (
            {"lowThresholds": {"cpu": 1, "memory": 2}, "highThresholds": {"cpu": 50}},
            "args.highThresholds", "memory has a value in lowThresholds and none here",
        ),
        (
            {"lowThresholds": {"cpu": 10}, "highThresholds": {"cpu": 50},
             "prodLowThresholds": {"cpu": 10}, "prodHighThresholds": {"cpu": 60}},
            "args.prodHighThresholds.cpu", "60 is above highThresholds.cpu, which is 50",
        ),
        (
            {"nodePools": [{"name": "x", "lowThresholds": {"cpu": 9},
                            "highThresholds": {"cpu": 8}}]},
            "args.nodePools[0].lowThresholds.cpu", "pool x: 9 is above",
        ),
        ({"nodePools": [{"name": "x", "lowThr": {}}]}, "nodePools[0].lowThr", "is not known"),
        ({"highThresholds": {"cpu": 101}}, "args.highThresholds", "from 0 to 100"),
        (
            {"anomalyCondition": {"consecutiveAbnormalities": -1}},
            "args.anomalyCondition.consecutiveAbnormalities", "expected 0",
        ),
    ],
)  # fmt: skip
def test_a_contradiction_names_pool_resource_and_values(
    args: dict[str, Any], where: str, what: str
) -> None:
    """The peer loses a threshold that has no counterpart."""
    with pytest.raises(errors.ConfigError) as caught:
        read(**args)
    assert where in str(caught.value)
    assert what in str(caught.value)


def test_what_a_pool_does_not_say_of_anomalies_is_as_at_the_top_level_or_as_usual() -> None:
    """0 says nothing, as with the peer; each number by itself."""
    bounds = {"lowThresholds": {"cpu": 10}, "highThresholds": {"cpu": 50}}
    top = {"timeout": "2m", "consecutiveAbnormalities": 10, "consecutiveNormalities": 4}
    silent: dict[str, Any] = {"consecutiveAbnormalities": 0, "consecutiveNormalities": 0}
    for given, of_pool, expected in (
        ({}, {}, (5, 3, 60.0)),
        (silent, {}, (5, 3, 60.0)),
        ({"consecutiveAbnormalities": 2}, {}, (2, 3, 60.0)),
        (top, {}, (10, 4, 120.0)),
        (top, {**silent, "timeout": "1m"}, (10, 4, 60.0)),
        (top, {"consecutiveAbnormalities": 3, "consecutiveNormalities": 2}, (3, 2, 120.0)),
    ):
        pool = {"name": "a", **bounds, "anomalyCondition": of_pool}
        marks = read(anomalyCondition=given, nodePools=[pool]).pools[0].anomaly
        assert (marks.abnormal, marks.normal, marks.timeout_seconds) == expected


@pytest.mark.parametrize(
    ("top", "of_pool", "expected"),
    [
        ({}, {}, {"cpu": 1, "memory": 1}),
        (
            {"lowThresholds": {"pods": 10}, "highThresholds": {"pods": 20}}, {},
            {"cpu": 1, "memory": 1, "pods": 1},
        ),
        (
            {"lowThresholds": {"pods": 10}, "highThresholds": {"pods": 20},
             "resourceWeights": {"cpu": 10, "memory": 5}}, {},
            {"cpu": 10, "memory": 5, "pods": 1},
        ),
        ({"resourceWeights": {"cpu": 2, "memory": 0}}, {}, {"cpu": 2, "memory": 1}),
        ({"resourceWeights": {"cpu": 2}}, {"resourceWeights": {"memory": 3}}, {"memory": 3}),
    ],
)  # fmt: skip
def test_weights_are_1_at_the_top_level_and_a_pools_own_are_all_that_it_has(
    top: dict[str, Any], of_pool: dict[str, Any], expected: dict[str, int]
) -> None:
    """What weighs nothing still has its thresholds."""
    bounds = {"lowThresholds": {"cpu": 10}, "highThresholds": {"cpu": 50}}
    settings = read(**top, nodePools=[{"name": "a", **bounds, **of_pool}])
    assert settings.pools[-1].weights == expected


def test_arguments_that_are_not_given_are_the_peers() -> None:
    """Three minutes for a report, five for marks; a landing is searched, and everything acts."""
    usual = read()
    assert (usual.node_fit, usual.expiration_seconds, usual.memory_seconds) == (True, 180, 300.0)
    assert (usual.paused, usual.dry_run, usual.least_nodes) == (False, False, 0)
    given = read(nodeFit=False, detectorCacheTimeout="10m", numberOfNodes=5)
    assert (given.node_fit, given.memory_seconds, given.least_nodes) == (False, 600.0, 5)
    for mistake in (
        {"numberOfNodes": -1},
        {"nodeMetricExpirationSeconds": 0},
        {"evictableNamespaces": {"include": ["a"], "exclude": ["b"]}},
        {"podSelectors": [{"name": "s", "selector": {"matchExpressions": [{"key": "a"}]}}]},
    ):
        with pytest.raises(errors.ConfigError):
            read(**mistake)
