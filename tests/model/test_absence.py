"""What is not there, in the words that conditions and messages use."""

from __future__ import annotations

from koordlet.model import absence


def test_a_gap_reads_as_a_sentence() -> None:
    """Conditions print it as it stands, so it must not look like code."""
    gap = absence.Unsupported("io.weight", "this kernel has no io.weight")

    assert "io.weight: this kernel has no io.weight" == str(gap) == f"{gap}"
