"""Untrusted text made safe for a terminal."""

from __future__ import annotations


def escaped(text: str) -> str:
    """Without control characters, of direction as well: a name must not steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
