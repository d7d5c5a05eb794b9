"""One request as bytes, and the answer that came in one piece: what most of HTTP is between us.

Covers: writing a request, taking apart an answer that is here whole, a stream in plain chunks.
Does not cover: every other answer, which h11 reads (``client``): pieces, interim heads, trailers.

Rules:
1. Only what h11 would take in the same way is taken here, and of that only the plain part; for all
   else the answer is ``None``. Nothing is repaired, and nothing is refused here.
2. A request that is not plainly right goes through h11, which says what is wrong with it.
"""

from __future__ import annotations

import functools
import re

import h11

Headers = tuple[tuple[str, str], ...]

#: A whole answer: its status, its headers by their names in lower case, its body.
Answer = tuple[int, dict[str, str], bytes]

# The grammar of RFC 9112 and 9110 5.6.2, without what may be but hardly is: folded lines, bare
# line feeds, other versions. Possessive, so that a mismatch costs one pass.
_TOKEN = rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]++"
_TEXT = rb"[\t\x20-\x7e\x80-\xff]*+"
_ANSWER = re.compile(
    rb"HTTP/1\.1 ([2-5][0-9][0-9])(?: %b)?\r\n((?:%b:%b\r\n)*+)\r\n" % (_TEXT, _TOKEN, _TEXT)
)
_VALUE = rb"(?:[\x21-\x7e]++(?:[\t ]++[\x21-\x7e]++)*+)?+"
_REQUEST_LINE = re.compile(_TOKEN.decode() + r" [\x21-\x7e]++ HTTP/1\.1\r\n")
_LINES = re.compile(rb"(?:%b: %b\r\n)++\r\n" % (_TOKEN, _VALUE))
#: Of a length; Python refuses to read thousands of them.
_DIGITS = 20
#: They have no body, whatever their length says.
_BARE = frozenset({204, 304})
#: Headers by which a message has another frame, or is the last of its connection.
_FRAMING = frozenset({"transfer-encoding", "connection"})
#: The size of a chunk of less than 1 MiB, and the end of all chunks without trailers.
_SIZE = re.compile(rb"([1-9a-fA-F][0-9a-fA-F]{0,4})\r\n")
_LONGEST_SIZE, _LAST = len(b"fffff\r\n"), b"0\r\n\r\n"


def request(method: str, target: str, headers: Headers, body: bytes) -> bytes:
    """A request with its body; ``h11.LocalProtocolError`` where it cannot be said.

    The headers name the host and, where there is a body, its length.
    """
    line = f"{method} {target} HTTP/1.1\r\n"
    lines = _plain_lines(headers, has_body=bool(body))
    if lines and _REQUEST_LINE.fullmatch(line):
        return line.encode("ascii") + lines + body
    return begun(method, target, headers, body)[1]


# Nearly all requests of a client have the same headers: few lengths, one long token.
@functools.lru_cache(maxsize=64)
def _plain_lines(headers: Headers, *, has_body: bool) -> bytes:
    """Headers as lines, and the empty line; nothing where h11 has to look."""
    text = "".join([f"{name}: {value}\r\n" for name, value in headers])
    names = {name.lower() for name, _ in headers}
    lines = f"{text}\r\n".encode("ascii") if text.isascii() else b""
    plain = (
        _LINES.fullmatch(lines)
        and len(names) == len(headers)
        and ("content-length" in names) == has_body
        and _FRAMING.isdisjoint(names)
    )
    return lines if plain else b""


def begun(
    method: str, target: str, headers: Headers, body: bytes, head_bytes: int = 64 << 10
) -> tuple[h11.Connection, bytes]:
    """A state machine that has sent the request, and the bytes that it would have sent."""
    machine = h11.Connection(h11.CLIENT, max_incomplete_event_size=head_bytes)
    asked = h11.Request(method=method, target=target, headers=list(headers))
    sent = machine.send(asked) or b""
    if body:
        sent += machine.send(h11.Data(data=body)) or b""
    machine.send(h11.EndOfMessage())
    return machine, sent


def answer(data: bytes) -> Answer | None:
    """The answer that these bytes are, no less and no more; ``None``: h11 has to look."""
    head = _head(data)
    if head is None:
        return None
    status, names, end = head
    length = names.get("content-length", "")
    if names.get("transfer-encoding") == "chunked" and not length:
        content, rest, _ = chunks(data[end:])
        return (status, names, content) if rest == _LAST else None
    if (
        not length.isdecimal()
        or len(length) > _DIGITS
        or len(data) - end != int(length)
        or "transfer-encoding" in names
    ):
        return None
    return status, names, data[end:]


def streamed(data: bytes) -> tuple[int, dict[str, str], int] | None:
    """Status, headers and length of the head of an answer in chunks; ``None``: h11 has to look."""
    head = _head(data)
    if head is None or head[1].get("transfer-encoding") != "chunked" or "content-length" in head[1]:
        return None
    return head


def chunks(data: bytes) -> tuple[bytes, bytes, bool]:
    """The content of the plain chunks that are whole, what follows, whether that may be another."""
    pieces: list[bytes] = []
    start = 0
    while match := _SIZE.match(data, start):
        end = match.end() + int(match[1], 16)
        if data[end : end + 2] != b"\r\n":
            return b"".join(pieces), data[start:], len(data) < end + 2
        pieces.append(data[match.end() : end])
        start = end + 2
    rest = data[start:]
    return b"".join(pieces), rest, len(rest) < _LONGEST_SIZE and not rest.startswith(b"0")


def _head(data: bytes) -> tuple[int, dict[str, str], int] | None:
    """Status, headers and length of a plain head, after which there is a body."""
    match = _ANSWER.match(data)
    if match is None:
        return None
    lines = match[2].decode("latin-1").split("\r\n")
    names: dict[str, str] = {}
    for line in lines[:-1]:
        name, _, value = line.partition(":")
        names[name.lower()] = value.strip(" \t")
    status = int(match[1])
    if len(names) != len(lines) - 1 or status in _BARE or "connection" in names:
        return None
    return status, names, match.end()
