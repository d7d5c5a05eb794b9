"""D-Bus messages as bytes: the few types that talking to systemd needs, without any I/O.

Covers: marshalling of values by signature, method calls, replies and errors, authentication lines.
Does not cover: the socket and its deadline (``bus``), what systemd's methods mean.

Rules:
1. What comes in is judged: a length that no message has, a value outside its message, a type that
   is not known here, nesting without end is ``DBusFormatError``, whatever the bytes are.
2. We write little-endian and read both.

The format: the D-Bus specification, "Message Protocol". A value is aligned to its size from the
start of the message; an array is its length in bytes, padding to its items, then the items.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import field

from koordlet.model.record import dataclass

#: Messages and arrays beyond this are not for us: systemd's answers to us are below a kilobyte.
MOST = 1 << 20
#: No message is longer, by the specification.
_LONGEST = 1 << 27
#: Containers inside each other.
_DEEPEST = 8

CALL, REPLY, ERROR, SIGNAL = 1, 2, 3, 4
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_SERIAL, _DESTINATION = range(1, 7)
_SIGNATURE = 8
_FIXED = 16

#: Type to (struct code, size) of the numbers.
_NUMBERS = {"y": ("B", 1), "n": ("h", 2), "q": ("H", 2), "i": ("i", 4), "u": ("I", 4),
            "b": ("I", 4), "h": ("I", 4), "x": ("q", 8), "t": ("Q", 8), "d": ("d", 8)}  # fmt: skip
_TEXTS = {"s": 4, "o": 4, "g": 1}
_ALIGN = {"(": 8, "{": 8, "a": 4, "v": 1, **_TEXTS, **{key: n for key, (_, n) in _NUMBERS.items()}}


class DBusFormatError(ValueError):
    """Bytes that are no message, or a value that has not the type that it should have."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A value that carries its type."""

    signature: str
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message; what it does not say is empty."""

    type: int
    serial: int
    reply_serial: int = 0
    path: str = ""
    interface: str = ""
    member: str = ""
    error: str = ""
    destination: str = ""
    body: tuple[object, ...] = field(default_factory=tuple)


def split(signature: str) -> list[str]:
    """``sba(sv)`` → ``s``, ``b``, ``a(sv)``."""
    types = []
    at = 0
    while at < len(signature):
        end = _end(signature, at, 0)
        types.append(signature[at:end])
        at = end
    return types


def _end(signature: str, at: int, depth: int) -> int:
    """End of the complete type that begins at ``at``."""
    if depth > _DEEPEST or at >= len(signature):
        raise DBusFormatError(f"not a signature: {signature[:64]!r}")
    kind = signature[at]
    if kind == "a":
        return _end(signature, at + 1, depth + 1)
    if kind in "({":
        close = ")" if kind == "(" else "}"
        # At least one member: an array of nothing, item by item, has no end.
        at = _end(signature, at + 1, depth + 1)
        while at < len(signature) and signature[at] != close:
            at = _end(signature, at, depth + 1)
        if at >= len(signature):
            raise DBusFormatError(f"not a signature: {signature[:64]!r}")
        return at + 1
    if kind not in _ALIGN:
        raise DBusFormatError(f"type {kind!r} is not known here")
    return at + 1


class _Writer:
    """Values appended with their alignment."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def put(self, kind: str, value: object) -> None:
        self.align(_ALIGN[kind[0]])
        if kind in _NUMBERS:
            try:
                self.data += struct.pack("<" + _NUMBERS[kind][0], value)
            except struct.error as error:
                raise DBusFormatError(f"{value!r} is no {kind}: {error}") from None
        elif kind in _TEXTS:
            raw = str(value).encode()
            if b"\0" in raw:
                raise DBusFormatError("a text with a zero byte")
            self.data += struct.pack("<I" if _TEXTS[kind] == 4 else "<B", len(raw)) + raw + b"\0"
        elif isinstance(value, Variant):
            self.put("g", value.signature)
            self.put(value.signature, value.value)
        elif kind[0] == "a" and isinstance(value, bytes | list | tuple):
            self._array(kind[1:], value)
        elif kind[0] == "(" and isinstance(value, list | tuple):
            self.all(kind[1:-1], value)
        else:
            raise DBusFormatError(f"{value!r} is no {kind}")

    def all(self, signature: str, values: Sequence[object]) -> None:
        kinds = split(signature)
        if len(kinds) != len(values):
            raise DBusFormatError(f"{len(values)} values for {signature}")
        for kind, value in zip(kinds, values, strict=True):
            self.put(kind, value)

    def _array(self, kind: str, values: Sequence[object] | bytes) -> None:
        where = len(self.data)
        self.data += bytes(4)
        self.align(_ALIGN[kind[0]])
        start = len(self.data)
        for value in values:
            self.put(kind, value)
        struct.pack_into("<I", self.data, where, len(self.data) - start)


