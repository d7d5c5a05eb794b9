"""Two conversations on one socket: frames of a connection id, a length and that many bytes.

Covers: cutting a stream of bytes into frames, making frames. Does not cover: what is in them
(``ttrpc``).

Rules, each observed with containerd 1.7.24:
1. What is sent is one frame with the header of the call and one with all of its body. A frame that
   holds both must stay below 4 KiB, else the runtime gives up; frames of any other cut fill its
   queue of 256.
2. What is received is cut anywhere: only the bytes of one id in their order mean anything.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: The runtime calls us on this one, …
PLUGIN = 1
#: … and we call the runtime on this one.
RUNTIME = 2

_HEAD = struct.Struct(">II")
#: The runtime itself takes no larger frame.
LARGEST = 16 << 20


class BrokenError(ValueError):
    """The stream cannot be cut any further: the connection is of no use."""


def frame(connection: int, data: bytes) -> bytes:
    """The bytes of one frame."""
    return _HEAD.pack(connection, len(data)) + data


class Cutter:
    """Bytes in, as they come; whole frames out."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The (connection, content) of every frame that is complete now."""
        self._kept += data
        while len(self._kept) >= _HEAD.size:
            connection, size = _HEAD.unpack_from(self._kept)
            if size > LARGEST:
                raise BrokenError(f"a frame of {size} bytes")
            end = _HEAD.size + size
            if len(self._kept) < end:
                return
            content = bytes(self._kept[_HEAD.size : end])
            del self._kept[:end]
            yield connection, content
