"""Windows: what samples amount to, and when they are too few."""

from __future__ import annotations

import math

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import window


@pytest.mark.parametrize(
    ("number", "part", "index"),
    [(9, 0.9, 7), (9, 0.5, 3), (10, 0.9, 8), (1, 0.5, 0), (100, 0.95, 94), (300, 0.99, 296)],
)
def test_quantiles_are_the_peers(number: int, part: float, index: int) -> None:
    """The value at ``int(float32(n) * part) - 1``, never below the first."""
    made = window.make([float(n) for n in range(number)], 1, 1)

    assert made is not None
    assert index == made.quantile(part)


def test_half_is_enough() -> None:
    """A window is there from half of it on, and not before."""
    assert window.make([1.0], 30, 60) is not None
    assert window.make([1.0], 29, 60) is None
    assert window.make([], 60, 60) is None


@hypothesis.given(st.lists(st.floats(0, 1e12), min_size=1))
def test_in_between(values: list[float]) -> None:
    """Average and quantiles lie between the smallest and the largest; quantiles do not cross."""
    made = window.make(values, 1, 1)
    assert made is not None
    quantiles = [made.quantile(part) for part in window.REPORTED]

    assert quantiles == sorted(quantiles)
    assert min(values) * (1 - 1e-9) <= made.average <= max(values) * (1 + 1e-9)
    assert max(values) >= quantiles[-1]


numbers = st.lists(st.floats(0, 100), min_size=1, max_size=60)


@hypothesis.given(numbers, st.integers(1, 20), st.sampled_from((0.5, 0.9, 0.99, 1.0)))
def test_quantiles_of_the_newest(values: list[float], length: int, share: float) -> None:
    """As sorting the newest ones would say: the nearest rank, and no sample that is older."""
    kept = window.Recent(length)
    for value in values:
        kept.add(value)
    newest = sorted(values[-length:])

    assert len(newest) == len(kept)
    assert newest[math.ceil(share * len(newest)) - 1] == kept.quantile(share)


def test_nothing_is_known_of_nothing() -> None:
    """Without a sample there is no quantile."""
    assert window.Recent(3).quantile(0.5) is None
