"""Protocol buffers as far as NRI needs them: the fields of a message by number.

Covers: the wire format, both ways, and reading with a type in mind. Does not cover: what a number
means (``messages``). See https://protobuf.dev/programming-guides/encoding/.

Rules:
1. Bytes that are not a message raise ``FieldFormatError``, and nothing else.
2. A field of another wire type than the one asked for is not there: newer peers may know better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

#: Field number to its values in order: numbers, or the bytes of texts and messages.
Fields = Mapping[int, list[int | bytes]]
Value = int | str | bytes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
#: A varint has 64 bits: ten groups of seven.
_LONGEST = 10
_WRAP = 1 << 64


class FieldFormatError(ValueError):
    """Not a message."""


# Reading ------------------------------------------------------------------------------------------


def decode(data: bytes) -> Fields:
    """The fields of a message."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _number(data, at)
        else:
            size, at = _number(data, at) if kind == _BYTES else (_FIXED.get(kind, -1), at)
            if size < 0:
                raise FieldFormatError(f"wire type {kind} of field {key >> 3}")
            value = data[at : at + size]
            if len(value) < size:
                raise FieldFormatError(f"field {key >> 3} ends early")
            at += size
            if kind != _BYTES:
                value = int.from_bytes(value, "little")
        if not key >> 3:
            raise FieldFormatError("a field has no number")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST):
        if at + place >= len(data):
            raise FieldFormatError("a number is truncated")
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value % _WRAP, at + place + 1
    raise FieldFormatError("a number has no end")


def number(fields: Fields, field: int) -> int:
    """A number as int64 has it; 0 where it was not sent."""
    numbers = [item for item in fields.get(field, ()) if isinstance(item, int)]
    value = numbers[-1] if numbers else 0
    return value - _WRAP if value >= _WRAP // 2 else value


def raw(fields: Fields, field: int) -> bytes | None:
    """The bytes of a text or message; ``None`` where it was not sent."""
    values = [item for item in fields.get(field, ()) if isinstance(item, bytes)]
    return values[-1] if values else None


def text(fields: Fields, field: int) -> str:
    """A text; empty where it was not sent. What is no UTF-8 is replaced, not refused."""
    return (raw(fields, field) or b"").decode(errors="replace")


def inside(fields: Fields, *path: int) -> Fields:
    """A message in a message in a message; without fields where one is missing."""
    for field in path:
        data = raw(fields, field)
        fields = {} if data is None else decode(data)
    return fields


def each(fields: Fields, field: int) -> Iterator[Fields]:
    """Every message of a repeated field."""
    return (decode(item) for item in fields.get(field, ()) if isinstance(item, bytes))


def texts(fields: Fields, field: int) -> dict[str, str]:
    """A map of texts."""
    return {text(entry, 1): text(entry, 2) for entry in each(fields, field)}


# Writing ------------------------------------------------------------------------------------------


def encode(*fields: tuple[int, Value]) -> bytes:
    """A message of these fields, in this order, also those that are zero or empty."""
    return b"".join(_field(field, value) for field, value in fields)


def given(*fields: tuple[int, Value | None]) -> bytes:
    """A message of those of these fields that are not ``None``."""
    return encode(*((field, value) for field, value in fields if value is not None))


def table(field: int, items: Mapping[str, str]) -> Iterable[tuple[int, Value]]:
    """The fields of a map of texts."""
    return ((field, encode((1, key), (2, value))) for key, value in items.items())


def _field(field: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(field << 3 | _VARINT) + _varint(value % _WRAP)
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
