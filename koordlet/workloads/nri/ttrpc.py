"""Calls and answers on one connection: ttrpc, the small sibling of gRPC.

Covers: the header, requests, responses, status. Does not cover: frames (``mux``), whose method is
what (``session``).

A message is ten bytes (length, stream, kind, flags) and its body, a protocol buffer. The one who
calls numbers its calls with odd streams; the answer has the same.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator

from koordlet.model.record import dataclass
from koordlet.workloads.nri import fields, mux

_HEAD = struct.Struct(">IIBB")
_REQUEST, _RESPONSE = 1, 2


class Code(enum.IntEnum):
    """The status of an answer; numbers are gRPC's."""

    OK = 0
    UNKNOWN = 2
    UNIMPLEMENTED = 12


@dataclass(frozen=True, slots=True)
class TtrpcRequest:
    """A request."""

    stream: int
    service: str
    method: str
    payload: bytes
    #: Seconds until the caller gives up; 0 where it does not say.
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class TtrpcResponse:
    """A response."""

    stream: int
    payload: bytes
    code: int = Code.OK
    message: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that is none; its stream is all that is known."""

    stream: int
    request: bool
    why: str


Message = TtrpcRequest | TtrpcResponse | Unreadable


def write(connection: int, ttrpc_request: TtrpcRequest | TtrpcResponse) -> bytes:
    """The frames of a message: its header, then its body."""
    if isinstance(ttrpc_request, TtrpcRequest):
        kind = _REQUEST
        body = fields.encode(
            (1, ttrpc_request.service),
            (2, ttrpc_request.method),
            (3, ttrpc_request.payload),
            (4, int(ttrpc_request.timeout * 1e9)),
        )
    else:
        kind = _RESPONSE
        status = (
            [(1, fields.encode((1, ttrpc_request.code), (2, ttrpc_request.message)))]
            if ttrpc_request.code
            else []
        )
        body = fields.encode(*status, (2, ttrpc_request.payload))
    head = _HEAD.pack(len(body), ttrpc_request.stream, kind, 0)
    # A frame without content is legal and of no use.
    return mux.frame(connection, head) + (mux.frame(connection, body) if body else b"")


class TtrpcReader:
    """The bytes of one connection in, messages out."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Every message that is complete now."""
        self._kept += data
        while len(self._kept) >= _HEAD.size:
            size, stream, kind, _ = _HEAD.unpack_from(self._kept)
            if size > mux.LARGEST:
                raise mux.BrokenError(f"a message of {size} bytes")
            end = _HEAD.size + size
            if len(self._kept) < end:
                return
            body = bytes(self._kept[_HEAD.size : end])
            del self._kept[:end]
            yield _read(stream, kind, body)


def _read(stream: int, kind: int, body: bytes) -> Message:
    try:
        message = fields.decode(body)
        if kind == _REQUEST:
            return TtrpcRequest(
                stream=stream,
                service=fields.text(message, 1),
                method=fields.text(message, 2),
                payload=fields.raw(message, 3) or b"",
                timeout=max(0, fields.number(message, 4)) / 1e9,
            )
        if kind == _RESPONSE:
            status = fields.inside(message, 1)
            return TtrpcResponse(
                stream=stream,
                payload=fields.raw(message, 2) or b"",
                code=fields.number(status, 1),
                message=fields.text(status, 2),
            )
    except fields.FieldFormatError as error:
        return Unreadable(stream, kind == _REQUEST, str(error))
    return Unreadable(stream, request=False, why=f"kind {kind}")
