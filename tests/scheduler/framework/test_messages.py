"""The sentence of a pod without a node, letter by letter as kube-scheduler writes it."""

from __future__ import annotations

import pytest

from koordlet.scheduler.framework import messages


@pytest.mark.parametrize(
    ("total", "reasons", "sentence"),
    [
        (0, [], "0/0 nodes are available:"),
        (3, ["Too many pods"] * 3, "0/3 nodes are available: 3 Too many pods."),
        # Sorted as text: ten stands before two.
        (
            12,
            ["b"] * 10 + ["a"] * 2,
            "0/12 nodes are available: 10 b, 2 a.",
        ),
    ],
)
def test_histogram(total: int, reasons: list[str], sentence: str) -> None:
    """Each reason with its count; where no node was looked at there is none."""
    assert sentence == messages.histogram(total, reasons)


def test_what_plugins_say_afterwards() -> None:
    """Joined by commas; what says nothing leaves no trace."""
    assert messages.joined("0/1.", "", "a", "", "b") == "0/1. a, b"
    assert messages.joined("0/1.", "") == messages.joined("0/1.") == "0/1."
