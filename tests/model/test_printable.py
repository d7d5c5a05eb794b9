"""Names that would steer a terminal."""

from __future__ import annotations

import pytest

from koordlet.model import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202egnp", r"\u202egnp"),
        ("\x9b31m", r"\x9b31m"),
        ("\udcff", r"\udcff"),
        ("größe ✓", "größe ✓"),
    ],
)
def test_escaped(text: str, shown: str) -> None:
    """Control characters and halves of characters are written out; letters of any script stay."""
    assert shown == printable.escaped(text)
