"""Moments and durations as Kubernetes objects spell them.

Covers: RFC 3339 in UTC to seconds and back, Go's durations to seconds.
Does not cover: reading a clock.
"""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction

#: The last second of the year 9999, since 1970: later ones have no spelling.
LAST = 253_402_300_799

_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
#: Go keeps nanoseconds in 64 bits: nothing longer than about 292 years.
_LONGEST = 2**63 / 1e9


def parse(spelled: object) -> float:
    """Seconds since 1970 of a time; ``ValueError`` where it is none. YAML may have read it."""
    if isinstance(spelled, dt.datetime):
        found = spelled
    else:
        try:
            found = dt.datetime.fromisoformat(str(spelled))
        except ValueError:
            msg = f"not a time as 2026-01-31T12:00:00Z: {str(spelled)[:60]!r}"
            raise ValueError(msg) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=dt.UTC)
    return found.timestamp()


def spell(seconds: float) -> str:
    """A time as objects have it, in whole seconds."""
    found = dt.datetime.fromtimestamp(int(seconds), dt.UTC)
    return found.strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(spelled: object) -> float:
    """Seconds of ``1h30m``, ``0``, ``-5s``; ``ValueError`` where it is no duration of Go's."""
    text = str(spelled).strip()
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0" and not isinstance(spelled, bool):
        return 0.0
    total, at = Fraction(0), 0
    for part in _PART.finditer(rest[:100]):
        if part.start() != at:
            break
        total += Fraction(part[1]) * _UNITS[part[2]]
        at = part.end()
    if not rest or at != len(rest) or float(total) > _LONGEST:
        msg = f"not a duration as 1h30m or 24h: {text[:60]!r}"
        raise ValueError(msg)
    return sign * float(total)
