"""Pressure files, as kernels print them and as they do not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.host.counters import procstat

SOME = b"some avg10=1.50 avg60=0.25 avg300=0.00 total=2500000\n"
FULL = b"full avg10=0.50 avg60=0.00 avg300=0.00 total=1000000\n"


def test_both_lines() -> None:
    """Percents as they are, stall times in seconds."""
    assert procstat.pressure(SOME + FULL) == (1.5, 0.25, 0, 2.5, 0.5, 0, 0, 1)


def test_without_full() -> None:
    """An older kernel's file of the CPU: what it does not say is not known."""
    numbers = procstat.pressure(SOME)

    assert numbers[:4] == (1.5, 0.25, 0, 2.5)
    assert all(map(math.isnan, numbers[4:]))


@pytest.mark.parametrize("text", [b"", b"some", SOME[:30], FULL, b"some avg10=x avg60=0 avg300=0"])
def test_what_is_no_pressure(text: bytes) -> None:
    """It is refused."""
    with pytest.raises(ValueError, match="not a pressure file"):
        procstat.pressure(text)


@given(st.integers(0, len(SOME + FULL)))
def test_a_text_that_ends_early(end: int) -> None:
    """It is eight numbers or refused."""
    try:
        numbers = procstat.pressure((SOME + FULL)[:end])
    except ValueError:
        return
    assert len(numbers) == 8
