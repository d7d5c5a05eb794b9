"""What a person reads first and last of a demo."""

from __future__ import annotations

from koordlet.cli import welcome


def test_the_last_line() -> None:
    """All is as it was, or how much is not and what to do about it."""
    assert "everything is as it was before" in welcome.farewell(0)
    assert "3 changes could not be undone" in welcome.farewell(3)
    assert "koordlet restore" in welcome.farewell(3)
