"""The newest samples of one number."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from koordlet.history import recent

numbers = st.lists(st.floats(0, 100), min_size=1, max_size=60)


@given(numbers, st.integers(1, 20), st.sampled_from((0.5, 0.9, 0.99, 1.0)))
def test_quantiles_of_the_newest(values: list[float], length: int, share: float) -> None:
    """As sorting the newest ones would say: the nearest rank, and no sample that is older."""
    kept = recent.Recent(length)
    for one in values:
        kept.add(one)
    newest = sorted(values[-length:])

    assert len(newest) == len(kept)
    assert newest[math.ceil(share * len(newest)) - 1] == kept.quantile(share)


def test_nothing_is_known_of_nothing() -> None:
    """Without a sample there is no quantile."""
    assert recent.Recent(3).quantile(0.5) is None
