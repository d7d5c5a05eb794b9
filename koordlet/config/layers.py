"""Layers of configuration and their precedence.

Covers: the order of the sources, merging, the origin of every value.
Does not cover: reading a source (``file_source``, ``environment``), validation (``schema``).

Sections and maps are merged key by key; lists and single values are replaced whole.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from koordlet.config import places, sourced
from koordlet.model.record import dataclass


class Name(enum.IntEnum):
    """Every source, weakest first: the order is the precedence."""

    FILE = 1
    ENVIRONMENT = 2
    FLAGS = 3


@dataclass(slots=True)
class Layer:
    """Values of one source, each with its location."""

    name: Name
    data: dict[str, Any] = field(default_factory=dict)
    #: Where each value stands, as shown to the operator.
    origins: dict[places.Loc, str] = field(default_factory=dict)

    def put(self, loc: places.Loc, value: object, origin: str) -> None:
        """Set one value, making the sections above it."""
        section = self.data
        for key in loc[:-1]:
            section = section.setdefault(str(key), {})
        section[str(loc[-1])] = value
        self.origins[loc] = origin


@dataclass(slots=True)
class Merged:
    """The sum of all layers."""

    data: dict[str, Any] = field(default_factory=dict)
    origins: dict[places.Loc, str] = field(default_factory=dict)

    def origin(self, loc: places.Loc) -> str:
        """Origin of this value, or of the text that contains it (a map as a flag spells it)."""
        value: object = self.data
        for depth, key in enumerate(loc):
            value = value.get(key) if isinstance(value, dict) else None
            if isinstance(value, str):
                return self.origins.get(loc[: depth + 1], sourced.BUILT_IN)
        return self.origins.get(loc, sourced.BUILT_IN)


def merge(given: Iterable[Layer]) -> Merged:
    """Pile the layers up, weakest first."""
    merged = Merged()
    for layer in sorted(given, key=lambda layer: layer.name):
        _overlay(merged, layer, merged.data, layer.data, ())
    return merged


def leaves(data: object, loc: places.Loc = ()) -> Iterator[tuple[places.Loc, object]]:
    """Every single value, empty list and empty map below a location."""
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from leaves(value, (*loc, str(key)))
    elif isinstance(data, list | tuple) and data:
        for index, value in enumerate(data):
            yield from leaves(value, (*loc, index))
    else:
        yield loc, data


def _overlay(
    merged: Merged, layer: Layer, into: dict[str, Any], new: dict[str, Any], loc: places.Loc
) -> None:
    for key, value in new.items():
        here = (*loc, key)
        old = into.get(key)
        if isinstance(old, dict) and value is None:
            # An empty section says nothing; it does not take back what a weaker layer said.
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            _overlay(merged, layer, old, value, here)
            continue
        for stale in [origin for origin in merged.origins if origin[: len(here)] == here]:
            del merged.origins[stale]
        if isinstance(value, dict):
            into[key] = {}
            _overlay(merged, layer, into[key], value, here)
            continue
        into[key] = value
        for leaf, _ in leaves(value, here):
            merged.origins[leaf] = layer.origins.get(
                leaf, layer.origins.get(here, sourced.BUILT_IN)
            )
