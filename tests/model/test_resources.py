"""Amounts are integers in one unit for each name."""

from __future__ import annotations

import pytest

from koordlet.model import resources


def test_units() -> None:
    """CPU in thousandths, the rest as it is; the older name is the same resource."""
    problems: list[str] = []
    found = resources.read(
        {"cpu": "1.5", "memory": "1Ki", "koordinator.sh/batch-cpu": "1500", "nvidia.com/gpu": 2},
        problems,
        "here",
    )

    assert {"cpu": 1500, "memory": 1024, resources.BATCH_CPU: 1500, "nvidia.com/gpu": 2} == found
    assert [] == problems


def test_the_current_name_wins_over_the_older() -> None:
    """Whatever their order."""
    both = {resources.BATCH_CPU: "1", "koordinator.sh/batch-cpu": "2"}

    assert {resources.BATCH_CPU: 1} == resources.read(both, [], "")
    assert {resources.BATCH_CPU: 1} == resources.read(dict(reversed(both.items())), [], "")


@pytest.mark.parametrize("text", ["", "-1", "x", True, None, [], {}, float("nan")])
def test_an_entry_that_is_no_amount_costs_itself(text: object) -> None:
    """And names where it is."""
    problems: list[str] = []

    assert {"memory": 1} == resources.read({"cpu": text, "memory": 1}, problems, "here")
    assert [True] == [one.startswith("here: cpu: ") for one in problems]


def test_printing_back() -> None:
    """Whole cores without a suffix."""
    assert {"cpu": "2", "memory": "1024"} == resources.texts({"cpu": 2000, "memory": 1024})
    assert {"cpu": "1500m"} == resources.texts({"cpu": 1500})


def test_sums_and_peaks() -> None:
    """By name."""
    parts = ({"a": 1, "b": 5}, {"a": 3})

    assert {"a": 4, "b": 5} == resources.total(parts)
    assert {"a": 3, "b": 5} == resources.most(parts)
