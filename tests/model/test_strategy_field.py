"""Fields of strategies: the peer's spelling, defaults, what lies over what."""

from __future__ import annotations

import pytest

from koordlet.model import strategies, strategy_field


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("cpu_evict_be_satisfaction_upper_percent", "cpuEvictBESatisfactionUpperPercent"),
        ("batch_cpu_threshold_percent", "batchCPUThresholdPercent"),
        ("enable", "enable"),
    ],
)
def test_the_peer_s_keys_follow_from_the_names(name: str, key: str) -> None:
    """Words that the peer writes in capitals stay so, but for the first one."""
    assert strategy_field.spelled(name) == key


def test_what_is_said_above_counts_field_by_field() -> None:
    """What nobody says there shows through from below."""
    below = strategies.CpuBurst(policy="auto", cpu_burst_percent=500)
    above = strategies.CpuBurst(cpu_burst_percent=0)

    assert strategy_field.overlay(below, above) == strategies.CpuBurst(
        policy="auto", cpu_burst_percent=0
    )
    assert strategy_field.overlay(below, None) is below


def test_defaults_stand_in_the_rows() -> None:
    """The strategy that counts where nobody says anything has each row's own default."""
    rows = strategy_field.rows(strategies.Threshold)
    usual = strategy_field.defaults(strategies.Threshold)

    assert {name: getattr(usual, name) for name in rows} == {
        name: row.default for name, row in rows.items()
    }
