"""The configuration as plain records: what the agent keeps once everything is validated.

Covers: records with the attributes of the sections that they were made of, the JSON types of a
file, the way through a pipe, what differs between two.
Does not cover: what is valid (``schema``), who validates (``examiner``).

Pydantic, the models of all sections and their validator take a quarter of the memory that an agent
without surfaces has. They are needed while a file is read, and these records ever after.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from koordlet.config import places


class Section:
    """One section: frozen, equal to another of the same kind that says the same."""

    __slots__ = ()

    #: Its fields' names here and in the file, and which of them only a start reads, in one order.
    names: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()
    at_start: ClassVar[tuple[bool, ...]] = ()

    def __init__(self, values: Iterable[object]) -> None:
        for name, value in zip(self.names, values, strict=True):
            object.__setattr__(self, name, value)

    def values(self) -> dict[str, Any]:
        """Values by field."""
        return {name: getattr(self, name) for name in self.names}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a section is frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Section) and _identity(self) == _identity(other)

    def __hash__(self) -> int:
        raise TypeError("a section has no hash: there are maps in it")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.values().items())
        return f"{type(self).__name__}({values})"


def _identity(section: Section) -> tuple[type[Section], dict[str, Any]]:
    return type(section), section.values()


@functools.cache
def kind(
    name: str, names: tuple[str, ...], aliases: tuple[str, ...], at_start: tuple[bool, ...]
) -> type[Section]:
    """The class of all sections with this name and these fields."""
    body = {"__slots__": names, "names": names, "aliases": aliases, "at_start": at_start}
    return type(name, (Section,), {**body, "__module__": __name__})


def changes(
    old: Section, new: Section, above: places.Loc = (), *, at_start: bool = False
) -> Iterator[tuple[str, bool]]:
    """Dotted path of each field whose values differ, and whether only a start reads it."""
    for name, alias, starts in zip(new.names, new.aliases, new.at_start, strict=True):
        before, after, loc = getattr(old, name), getattr(new, name), (*above, alias)
        if isinstance(after, Section):
            yield from changes(before, after, loc, at_start=at_start or starts)
        elif before != after:
            yield places.dotted(loc), at_start or starts


def changed(section: Section, loc: Sequence[str], value: object) -> Section:
    """The section with another value at a place, which is named as in the file."""
    at = section.aliases.index(loc[0])
    values = list(section.values().values())
    values[at] = changed(values[at], loc[1:], value) if loc[1:] else value
    return type(section)(values)


def document(value: object) -> Any:
    """Section as JSON types, with the keys of the file."""
    if isinstance(value, Section):
        columns = zip(value.aliases, value.names, strict=True)
        return {alias: document(getattr(value, name)) for alias, name in columns}
    if isinstance(value, Mapping):
        return {key: document(item) for key, item in value.items()}
    return [document(item) for item in value] if isinstance(value, tuple) else value


def packed(value: object) -> dict[str, object]:
    """Section as JSON types for ``unpacked``."""
    kinds: dict[type[Section], int] = {}

    def pack(value: object) -> object:
        if isinstance(value, Section):
            number = kinds.setdefault(type(value), len(kinds))
            return {"kind": number, "values": [pack(getattr(value, name)) for name in value.names]}
        if isinstance(value, Mapping):
            return {"map": {key: pack(each) for key, each in value.items()}}
        return [pack(each) for each in value] if isinstance(value, tuple) else value

    body = pack(value)
    shapes = [
        (section.__name__, section.names, section.aliases, section.at_start) for section in kinds
    ]
    return {"kinds": shapes, "said": body}


def unpacked(parcel: Mapping[str, Any]) -> Any:
    """Section from packed JSON types."""
    kinds = [kind(name, *map(tuple, columns)) for name, *columns in parcel["kinds"]]

    def unpack(value: Any) -> object:
        if isinstance(value, list):
            return tuple(unpack(each) for each in value)
        if not isinstance(value, dict):
            return value
        if "map" in value:
            return {key: unpack(each) for key, each in value["map"].items()}
        return kinds[value["kind"]](unpack(each) for each in value["values"])

    return unpack(parcel["said"])
