"""Decaying histograms: percentiles of recent values, bounded memory, damage refused."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import histogram

DAY = 86_400.0


def filled(*values: float, now: float = 0.0) -> histogram.Histogram:
    """CPU samples of one moment."""
    made = histogram.Histogram(histogram.CPU, now)
    for value in values:
        made.add(value, now)
    return made


@hypothesis.given(st.lists(st.floats(0, 1000), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_close_above(values: list[float], part: float) -> None:
    """It is the end of the bucket that holds the value: never below, at most a bucket above."""
    percentile = filled(*values).percentile(part)
    needed = part * len(values)
    exact = next(v for n, v in enumerate(sorted(values), 1) if n >= needed - 1e-9)

    assert percentile is not None
    assert exact * (1 - 1e-9) <= percentile <= exact * 1.06 + 0.03


def test_nothing_is_known_without_samples() -> None:
    """An empty histogram has no percentile."""
    assert filled().percentile(0.5) is None


def test_the_past_counts_half_after_a_half_life() -> None:
    """One new sample outweighs one of twelve hours ago, and not two."""
    made = filled(8.0, 8.0)
    made.add(1.0, histogram.CPU.half_life)
    assert made.percentile(0.5) == pytest.approx(1.0, rel=0.1)
    made = filled(8.0, 8.0, 8.0)
    made.add(1.0, histogram.CPU.half_life)
    assert made.percentile(0.5) == pytest.approx(8.0, rel=0.1)


def test_years_do_not_overflow() -> None:
    """A sample a day for ten years leaves finite weights, and the newest counts."""
    made = histogram.Histogram(histogram.CPU, 0.0)
    for day in range(3650):
        made.add(1.0 if day < 3640 else 4.0, day * DAY)

    assert made.percentile(0.5) == pytest.approx(4.0, rel=0.1)


@hypothesis.given(st.lists(st.floats(0, 1e13), min_size=1), st.floats(0, 1e6))
def test_saved_and_revived(values: list[float], elapsed: float) -> None:
    """Through JSON and a restart, percentiles are what they were."""
    made = histogram.Histogram(histogram.MEMORY, 50.0)
    for value in values:
        made.add(value, 50.0)
    body = json.loads(json.dumps(made.save(60.0)))
    back = histogram.Histogram.revive(histogram.MEMORY, body, 7.0, elapsed)

    for part in (0.5, 0.98):
        assert made.percentile(part) == back.percentile(part)


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"age": 1, "weights": []},
        {"age": "x", "weights": {}},
        {"age": -1, "weights": {}},
        {"age": 1, "weights": {"9999": 1}},
        {"age": 1, "weights": {"-1": 1}},
        {"age": 1, "weights": {"x": 1}},
        {"age": 1, "weights": {"1": float("nan")}},
        {"age": 1, "weights": {"1": True}},
    ],
)
def test_damage(body: object) -> None:
    """What is no histogram is refused."""
    with pytest.raises(ValueError, match=r"."):
        histogram.Histogram.revive(histogram.CPU, body, 0.0, 0.0)
