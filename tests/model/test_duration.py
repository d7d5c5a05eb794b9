"""Durations as Go writes them."""

from __future__ import annotations

import pytest

from koordlet.model import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1m30s", 90),
        ("0", 0),
        ("0s", 0),
        ("-5s", -5),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("300ms", 0.3),
        ("1h1m1s", 3661),
        ("+2m", 120),
    ],
)
def test_reads(text: str, seconds: float) -> None:
    """Numbers with units, one after the other; zero needs none."""
    assert seconds == duration.parse(text)


@pytest.mark.parametrize("text", ["", "30", "30mins", "s", "1 m", "1m-3s", "1e3s", "99999999h"])
def test_refuses(text: str) -> None:
    """What Go refuses: no unit, unknown units, blanks, signs inside, more than 292 years."""
    with pytest.raises(ValueError, match="invalid duration"):
        duration.parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "1m30s"), (0, "0s"), (300, "5m0s"), (3600, "1h0m0s"), (0.5, "0.5s")]
)
def test_writes(seconds: float, text: str) -> None:
    """Hours and minutes only where there are some."""
    assert text == duration.text(seconds)
