"""Amounts are integers in one unit for each name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import resources


def test_units() -> None:
    """CPU in thousandths, the rest as it is; the older name is the same resource."""
    problems: list[str] = []
    amounts = resources.read(
        {"cpu": "1.5", "memory": "1Ki", "koordinator.sh/batch-cpu": "1500", "nvidia.com/gpu": 2},
        problems,
        "here",
    )

    assert amounts == {"cpu": 1500, "memory": 1024, resources.BATCH_CPU: 1500, "nvidia.com/gpu": 2}
    assert problems == []


def test_the_current_name_wins_over_the_older() -> None:
    """Whatever their order."""
    both = {resources.BATCH_CPU: "1", "koordinator.sh/batch-cpu": "2"}

    assert resources.read(both, [], "") == {resources.BATCH_CPU: 1}
    assert resources.read(dict(reversed(both.items())), [], "") == {resources.BATCH_CPU: 1}


@pytest.mark.parametrize("text", ["", "-1", "x", True, None, [], {}, float("nan")])
def test_an_entry_that_is_no_amount_costs_itself(text: object) -> None:
    """And names where it is."""
    problems: list[str] = []

    assert resources.read({"cpu": text, "memory": 1}, problems, "here") == {"memory": 1}
    assert [problem.startswith(("here.cpu: ", "here.cpu is ")) for problem in problems] == [True]


def test_printing_back() -> None:
    """Whole cores without a suffix."""
    assert resources.texts({"cpu": 2000, "memory": 1024}) == {"cpu": "2", "memory": "1024"}
    assert resources.texts({"cpu": 1500}) == {"cpu": "1500m"}


def test_sums_and_peaks() -> None:
    """By name."""
    parts = ({"a": 1, "b": 5}, {"a": 3})

    assert resources.total(parts) == {"a": 4, "b": 5}
    assert resources.most(parts) == {"a": 3, "b": 5}


def test_the_canonical_form_has_the_largest_suffix() -> None:
    """CPU in thousandths or whole, bytes in powers of two, some names in powers of ten."""
    amounts = {"cpu": 500, "memory": 800 << 20, "disk": 800_000_000, "none": 0, "odd": 1025}

    assert resources.canonical(amounts, ["disk"]) == {
        "cpu": "500m",
        "memory": "800Mi",
        "disk": "800M",
        "none": "0",
        "odd": "1025",
    }


@given(st.integers(0, 2**60), st.booleans())
def test_a_canonical_amount_is_read_back(amount: int, decimal: bool) -> None:
    """Exactly."""
    amounts = {"cpu": amount, "memory": amount}
    texts = resources.canonical(amounts, ["memory"] if decimal else [])

    assert resources.read(texts, [], "here") == amounts
