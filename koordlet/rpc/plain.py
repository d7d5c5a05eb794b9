"""Messages of values, values of messages, and messages as plain data for who knows no protobuf.

Covers: a message from the attributes of a value, and back; plain data with every field that has a
value, numbers as numbers, names as JSON spells them.

Texts from outside (names of groups, of pods) may be no UTF-8; protobuf takes nothing else, so what
cannot be said is replaced by a question mark.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf import message as protobuf
from google.protobuf.descriptor import Descriptor
from google.protobuf.timestamp_pb2 import Timestamp

from koordlet.model import cpuset

_MessageT = TypeVar("_MessageT", bound=protobuf.Message)
_ValueT = TypeVar("_ValueT")


def message(message_class: type[_MessageT], source: object, **more: Any) -> _MessageT:
    """Make a message of the attributes that are named as its fields; ``more`` are other fields."""
    fields = {
        name: _spelled(getattr(source, name))
        for name in _names(message_class.DESCRIPTOR)
        if name not in more and hasattr(source, name)
    }
    return message_class(**fields, **more)


def value(value_class: Callable[..., _ValueT], source: protobuf.Message, **more: Any) -> _ValueT:
    """Make a value of the fields that are named as its own; an absent optional one is ``None``."""
    for name, always in _shared(value_class, source.DESCRIPTOR):
        if name not in more:
            more[name] = getattr(source, name) if always or source.HasField(name) else None
    return value_class(**more)


@functools.cache
def _shared(value_class: Any, descriptor: Descriptor) -> tuple[tuple[str, bool], ...]:
    own = {field.name for field in dataclasses.fields(value_class)}
    fields = descriptor.fields_by_name.items()
    return tuple((name, not field.has_presence) for name, field in fields if name in own)


@functools.cache
def _names(descriptor: Descriptor) -> tuple[str, ...]:
    return tuple(descriptor.fields_by_name)


def _spelled(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str):
        return text(value)
    return str(value) if isinstance(value, cpuset.CPUSet) else value


def text(words: str) -> str:
    """Give the text as protobuf takes it."""
    return words if words.isascii() else words.encode("utf-8", "replace").decode()


def plain(message: protobuf.Message) -> Any:
    """The message; a field that is absent is missing, a repeated one is a list, maybe empty."""
    if isinstance(message, Timestamp):
        return message.seconds + message.nanos / 1e9
    made: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                made[field.json_name] = dict(value)
            else:
                made[field.json_name] = list(map(_inner, value))
        elif not field.has_presence or message.HasField(field.name):
            made[field.json_name] = _inner(value)
    return made


def _inner(value: Any) -> Any:
    return plain(value) if isinstance(value, protobuf.Message) else value
