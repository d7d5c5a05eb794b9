"""The pod annotation ``node.koordinator.sh/resctrl``: a group for one pod. Pure.

Covers: reading its JSON, what is wrong with it. Does not cover: the group (``resctrl``).

``{"llc": {"schemata": {"range": [0, 50]}, "schemataPerCache": [{"cacheID": 0, "range": [0, 30]}]},
"mb": {"schemata": {"percent": 20}, "schemataPerCache": [{"cacheID": 0, "percent": 50}]}}``; keys
match exactly first, then without regard to case, as Go reads JSON. Ours beside the peer's:
``{"llc": {"ways": 4}}``, so many ways of every cache that nobody else of ours has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeVar

from koordlet.model.record import dataclass

KEY = "node.koordinator.sh/resctrl"

Range = tuple[int, int]
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Requested ways and bandwidth of a group: everywhere, and in single caches."""

    ways: Range | None = None
    #: So many ways for nobody else: everywhere, and in single caches.
    alone: int | None = None
    alone_of: Mapping[int, int] = field(default_factory=dict)
    ways_of: Mapping[int, Range] = field(default_factory=dict)
    percent: int | None = None
    percent_of: Mapping[int, int] = field(default_factory=dict)

    def range_in(self, cache: int) -> Range | None:
        """The ways in one cache."""
        return self.ways_of.get(cache, self.ways)

    def alone_in(self, cache: int) -> int | None:
        """The number of ways of one cache that are for nobody else."""
        return self.alone_of.get(cache, self.alone)

    def percent_in(self, cache: int) -> int | None:
        """The bandwidth of one cache's memory traffic."""
        return self.percent_of.get(cache, self.percent)


def parse(text: str) -> tuple[Wish, tuple[str, ...]]:
    """Parse the annotation: the wish and its problems; one bad part does not cost the others."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Wish(), (f"not JSON: {error}",)
    if not isinstance(whole, dict):
        return Wish(), ("not an object",)
    problems: list[str] = []
    ways, ways_of = _part(whole, "llc", "range", _range, problems)
    alone = _alone(whole, problems)
    percent, percent_of = _part(whole, "mb", "percent", _percent, problems)
    wish = Wish(ways=ways, alone=alone, ways_of=ways_of, percent=percent, percent_of=percent_of)
    if not problems and wish == Wish():
        problems.append("neither llc nor mb")
    return wish, tuple(problems)


def _part(
    whole: Mapping[str, object],
    name: str,
    key: str,
    read: Callable[[object], ValueT | None],
    problems: list[str],
) -> tuple[ValueT | None, dict[int, ValueT]]:
    part = _get(whole, name)
    if part is None:
        return None, {}
    if not isinstance(part, dict):
        problems.append(f"{name} is not an object")
        return None, {}
    everywhere = None
    common = _get(part, "schemata")
    if common is not None:
        everywhere = read(_get(common, key) if isinstance(common, dict) else common)
        if everywhere is None:
            problems.append(f"{name}.schemata: {common!r} has no valid {key}")
    single: dict[int, ValueT] = {}
    listed = _get(part, "schemataPerCache")
    for entry in listed if isinstance(listed, list) else [listed] if listed is not None else []:
        cache = _get(entry, "cacheID") if isinstance(entry, dict) else None
        value = read(_get(entry, key)) if isinstance(entry, dict) else None
        if _whole(cache) and isinstance(cache, int) and value is not None and cache not in single:
            single[cache] = value
        else:
            problems.append(f"{name}.schemataPerCache: {entry!r}: no unique cacheID, or no {key}")
    return everywhere, single


def _alone(whole: Mapping[str, object], problems: list[str]) -> int | None:
    part = _get(whole, "llc")
    ways = _get(part, "ways") if isinstance(part, dict) else None
    if ways is None:
        return None
    if not _whole(ways) or not isinstance(ways, int) or ways < 1:
        problems.append(f"llc.ways: {ways!r} is not a number of ways")
        return None
    return ways


def _get(where: Mapping[str, object], key: str) -> object:
    if key in where:
        return where[key]
    return next((value for name, value in where.items() if name.lower() == key.lower()), None)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _range(value: object) -> Range | None:
    if isinstance(value, list) and len(value) == 2 and all(map(_whole, value)):
        return (value[0], value[1])
    return None


def _percent(value: object) -> int | None:
    return value if _whole(value) and isinstance(value, int) else None
