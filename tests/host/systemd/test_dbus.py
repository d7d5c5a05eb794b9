"""D-Bus messages: what is written is read back the same, and no bytes do harm."""

from __future__ import annotations

import struct

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.host.systemd import dbus
from tests.kit import search

V = dbus.Variant

VALUES: st.SearchStrategy[tuple[str, object]] = st.one_of(
    st.tuples(st.just("y"), st.integers(0, 255)),
    st.tuples(st.just("b"), st.booleans()),
    st.tuples(st.just("u"), st.integers(0, 2**32 - 1)),
    st.tuples(st.just("t"), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("x"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("s"), st.text(st.characters(exclude_characters="\0", codec="utf-8"))),
    st.tuples(st.just("ay"), st.binary(max_size=40)),
    st.tuples(st.just("a(su)"), st.lists(st.tuples(st.just("x"), st.integers(0, 9)), max_size=3)),
    st.tuples(st.just("v"), st.integers(0, 9).map(lambda n: V("t", n))),
)


def message(signature: str, body: list[object]) -> bytes:
    """A call with this body."""
    return dbus.call(7, "/a", "i.f", "M", destination="d", signature=signature, body=body)


@search.examples(200)
@hypothesis.given(values=st.lists(VALUES, max_size=6))
def test_what_is_written_is_read_back(values: list[tuple[str, object]]) -> None:
    """Whatever values a message carries, they come back with path, member and serial."""
    raw = message("".join(kind for kind, _ in values), [value for _, value in values])
    parsed = dbus.parse(raw)

    assert len(raw) == dbus.size_of(raw)
    assert (
        parsed.serial,
        parsed.path,
        parsed.interface,
        parsed.member,
        parsed.destination,
    ) == (7, "/a", "i.f", "M", "d")
    assert [value for _, value in values] == list(parsed.body)


def test_numbers_are_aligned_from_the_start_of_the_message() -> None:
    """A number of eight bytes after one of one byte stands at the next multiple of eight."""
    raw = message("yt", [1, 2])
    body = raw[-16:]

    assert struct.pack("<B7xQ", 1, 2) == body


def test_the_properties_of_a_unit() -> None:
    """The one call that matters, with a list of bytes and a number inside variants."""
    body: list[object] = ["a.service", True, [("AllowedCPUs", V("ay", b"\x0f")), ("X", V("t", 9))]]
    assert tuple(body) == dbus.parse(message("sba(sv)", body)).body


@search.examples(400)
@hypothesis.given(raw=st.binary(max_size=200))
def test_no_bytes_do_harm(raw: bytes) -> None:
    """Random bytes are refused as malformed or are a message; nothing else is raised."""
    for data in (raw, b"l" + raw, b"l\x02\x00\x01" + raw):
        try:
            if dbus.size_of(data) is not None:
                dbus.parse(data)
        except dbus.DBusFormatError:
            continue


@search.examples(300)
@hypothesis.given(data=st.data())
def test_damaged_messages_do_no_harm(data: st.DataObject) -> None:
    """A good message with some bytes changed is refused as malformed or is another message."""
    raw = bytearray(message("sba(sv)", ["u", True, [("P", V("ay", b"\1\2")), ("Q", V("t", 5))]]))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        dbus.size_of(bytes(raw))
        dbus.parse(bytes(raw))
    except dbus.DBusFormatError:
        return


@pytest.mark.parametrize("size", range(16, 60))
def test_a_message_cut_short_is_malformed(size: int) -> None:
    """A message that ends early is refused, wherever that is."""
    with pytest.raises(dbus.DBusFormatError):
        dbus.parse(message("s", ["text" * 9])[:size])


@pytest.mark.parametrize(
    ("signature", "value"), [("y", 256), ("t", -1), ("s", "a\0b"), ("ay", 3), ("(ss)", ("a",))]
)
def test_a_value_of_another_type_is_not_sent(signature: str, value: object) -> None:
    """What does not fit its type is our mistake, and is said before anything is sent."""
    with pytest.raises(dbus.DBusFormatError):
        message(signature, [value])


@pytest.mark.parametrize("signature", ["a", "(s", "z", "a" * 99, "(" * 50])
def test_a_signature_that_is_none(signature: str) -> None:
    """Signatures without end, or with types that are not known here, are refused."""
    with pytest.raises(dbus.DBusFormatError):
        dbus.split(signature)


def test_giant_lengths_are_refused() -> None:
    """A length that nobody can mean is refused before anything is read."""
    with pytest.raises(dbus.DBusFormatError):
        dbus.size_of(struct.pack("<BBBBIII", ord("l"), 2, 0, 1, 1 << 30, 1, 0))


@pytest.mark.parametrize("signature", ["a()", "a{}", "()"])
def test_type_without_members_is_refused(signature: str) -> None:
    """Items that take no bytes would be read without end."""
    with pytest.raises(dbus.DBusFormatError, match="not known"):
        dbus.split(signature)
