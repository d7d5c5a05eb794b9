"""How long things took."""

from __future__ import annotations

import functools

import hypothesis
from hypothesis import strategies as st

from koordlet.model import spread

BOUNDS = (0.25, 1.0, 4.0)


def test_a_bound_belongs_to_its_bucket() -> None:
    """Each value is in every bucket that it is not above, and in the last one always."""
    buckets = functools.reduce(
        spread.Spread.with_one, (0.25, 0.5, 4.0, 9.0), spread.Spread.empty(BOUNDS)
    )

    assert (buckets.counts, buckets.total) == ((1, 2, 3, 4), 13.75)


@hypothesis.given(st.lists(st.floats(0, 10), max_size=8))
def test_buckets_only_rise(values: list[float]) -> None:
    """From bound to bound, up to the number of all."""
    buckets = functools.reduce(spread.Spread.with_one, values, spread.Spread.empty(BOUNDS))

    assert sorted(buckets.counts) == list(buckets.counts)
    assert len(values) == buckets.counts[-1]
