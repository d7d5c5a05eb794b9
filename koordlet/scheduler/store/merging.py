"""Merge patches as pure functions on JSON values.

Covers: JSON merge patch, strategic merge patch. Does not cover: server-side apply (``ownership``),
which fields a patch may change at all (``writing``).

Nothing that is passed in is changed; what a patch does not touch is shared with the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import refusals

Keys = Mapping[str, tuple[str, ...]]

_DELETE_FROM = "$deleteFromPrimitiveList/"
#: In the place of an element that a patch deletes.
_GONE = object()


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386: mappings field by field, null removes, anything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merge(result.get(field), value)
    return result


def strategic(target: Any, patch: Any, keys: Keys) -> Any:
    """As ``merge``, but lists with keys are merged element by element.

    Directives of the API machinery: ``$patch`` (``delete``, ``replace``, ``merge``),
    ``$retainKeys``, ``$deleteFromPrimitiveList/…``; ``$setElementOrder/…`` changes no content and
    is passed over.
    """
    if not isinstance(patch, Mapping):
        return patch
    directive = patch.get("$patch", "merge")
    plain = {field: value for field, value in patch.items() if field != "$patch"}
    if directive == "replace":
        return plain
    if directive == "delete":
        return {}
    if directive != "merge":
        raise refusals.Malformed(f"unknown directive $patch: {directive}")
    result = dict(target) if isinstance(target, Mapping) else {}
    retained = plain.pop("$retainKeys", None)
    if retained is not None:
        result = {field: value for field, value in result.items() if field in retained}
    for field, value in plain.items():
        _put(result, field, value, keys)
    return result


def _put(result: dict[str, Any], field: str, value: Any, keys: Keys) -> None:
    if field.startswith("$setElementOrder/"):
        return
    if field.startswith(_DELETE_FROM):
        name = field.removeprefix(_DELETE_FROM)
        result[name] = [item for item in result.get(name) or () if item not in value]
    elif value is None:
        result.pop(field, None)
    elif field == "finalizers" and isinstance(value, list):
        present = result.get(field) or []
        result[field] = [*present, *(item for item in value if item not in present)]
    elif field in keys and isinstance(value, list):
        result[field] = _elements(result.get(field), value, keys[field], keys)
    else:
        result[field] = strategic(result.get(field), value, keys)


def _elements(target: Any, patch: Sequence[Any], names: tuple[str, ...], keys: Keys) -> list[Any]:
    """Merge a list whose elements are identified by keys."""
    directives = [item.get("$patch") if isinstance(item, Mapping) else None for item in patch]
    if "replace" in directives:
        return [item for item in patch if not (isinstance(item, Mapping) and "$patch" in item)]
    result: list[Any] = list(target) if isinstance(target, list) else []
    places: dict[tuple[Any, ...], int] = {}
    for place, element in enumerate(result):
        places.setdefault(identity(element, names), place)
    for element, directive in zip(patch, directives, strict=True):
        wanted = identity(element, names)
        known = places.get(wanted)
        if directive == "delete":
            if known is not None:
                result[places.pop(wanted)] = _GONE
        elif known is None:
            places[wanted] = len(result)
            result.append(strategic({}, element, keys))
        else:
            result[known] = strategic(result[known], element, keys)
    return [element for element in result if element is not _GONE]


def identity(element: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The key values of a list element; ``Malformed`` where one is missing."""
    if not isinstance(element, Mapping):
        raise refusals.Malformed(f"an element of a list with the key {names[0]!r} is not an object")
    # A protocol that nobody wrote is TCP, the only key with a default.
    values = tuple(element.get(name, "TCP" if name == "protocol" else None) for name in names)
    if values[0] is None or any(isinstance(value, Mapping | list) for value in values):
        raise refusals.Malformed(f"an element of a list lacks its key {names[0]!r}")
    return values
