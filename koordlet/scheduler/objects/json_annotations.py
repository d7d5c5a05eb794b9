"""Annotations that hold JSON, which anybody may have written.

Covers: objects and lists in a text, where nonsense is nothing and where it is a mistake.
Does not cover: what they mean (whoever asks), fields of decoded objects (``wire``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body


def body(spelled: object) -> Body:
    """The object in a text; empty where there is none."""
    found = _decoded(spelled)
    return found if isinstance(found, Mapping) else {}


def bodies(spelled: object) -> list[Body]:
    """The objects of a list in a text; empty where there is none."""
    found = _decoded(spelled)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def meant(annotations: Mapping[str, str], key: str) -> Body:
    """The object in an annotation, empty without one; ``BadObjectError`` where it is no object."""
    spelled = annotations.get(key)
    if not spelled:
        return {}
    try:
        found = json.loads(spelled)
    except (ValueError, RecursionError) as error:
        raise BadObjectError(f"annotation {key} is not JSON: {str(error)[:80]}") from error
    if not isinstance(found, Mapping):
        raise BadObjectError(f"annotation {key} is not a JSON object: {wire.show(found)}")
    return found


def _decoded(spelled: object) -> Any:
    try:
        return json.loads(spelled) if isinstance(spelled, str) and spelled else None
    except (ValueError, RecursionError):
        return None
