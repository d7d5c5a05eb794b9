"""How often jobs may begin: one token comes back after another."""

from __future__ import annotations

import pytest

from koordlet.scheduler.migration.job_rates import TokenBucket

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("period", "burst", "ago", "waits"),
    [
        (30.0, 1, [], 0.0),
        (30.0, 1, [10.0], 20.0),
        (30.0, 1, [30.0], 0.0),
        # A full bucket holds no more than its burst, however long nobody took any.
        (30.0, 1, [1000.0, 10.0], 20.0),
        (30.0, 2, [1000.0, 10.0], 0.0),
        (30.0, 2, [20.0, 10.0], 10.0),
        (30.0, 3, [40.0, 30.0, 20.0], 0.0),
        # Two that began at once though there was one token: the second took none.
        (30.0, 1, [10.0, 10.0], 20.0),
        (30.0, 1, [10.0, 5.0], 20.0),
        # A clock that was set back is no debt.
        (30.0, 1, [-5.0], 30.0),
    ],
)
def test_a_token_comes_back_after_its_period(
    period: float, burst: int, ago: list[float], waits: float
) -> None:
    """Whoever takes one leaves a period of waiting, unless the burst is more."""
    bucket = TokenBucket(period, burst)
    assert bucket.wait([NOW - each for each in ago], NOW) == pytest.approx(waits, abs=1e-6)
