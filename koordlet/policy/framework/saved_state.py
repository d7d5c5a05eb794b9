"""A policy's state as its checkpoint holds it: JSON made of the fields of a dataclass, and back.

Covers: numbers, texts, enums, whatever has ``parse`` (sets of CPUs), maps, tuples, dataclasses;
bounds of a field; fields that no checkpoint has.
Does not cover: files, versions, checkpoints of another machine (``state.checkpoint``).

Rules:
1. A value that is not of its field's type, or not within its bounds, is a ``ValueError``.
2. A field that the checkpoint lacks has its default: a policy that remembers more needs no new
   version. A checkpoint that has none of the fields is none.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any

#: Metadata of a field that is about this moment: no checkpoint has it.
UNKEPT: Mapping[str, Any] = {"kept": False}
_LARGEST = 1e300


def within(least: float, most: float) -> Mapping[str, Any]:
    """Metadata of a field with bounds, both included."""
    return {"fits": lambda value: least <= value <= most}


def among(*values: Any) -> Mapping[str, Any]:
    """Metadata of a field that has one of these values."""
    return {"fits": lambda value: value in values}


def encode(value: Any) -> Any:
    """JSON types for a value."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "parse"):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return {field.name: encode(getattr(value, field.name)) for field in _kept(type(value))}


def decode(wanted: Any, value: Any) -> Any:
    """A value of the type ``wanted`` from JSON types."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    made: Any
    if origin is types.UnionType:
        made = None if value is None else decode(parts[0], value)
    elif origin is tuple and isinstance(value, list):
        made = tuple(decode(parts[0], item) for item in value)
    elif origin is Mapping and isinstance(value, dict):
        made = {parts[0](key): decode(parts[1], item) for key, item in value.items()}
    elif isinstance(wanted, enum.EnumMeta):
        made = wanted(value)
    elif hasattr(wanted, "parse") and isinstance(value, str):
        made = wanted.parse(value)
    elif dataclasses.is_dataclass(wanted) and isinstance(value, dict):
        made = _record(wanted, value)
    elif wanted is float and type(value) in (int, float):
        if not -_LARGEST < value < _LARGEST:
            raise ValueError(f"{value!r:.80} is no finite number")
        made = float(value)
    elif type(value) is wanted:
        made = value
    else:
        raise ValueError(f"expected {wanted}, found {value!r:.80}")
    return made


def _record(record_class: Any, body: Mapping[str, Any]) -> Any:
    """A dataclass from the object that has its fields (rule 2)."""
    hints = _hints(record_class)
    values: dict[str, Any] = {}
    for field in _kept(record_class):
        if field.name not in body:
            continue
        try:
            value = values[field.name] = decode(hints[field.name], body[field.name])
        except ValueError as error:
            raise ValueError(f"{field.name}: {error}") from error
        fits = field.metadata.get("fits")
        if value is not None and fits is not None and not fits(value):
            raise ValueError(f"{field.name}: {value!r:.80} is outside its bounds")
    if not values:
        raise ValueError(f"it has nothing of {record_class.__name__}")
    try:
        return record_class(**values)
    except TypeError as error:
        raise ValueError(str(error)) from error


_hints = functools.cache(typing.get_type_hints)


def _kept(record_class: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(record_class) if field.metadata.get("kept", True)]
