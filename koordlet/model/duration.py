"""Durations as Go writes them: ``1m30s``, ``1.5h``, ``-5s``, ``0``.

Covers: reading them into seconds, writing them back. Does not cover: which are allowed where.
"""

from __future__ import annotations

import re
from fractions import Fraction

_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
#: Go counts nanoseconds in 64 bits.
_MOST = Fraction(2**63 - 1, 10**9)
_MAX_TEXT = 100


def parse(text: str) -> float:
    """Seconds; ``ValueError`` for what is no duration. Everything but zero needs a unit."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0.0
    parts = list(_PART.finditer(unsigned)) if len(text) <= _MAX_TEXT else []
    if not parts or "".join(part[0] for part in parts) != unsigned:
        raise ValueError(f"invalid duration {text[:_MAX_TEXT]!r}: write it like 1m30s")
    total = sum((Fraction(number) * _SECONDS[unit] for number, unit in (p.groups() for p in parts)))
    if total > _MOST:
        raise ValueError(f"invalid duration {text[:_MAX_TEXT]!r}: more than 292 years")
    return float(-total if text[0] == "-" else total)


def text(seconds: float) -> str:
    """As Go writes it: ``1m30s``, ``1.5s``, ``0s``."""
    whole, sign = abs(seconds), "-" if seconds < 0 else ""
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    tail = f"{left:.9f}".rstrip("0").rstrip(".")
    if hours:
        return f"{sign}{hours:.0f}h{minutes:.0f}m{tail}s"
    return f"{sign}{minutes:.0f}m{tail}s" if minutes else f"{sign}{tail}s"
