"""A message as plain data, for people and programs that know no protobuf.

Covers: every field that has a value, numbers as numbers, names as JSON spells them.
Does not cover: the way back.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import message as protobuf
from google.protobuf.timestamp_pb2 import Timestamp


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
                made[field.json_name] = [_one(each) for each in value]
        elif not field.has_presence or message.HasField(field.name):
            made[field.json_name] = _one(value)
    return made


def _one(value: Any) -> Any:
    return plain(value) if isinstance(value, protobuf.Message) else value
