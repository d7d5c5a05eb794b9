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
            {"anomalyCondition": {"consecutiveAbnormalities": 0}},
            "args.anomalyCondition.consecutiveAbnormalities", "expected 1",
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


def test_no_normal_report_in_a_row_is_the_usual_number() -> None:
    """As with the peer; else a source would be forgotten at once."""
    bounds = {"lowThresholds": {"cpu": 10}, "highThresholds": {"cpu": 50}}
    (pool,) = read(**bounds, anomalyCondition={"consecutiveNormalities": 0}).pools
    assert pool.anomaly.normal == 3