class _Reader:
    """Values taken with their alignment, never beyond the end."""

    def __init__(self, data: bytes, order: str, at: int = 0) -> None:
        self.data = data
        self.order = order
        self.at = at

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise DBusFormatError("a value outside its message")
        self.at += size
        return piece

    def align(self, size: int) -> None:
        self.take(-self.at % size)

    def get(self, kind: str, depth: int = 0) -> object:
        if depth > _DEEPEST:
            raise DBusFormatError("containers inside each other without end")
        self.align(_ALIGN[kind[0]])
        if kind in _NUMBERS:
            code, size = _NUMBERS[kind]
            number = struct.unpack(self.order + code, self.take(size))[0]
            return bool(number) if kind == "b" else number
        if kind in _TEXTS:
            return self._text(kind)
        if kind == "v":
            inner = split(str(self.get("g")))
            if len(inner) != 1:
                raise DBusFormatError("a variant of not one type")
            return Variant(inner[0], self.get(inner[0], depth + 1))
        if kind[0] == "a":
            return self._array(kind[1:], depth + 1)
        return tuple(self.get(member, depth + 1) for member in split(kind[1:-1]))

    def _text(self, kind: str) -> str:
        long = _TEXTS[kind] == 4
        size = struct.unpack(self.order + ("I" if long else "B"), self.take(4 if long else 1))[0]
        raw = self.take(size)
        if self.take(1) != b"\0":
            raise DBusFormatError("a text without its end")
        return raw.decode("utf-8", "replace")

    def _array(self, kind: str, depth: int) -> object:
        size = struct.unpack(self.order + "I", self.take(4))[0]
        self.align(_ALIGN[kind[0]])
        end = self.at + size
        if size > MOST or end > len(self.data):
            raise DBusFormatError("an array outside its message")
        if kind == "y":
            return self.take(size)
        items = []
        while self.at < end:
            items.append(self.get(kind, depth))
        if self.at != end:
            raise DBusFormatError("an array that ends inside an item")
        return items


def call(
    serial: int,
    path: str,
    interface: str,
    member: str,
    *,
    destination: str = "",
    signature: str = "",
    body: Sequence[object] = (),
) -> bytes:
    """A method call."""
    content = _Writer()
    content.all(signature, body)
    fields = [
        (_PATH, Variant("o", path)),
        (_INTERFACE, Variant("s", interface)),
        (_MEMBER, Variant("s", member)),
    ]
    if destination:
        fields.append((_DESTINATION, Variant("s", destination)))
    if signature:
        fields.append((_SIGNATURE, Variant("g", signature)))
    head = _Writer()
    for kind, value in zip(
        "yyyyuu", (ord("l"), CALL, 0, 1, len(content.data), serial), strict=True
    ):
        head.put(kind, value)
    head.put("a(yv)", fields)
    head.align(8)
    return bytes(head.data + content.data)


def size_of(data: bytes) -> int | None:
    """Length of the message that begins here; ``None`` while unknown."""
    if len(data) < _FIXED:
        return None
    order = _order(data)
    body, _, fields = struct.unpack_from(order + "III", data, 4)
    if body + fields > _LONGEST:
        raise DBusFormatError(f"a message of {body + fields} bytes")
    return int(_FIXED + fields + -fields % 8 + body)


def parse(data: bytes) -> Message:
    """One whole message."""
    reader = _Reader(data, _order(data))
    _, kind, _, version, _, serial = (reader.get(letter) for letter in "yyyyuu")
    if version != 1:
        raise DBusFormatError(f"protocol version {version}")
    listed = reader.get("a(yv)")
    reader.align(8)
    fields: dict[int, object] = {}
    for item in listed if isinstance(listed, list) else ():
        code, value = item
        fields[code] = value.value
    signature = str(fields.get(_SIGNATURE, ""))
    reply = fields.get(_REPLY_SERIAL, 0)
    # Offsets of the body count from the message's start, which is a multiple of eight as well.
    body = tuple(reader.get(member) for member in split(signature))
    return Message(
        type=int(str(kind)),
        serial=int(str(serial)),
        reply_serial=reply if isinstance(reply, int) else 0,
        path=str(fields.get(_PATH, "")),
        interface=str(fields.get(_INTERFACE, "")),
        member=str(fields.get(_MEMBER, "")),
        error=str(fields.get(_ERROR_NAME, "")),
        destination=str(fields.get(_DESTINATION, "")),
        body=body,
    )


def _order(data: bytes) -> str:
    order = {ord("l"): "<", ord("B"): ">"}.get(data[0] if data else 0)
    if order is None:
        raise DBusFormatError("neither little-endian nor big-endian")
    return order


#: The end of a client's greeting.
BEGIN = b"BEGIN\r\n"


def hello(uid: int, *, handles: bool = False) -> bytes:
    """Opening of a client: authentication by the socket's credentials, then begin.

    ``handles``: file descriptors may come with messages.

    In one piece, and no message before the answer: systemd reads all that is there while it lets
    somebody in, and looks at a message which came along only when the next one arrives.
    """
    more = b"NEGOTIATE_UNIX_FD\r\n" if handles else b""
    return b"\0AUTH EXTERNAL " + str(uid).encode().hex().encode() + b"\r\n" + more + BEGIN
