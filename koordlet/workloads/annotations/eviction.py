"""Consent to eviction: one label, and the annotations of policy and priority.

Rules, as the peer has them:
1. ``eviction-enabled`` is consent only as exactly ``true``.
2. A missing policy allows every feature. One that is empty, or no JSON list of texts, allows none:
   whoever wrote something wanted less than everything.
3. A priority that is no int32 is zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from koordlet.model import wishes
from koordlet.workloads import shapes

ENABLED = "koordinator.sh/eviction-enabled"
POLICY = "koordinator.sh/eviction-policy"
PRIORITY = "koordinator.sh/eviction-priority"

_INT = re.compile(r"[+-]?[0-9]{1,10}\Z", re.ASCII)
_INT32 = 2**31


def decode(
    labels: Mapping[str, str], notes: Mapping[str, str], problems: list[str]
) -> wishes.Eviction:
    """Eviction settings from label and annotations together."""
    return wishes.Eviction(
        enabled=labels.get(ENABLED) == "true",
        features=_features(notes.get(POLICY), problems),
        priority=int32(notes, PRIORITY, problems) or 0,
    )


def _features(text: str | None, problems: list[str]) -> frozenset[str] | None:
    if text is None:
        return None
    try:
        listed = shapes.parse(text) if text else []
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            problems.append(
                f"annotation {POLICY}: expected a list of texts; the pod is not evicted"
            )
            return frozenset()
        return frozenset(listed)
    except ValueError as error:
        problems.append(f"annotation {POLICY}: {error}; the pod is not evicted")
        return frozenset()


def int32(texts: Mapping[str, str], key: str, problems: list[str]) -> int | None:
    """Parse a whole number; ``None`` if it is absent or invalid."""
    text = texts.get(key)
    if text is None:
        return None
    found = int(text) if _INT.match(text) else _INT32
    if -_INT32 <= found < _INT32:
        return found
    problems.append(f"{key}: {shapes.shown(text)} is not a 32-bit number")
    return None
