"""Moments and durations as Kubernetes objects spell them.

Covers: RFC 3339 in UTC to seconds and back, durations to seconds.
Does not cover: reading a clock, how Go spells a duration (``duration``).
"""

from __future__ import annotations

import datetime as dt
import functools

from koordlet.model import duration as durations

#: The first second of the year 1 and the last of 9999, since 1970: others have no spelling.
FIRST, LAST = -62_135_596_800, 253_402_300_799


def parse(spelled: object) -> float:
    """Seconds since 1970 of a time; ``ValueError`` where it is none. YAML may have read it."""
    if isinstance(spelled, dt.datetime):
        time = spelled
    else:
        try:
            time = dt.datetime.fromisoformat(str(spelled))
        except ValueError:
            raise ValueError(f"not a time as 2026-01-31T12:00:00Z: {str(spelled)[:60]!r}") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=dt.UTC)
    seconds = time.timestamp()
    if not FIRST <= seconds <= LAST:
        # A year that exists at the place that is named, and not in UTC.
        raise ValueError(f"not a time of the years 1 to 9999: {str(spelled)[:60]!r}")
    return seconds


def spell(seconds: float) -> str:
    """A time as objects have it, in whole seconds."""
    return _spelled(int(seconds))


# Whoever writes much writes one second over and over.
@functools.lru_cache(maxsize=8)
def _spelled(seconds: int) -> str:
    time = dt.datetime.fromtimestamp(seconds, dt.UTC)
    # Not strftime, which writes the year 1, Go's zero time, with one digit.
    return time.isoformat().replace("+00:00", "Z")


def duration(spelled: object) -> float:
    """Seconds of a duration in an object; ``ValueError`` for none. YAML may have read a ``0``."""
    text = str(spelled).strip()
    try:
        return durations.parse(text)
    except ValueError:
        raise ValueError(f"not a duration as 1h30m or 24h: {text[:60]!r}") from None
