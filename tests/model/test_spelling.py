"""Amounts are printed as Kubernetes prints them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import quantity, spelling


def test_spellings() -> None:
    """CPU in thousandths or whole, bytes with the largest suffix that is exact."""
    assert spelling.resources({"cpu": 500, "memory": 800 << 20}) == {
        "cpu": "500m",
        "memory": "800Mi",
    }
    assert spelling.resources({"cpu": 6000, "memory": 20 << 30}) == {"cpu": "6", "memory": "20Gi"}
    assert spelling.amount(800_000_000, decimal=True) == "800M"
    assert spelling.amount(0) == "0"
    assert spelling.amount(1025) == "1025"


@given(st.integers(0, 2**60), st.booleans())
def test_what_is_printed_is_read_back(units: int, decimal: bool) -> None:
    """Exactly."""
    assert quantity.units(spelling.amount(units, decimal=decimal)) == units
    assert quantity.milli(spelling.cpu(units)) == units
