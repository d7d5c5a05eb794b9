"""Quantities in every spelling, exact, rounded up, and everything else refused."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import quantity


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("1", 1000),
        ("0.5", 500),
        (".5", 500),
        ("1.", 1000),
        ("100m", 100),
        ("0.5m", 1),
        ("1n", 1),
        ("1u", 1),
        ("-0.5m", 0),
        ("-1500m", -1500),
        ("+2", 2000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1E", 2**63 - 1),
        ("1e-3", 1),
        ("2Ki", 2_048_000),
        ("1k", 1_000_000),
        (1.5, 1500),
        (3, 3000),
        ("1e999", 2**63 - 1),
        ("-1e999", -(2**63) + 1),
        (" 1 ", 1000),
    ],
)
def test_thousandths(text: str | float, milli: int) -> None:
    """Every spelling has its exact value in thousandths, rounded up, clamped to 64 bits."""
    assert milli == quantity.milli(text)


@pytest.mark.parametrize("text", ["1Ki", "1024", "1.0Ki", "1023.5", "1024e0"])
def test_units(text: str) -> None:
    """Whole units are rounded up."""
    assert quantity.units(text) == 1024


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "1 2", "1K", "1ki", "m", ".", "1e", "1e1.5", "0x10", "1,5", "\u0661"),
        *("nan", "inf", "1" * 65, "1e9999", "--1", "1mm", "1Kim"),
    ],
)
def test_what_is_none_is_refused(text: str) -> None:
    """Anything else is an error that shows a bounded part of what was found."""
    with pytest.raises(ValueError, match="not a quantity") as refused:
        quantity.milli(text)
    assert len(str(refused.value)) < 100


@hypothesis.given(text=st.text(max_size=20) | st.from_regex(r"[0-9.eEkKMGTPimun+-]{0,12}"))
def test_no_text_breaks_it(text: str) -> None:
    """Any text is a number within 64 bits or a ``ValueError``."""
    try:
        value = quantity.milli(text)
    except ValueError:
        return
    assert abs(value) < 2**63
    assert quantity.units(text) <= max(value, 0)


@hypothesis.given(value=st.integers(0, 10**12))
def test_numbers_come_back(value: int) -> None:
    """A number of thousandths written with its suffix is that number."""
    assert value == quantity.milli(f"{value}m")
    assert -(-value // 1000) == quantity.units(f"{value}m")
