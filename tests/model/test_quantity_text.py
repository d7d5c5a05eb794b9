"""The canonical spelling of quantities."""

from __future__ import annotations

import pytest

from koordlet.model import quantity, quantity_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("100Mi", "100Mi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1500M", "1500M"),
        ("0.5", "500m"),
        ("1e3", "1e3"),
        ("12e5", "1200e3"),
        ("0", "0"),
        ("0.5Ki", "512"),
    ],
)
def test_canonical(text: str, shown: str) -> None:
    """No fraction, the largest suffix that leaves a whole number, the family of the text."""
    assert shown == quantity_text.canonical(text)
    assert quantity.exact(text) == quantity.exact(shown)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1572864000, "1500Mi"),
        (1023, "1023"),
        (1000, "1k"),
        (1025, "1025"),
        (0, "0"),
        (2**60, "1Ei"),
    ],
)
def test_bytes(value: int, shown: str) -> None:
    """In binary form; what is less than the smallest binary suffix is in decimal form."""
    assert shown == quantity_text.binary(value)


@pytest.mark.parametrize(
    ("value", "shown"), [(1572864, "1572864"), (1500000, "1500k"), (2000, "2k"), (7, "7")]
)
def test_counts(value: int, shown: str) -> None:
    """In decimal form."""
    assert shown == quantity_text.decimal(value)
