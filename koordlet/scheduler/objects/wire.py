"""Reading decoded JSON that may be anything.

Covers: a field of the expected shape, or an error that names the field. Does not cover: what
fields an object has. A missing field and ``null`` are the same, as in Go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from koordlet.model import moment, quantity

Body = Mapping[str, Any]
_T = TypeVar("_T")

#: The API server's own bounds: a value, and a prefix with "/" and a name.
_LABEL_VALUE = 63
_LABEL_KEY = 253 + 1 + 63
#: What JSON makes comes first: an abstract class asks many more questions.
_MAPPING, _SEQUENCE = (dict, Mapping), (list, tuple)


class BadObjectError(ValueError):
    """One object cannot be used; the text says which field and why."""


def mapping(body: Body, key: str) -> Body:
    """A field that is an object; empty where it is missing."""
    field = body.get(key)
    if field is None:
        return {}
    if not isinstance(field, _MAPPING):
        raise BadObjectError(f"{key} is not an object: {show(field)}")
    return field


def instant(spelled: object, where: str) -> float | None:
    """A moment, in seconds since 1970; ``None`` where it is missing."""
    if spelled is None:
        return None
    try:
        return moment.parse(spelled)
    except ValueError as error:
        raise BadObjectError(f"{where}: {error}") from error


def sequence(body: Body, key: str) -> Sequence[Any]:
    """A field that is a list; empty where it is missing."""
    field = body.get(key)
    if field is None:
        return ()
    if not isinstance(field, _SEQUENCE):
        raise _no_list(key, field)
    return field


def _no_list(key: str, field: object) -> BadObjectError:
    return BadObjectError(f"{key} is not a list: {show(field)}")


def bodies(body: Body, key: str) -> list[Body]:
    """A field that is a list of objects."""
    field = body.get(key)
    if field is None:
        return []  # of a pod's fields most are missing
    if not isinstance(field, _SEQUENCE):
        raise _no_list(key, field)
    for item in field:
        if not isinstance(item, _MAPPING):
            raise BadObjectError(f"{key} has an element that is not an object: {show(item)}")
    return list(field)


def each(body: Body, key: str, decode: Callable[[Body], _T]) -> tuple[_T, ...]:
    """The elements of a list of objects, decoded; an error names the element."""
    decoded = []
    for place, item in enumerate(bodies(body, key)):
        try:
            decoded.append(decode(item))
        except BadObjectError as error:
            raise BadObjectError(f"{key}[{place}].{error}") from error
    return tuple(decoded)


def part(body: Body, key: str, decode: Callable[[Body], _T]) -> _T:
    """A field that is an object, decoded; an error names the field."""
    field = mapping(body, key)
    try:
        return decode(field)
    except BadObjectError as error:
        raise BadObjectError(f"{key}.{error}") from error


def entries(body: Body, key: str, decode: Callable[[Body], _T]) -> dict[str, _T]:
    """A field that maps names to objects, decoded; an error names the entry."""
    decoded = {}
    for name, item in mapping(body, key).items():
        if not isinstance(item, _MAPPING):
            raise BadObjectError(f"{key}[{str(name)[:60]}] is not an object: {show(item)}")
        try:
            decoded[sys.intern(str(name))] = decode(item)
        except BadObjectError as error:
            raise BadObjectError(f"{key}[{str(name)[:60]}].{error}") from error
    return decoded


def amount(body: Body, key: str) -> Fraction | None:
    """A field that is a quantity, exactly; ``None`` where it is missing."""
    field = body.get(key)
    if field is None:
        return None
    if isinstance(field, bool) or not isinstance(field, str | int | float):
        raise BadObjectError(f"{key} is not a quantity: {show(field)}")
    try:
        return quantity.exact(field)
    except ValueError as error:
        raise BadObjectError(f"{key}: {error}") from error


def text(body: Body, key: str, default: str = "") -> str:
    """A field that is text."""
    field = body.get(key)
    if field is None:
        return default
    if not isinstance(field, str):
        raise BadObjectError(f"{key} is not a string: {show(field)}")
    return field


def name(meta: Body) -> str:
    """The name in the metadata of an object, which every object has."""
    spelled = text(meta, "name")
    if not spelled:
        raise BadObjectError("metadata.name is missing")
    return spelled


def texts(body: Body, *keys: str) -> tuple[str, ...]:
    """Several fields that are text."""
    return tuple(text(body, key) for key in keys)


def strings(body: Body, key: str) -> tuple[str, ...]:
    """A field that is a list of texts."""
    return tuple(str(item) for item in sequence(body, key))


def integer(body: Body, key: str, default: int = 0) -> int:
    """A field that is a whole number."""
    field = body.get(key)
    if field is None:
        return default
    if isinstance(field, bool) or not isinstance(field, int):
        raise BadObjectError(f"{key} is not an integer: {show(field)}")
    return field


def flag(body: Body, key: str, *, default: bool = False) -> bool:
    """A field that is true or false."""
    field = body.get(key)
    if field is None:
        return default
    if not isinstance(field, bool):
        raise BadObjectError(f"{key} is neither true nor false: {show(field)}")
    return field


def labels(body: Body, key: str = "labels") -> dict[str, str]:
    """Labels within the API server's bounds."""
    named = mapping(body, key)
    for name, value in named.items():
        if len(str(name)) > _LABEL_KEY:
            raise BadObjectError(f"{key}: a name of {len(str(name))} characters: {show(name)}")
        if isinstance(value, Mapping | list) or len(str(value)) > _LABEL_VALUE:
            raise BadObjectError(
                f"{key}: the value of {show(name)} is not a string"
                f" or has {len(str(value))} characters"
            )
    # Thousands of objects have the same names: each is kept once.
    # One that YAML took for a boolean or a number is as it was most likely written.
    return {
        sys.intern(str(name)): str(value).lower()
        if isinstance(value, bool)
        else ""
        if value is None
        else str(value)
        for name, value in named.items()
    }


def show(value: object) -> str:
    """A value for a message, cut where it is long."""
    spelled = repr(value)
    return spelled if len(spelled) <= 60 else f"{spelled[:57]}..."
