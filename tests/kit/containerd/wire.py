"""Protocol buffers as far as the runtime interface needs them: numbers, texts, nested messages.

Covers: encoding a message given as field number to value, decoding one to its raw fields.
Does not cover: fixed-width, packed or negative numbers: no message used here has any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

#: Numbers, texts, messages, or several of them. A zero or empty text is not sent, as proto3 says.
Value: TypeAlias = "int | str | bytes | Mapping[int, Value] | Sequence[str | Mapping[int, Value]]"
Message: TypeAlias = Mapping[int, Value]


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    return b"".join(_field(number, value) for number, value in message.items())


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value) if value else b""
    if isinstance(value, Mapping):
        return _bytes(number, encode(value))
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return _bytes(number, data) if data else b""
    return b"".join(
        _bytes(number, element.encode() if isinstance(element, str) else encode(element))
        for element in value
    )


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data: bytes) -> dict[int, list[int | bytes]]:
    """Field number to its values, in order."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        value: int | bytes
        value, at = _number(data, at)
        match key & 7:
            case 0:
                pass
            case 2:
                size, value = value, data[at : at + value]
                at += size
            case kind:
                raise ValueError(f"wire type {kind} of field {key >> 3}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def text(fields: Mapping[int, Sequence[int | bytes]], number: int) -> str:
    """A text field; empty where it was not sent."""
    value = fields.get(number, (b"",))[-1]
    return value.decode() if isinstance(value, bytes) else ""


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
