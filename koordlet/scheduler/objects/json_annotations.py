"""Annotations that hold JSON, which anybody may have written.

Covers: objects and lists in a text, where nonsense is nothing and where it is a mistake.
Does not cover: what they mean (whoever asks), fields of decoded objects (``wire``), annotations
that the agent reads as well (``kubeapi.pod_annotations``, ``kubeapi.node_annotations``).

A structure names the keys of an object as ``kubeapi.shapes.canonical`` takes it: any case of them
is meant, as in Go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import shapes
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body


def body(spelled: object, structure: Any = None) -> Body:
    """The object in a text; empty where there is none."""
    value = decoded(spelled, structure)
    return value if isinstance(value, Mapping) else {}


def bodies(spelled: object, structure: Any = None) -> list[Body]:
    """The objects of a list in a text; empty where there is none."""
    items = decoded(spelled, [structure])
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def meant(annotations: Mapping[str, str], key: str, structure: Any = None) -> Body:
    """The object in an annotation, empty without one; ``BadObjectError`` where it is no object."""
    value = parsed(annotations, key, structure)
    if not isinstance(value, Mapping):
        raise BadObjectError(f"annotation {key} is not a JSON object: {wire.show(value)}")
    return value


def parsed(annotations: Mapping[str, str], key: str, structure: Any = None) -> Any:
    """Whatever is in an annotation; ``BadObjectError`` where that is not JSON."""
    try:
        return shapes.canonical(shapes.parse(annotations.get(key) or "{}"), structure)
    except ValueError as error:
        raise BadObjectError(f"annotation {key} is not JSON: {str(error)[:80]}") from error


def decoded(spelled: object, structure: Any = None) -> Any:
    """Whatever is in a text; ``None`` where that is not JSON."""
    try:
        value = shapes.parse(spelled) if isinstance(spelled, str) and spelled else None
    except ValueError:
        return None
    return shapes.canonical(value, structure)
