"""Protocol buffers: what is written is read again, and no bytes do any harm."""

from __future__ import annotations

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from koordlet.workloads.nri import fields

_numbers = st.integers(-(1 << 63), (1 << 63) - 1)
_pairs = st.tuples(st.integers(1, 1 << 20), st.one_of(_numbers, st.text(), st.binary()))


@given(st.lists(_pairs, unique_by=lambda pair: pair[0]))
def test_what_is_written_is_read(pairs: list[tuple[int, int | str | bytes]]) -> None:
    """Every number and text comes back from its field."""
    message = fields.decode(fields.encode(*pairs))

    assert {field for field, _ in pairs} == message.keys()
    for field, value in pairs:
        if isinstance(value, int):
            assert value == fields.number(message, field)
        elif isinstance(value, bytes):
            assert value == fields.raw(message, field)
        else:
            assert value.encode(errors="replace").decode() == fields.text(message, field)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Bytes are a message or are refused as none."""
    try:
        message = fields.decode(data)
    except fields.FieldFormatError:
        return
    assert all(field > 0 for field in message)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8)))
def test_the_other_implementation_agrees(table: dict[str, str]) -> None:
    """Google's library reads what is written here, and the other way round."""
    theirs = struct_pb2.Struct()
    theirs.update(table)
    ours = fields.decode(theirs.SerializeToString())
    read = {
        fields.text(entry, 1): fields.text(fields.inside(entry, 2), 3)
        for entry in fields.each(ours, 1)
    }
    assert table == read

    back = struct_pb2.Struct()
    back.ParseFromString(
        b"".join(
            fields.encode((1, fields.encode((1, key), (2, fields.encode((3, value))))))
            for key, value in table.items()
        )
    )
    assert table == dict(back)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x08", "a number is truncated"),
        (b"\x08" + b"\xff" * 10, "a number has no end"),
        (b"\x0a\x05ab", "field 1 ends early"),
        (b"\x0b", "wire type 3 of field 1"),
        (b"\x00\x01", "a field has no number"),
        (b"\x0d\x01\x02", "field 1 ends early"),
    ],
)
def test_what_is_no_message(data: bytes, why: str) -> None:
    """It is said what is wrong."""
    with pytest.raises(fields.FieldFormatError, match=why):
        fields.decode(data)


def test_a_field_of_another_type_is_not_there() -> None:
    """A number where a text is looked for, and the other way round."""
    message = fields.decode(fields.encode((1, 5), (2, "five")))

    assert (fields.text(message, 1), fields.number(message, 2), fields.inside(message, 1)) == (
        "",
        0,
        {},
    )


def test_fixed_width_fields_are_passed_over() -> None:
    """What comes after them is read."""
    assert fields.text(fields.decode(b"\x0d\1\0\0\0\x11\2\0\0\0\0\0\0\0\x1a\1x"), 3) == "x"
