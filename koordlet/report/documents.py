"""JSON documents: our values in one spelling, and the parts of what somebody else wrote. Pure.

Covers: keys in camel case, sets of CPUs and members of enums as texts, tuples as lists; objects and
lists of objects within a document, whatever stands there.
Does not cover: which attributes a document has (``node_json``, ``plan_json``, …).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.model import cpuset

Document = Mapping[str, Any]


def fields(source: object, names: str) -> dict[str, object]:
    """The named attributes, in this order; ``key=attribute`` where the key is another word."""
    return {key: _plain(getattr(source, attribute)) for key, attribute in _pairs(names)}


def each(several: Iterable[object], names: str) -> list[dict[str, object]]:
    """The same of several."""
    return [fields(source, names) for source in several]


@functools.cache
def _pairs(names: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for word in names.split():
        key, _, attribute = word.rpartition("=")
        first, *rest = attribute.split("_")
        pairs.append((key or first + "".join(map(str.title, rest)), attribute))
    return tuple(pairs)


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, cpuset.CPUSet):
        return str(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def part(body: object, *names: str) -> Document:
    """An object within a document, name by name; empty where it is none."""
    for name in names:
        body = body.get(name) if isinstance(body, Mapping) else None
    return body if isinstance(body, Mapping) else {}


def rows(body: object, name: str) -> list[Document]:
    """The objects of a list within a document."""
    several = body.get(name) if isinstance(body, Mapping) else None
    return [row for row in several if isinstance(row, Mapping)] if isinstance(several, list) else []
