"""Noisy neighbours: share of the traffic against the pressure of latency-sensitive work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model.resctrl import Usage
from koordlet.policy.resctrl import pressure as resctrl_pressure

USAGE = (
    Usage(group="", domain="0", total_rate=1e9),
    Usage(group="mon_groups/q", domain="0", total_rate=1e9),
    Usage(group="BE", domain="0", total_rate=3e9),
    Usage(group="BE/mon_groups/p", domain="0", total_rate=1e9),
    Usage(group="LS", domain="0", total_rate=1e9),
    Usage(group="BE", domain="8", total_rate=1e9),
    Usage(group="LS", domain="8", total_rate=4e9),
    Usage(group="LS", domain="16", total_rate=None),
)


def test_monitoring_groups_are_not_counted_twice() -> None:
    """A control group's counter has them in it; each domain by itself; no rate is no traffic."""
    shares = [(traffic.domain, traffic.share) for traffic in resctrl_pressure.traffic(USAGE)]

    assert shares == [("0", 60.0), ("8", 20.0)]


@pytest.mark.parametrize(
    ("pressure", "met"),
    [
        (10.0, [True, False]),
        (1.0, [False, False]),
        (None, [None, None]),
    ],
)
def test_both_must_be_over(pressure: float | None, met: list[bool]) -> None:
    """Traffic alone harms nobody; without knowing the pressure nothing is said."""
    signals = resctrl_pressure.signals(USAGE, pressure)

    assert met == [signal.met for signal in signals]
    assert all(bool(signal.why) is (signal.met is None) for signal in signals)


def test_the_limit_falls_fast_and_rises_slowly() -> None:
    """Halved in steps of ten, never below ten; unknown keeps it."""
    noisy = resctrl_pressure.signals(USAGE, 10.0)
    quiet = resctrl_pressure.signals(USAGE, 0.0)
    unknown = resctrl_pressure.signals(USAGE, None)
    steps = resctrl_pressure.tightened

    assert [steps(now, noisy) for now in (100, 50, 20, 10)] == [50, 20, 10, 10]
    assert [steps(10, quiet), steps(100, quiet), steps(70, quiet, most=70)] == [20, 100, 70]
    assert [steps(30, unknown), steps(30, ())] == [30, 30]


@given(st.integers(10, 100), st.floats(0, 100))
def test_a_limit_stays_a_limit(percent: int, pressure: float) -> None:
    """Always within 10 to 100."""
    tightened = resctrl_pressure.tightened(percent, resctrl_pressure.signals(USAGE, pressure))

    assert 10 <= tightened <= 100
