r"""Half a character in a text, as JSON can spell it and UTF-8 cannot: read as U+FFFD.

Covers: JSON before it is decoded, and values that were decoded. Does not cover: decoding.

Facts: JSON may escape one half of a pair of UTF-16 alone (``"\ud800"``; RFC 8259, section 8.2).
Go's decoder, and so every API server and kubelet, reads U+FFFD for it and for bytes that are no
UTF-8. Python's own decoder keeps the half, and whoever prints or sends that text later fails;
msgspec refuses the whole document for it. We read what Go reads: one text is spoiled, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

#: What is said of an object that had such a text.
SAID = "a text holds half a character (such as \\ud800) or bytes that are no UTF-8; read as U+FFFD"

#: Every escape from left to right, so that ``\\ud800`` (a backslash and five letters) stays; only a
#: half that stands alone is the first group.
_ESCAPES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
#: How an escape of a half begins, looked for as it stands: files may have a gigabyte. YAML has the
#: longest as well.
_SUSPECT = ("\\ud", "\\uD", "\\U0000d", "\\U0000D")


def spelled(data: bytes) -> bytes:
    """JSON whose escapes all stand for characters; as long as before, byte for byte."""
    alone = [match.start(1) for match in _ESCAPES.finditer(data) if match[1] is not None]
    if not alone:
        return data
    made = bytearray(data)
    for at in alone:
        made[at : at + 5] = b"ufffd"
    return bytes(made)


def mended(data: bytes) -> bytes:
    """JSON that every decoder reads, as far as its texts go; the same where nothing was wrong."""
    return spelled(data.decode("utf-8", "replace").encode())


def parts(items: Iterable[bytes], mended_bytes: bytes, data: bytes) -> Iterator[bytes]:
    """The items of a list as they came, from those of what ``spelled`` made of it."""
    at = 0
    for item in items:
        at = mended_bytes.index(item, at)
        yield data[at : at + len(item)]
        at += len(item)


def suspect(text: str) -> bool:
    """Whether values read from this JSON or YAML may hold halves; the text itself holds none."""
    return any(mark in text for mark in _SUSPECT)


def whole(value: Any) -> Any:
    """A decoded value without halves: two that belong together are joined, others are U+FFFD."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value
