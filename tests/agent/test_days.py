"""A whole day of an agent: its memory is flat once everything that is bounded is full."""

from __future__ import annotations

import pytest

from tests.kit import days

_SEED = 5
#: Half an hour fills the history; the rest is the unrest of the allocator, and its noise.
_FULL, _NOISE_MB = 8_000, 3.0


@pytest.mark.soak
def test_a_day_with_churn() -> None:
    """86 400 ticks, a pod that comes and one that goes every other second: no growth."""
    marks = (_FULL, days.DAY // 2, days.DAY)
    full, half, whole = (mark.resident_mb for mark in days.ticks(days.DAY, _SEED, marks))

    assert half - full < _NOISE_MB
    assert whole - half < _NOISE_MB


def test_the_days_machine_churns() -> None:
    """What the soak runs is alive: pods come, are placed, and go."""
    early, late = days.ticks(90, _SEED, (3, 90))
    assert (early.at, late.at) == (3, 90)
    assert (len(early.pods), len(late.pods)) == (3, days.PODS)
    assert not early.pods <= late.pods
    assert (early.limited, late.limited) == (early.pods, late.pods)
