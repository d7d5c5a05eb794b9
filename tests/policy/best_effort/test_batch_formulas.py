"""The formulas of batch and mid resources over any sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import nodeslo
from koordlet.policy.best_effort import batch_formulas
from koordlet.policy.best_effort.batch_formulas import Sums

NAMES = [field.name for field in dataclasses.fields(Sums)]


@hypothesis.given(
    numbers=st.lists(st.integers(0, 10**6), min_size=9, max_size=9),
    more=st.integers(0, 10**6),
    how=st.sampled_from(["usage", "request", "maxUsageRequest"]),
)
def test_more_use_never_offers_more(numbers: Sequence[int], more: int, how: str) -> None:
    """Bounded by the base, and monotone in what others use and ask for."""
    sums = Sums(**dict(zip(NAMES, numbers, strict=True)))
    strategy = dataclasses.replace(nodeslo.DEFAULTS.colocation, memory_calculate_policy=how)
    offered = batch_formulas.offered(sums, "memory", strategy, None)[0]
    for name in ("reserved", "system", "used", "requested", "either"):
        worse = dataclasses.replace(sums, **{name: getattr(sums, name) + more})
        assert batch_formulas.offered(worse, "memory", strategy, None)[0] <= offered
    assert 0 <= offered <= sums.base


@pytest.mark.parametrize(
    ("name", "fixed", "most", "mid"),
    [
        pytest.param("cpu", 30, 100, 4800, id="CPU"),
        pytest.param("memory", 30, 100, 4800, id="memory"),
        pytest.param("cpu", 30, 20, 3200, id="the threshold caps it"),
        pytest.param("cpu", None, 100, 0, id="nothing"),
        pytest.param("cpu", 250, 100, 16000, id="more than there is"),
    ],
)
def test_static_mid_is_a_fixed_part(name: str, fixed: int | None, most: int, mid: int) -> None:
    """Whatever prod asked for and uses."""
    sums = Sums(**{**dict.fromkeys(NAMES, 15000), "base": 16000})
    settings: dict[str, Any] = {
        "mid_reclaim_mode": "static",
        "mid_cpu_threshold_percent": most,
        "mid_memory_threshold_percent": most,
        f"mid_static_{name}_reserved_percent": fixed,
    }
    strategy = dataclasses.replace(nodeslo.DEFAULTS.colocation, **settings)

    assert mid == batch_formulas.mid(sums, name, strategy)[0]
