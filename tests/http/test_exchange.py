"""Requests and plain answers, with h11 as the oracle."""

from __future__ import annotations

import contextlib

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.http import exchange

OK = b"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


def oracle(data: bytes) -> exchange.Answer | None:
    """What h11 makes of these bytes; ``None``: no answer that is over with the last of them."""
    machine, _ = exchange.begun("GET", "/", (("host", "h"),), b"")
    machine.receive_data(data)
    head, body = None, bytearray()
    while True:
        event = machine.next_event()
        if isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            break
        elif not isinstance(event, h11.InformationalResponse):
            return None
    if any(machine.trailing_data) or machine.their_state is not h11.DONE:
        return None
    names = {name.decode(): value.decode("latin-1") for name, value in head.headers}
    return head.status_code, names, bytes(body)


def test_a_plain_answer() -> None:
    """Status, headers by their lower names, body."""
    assert exchange.answer(OK) == (
        201,
        {"content-type": "text/plain", "content-length": "2"},
        b"ok",
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        OK[:-1],
        OK + b"x",
        OK[:30],
        OK.replace(b"HTTP/1.1", b"HTTP/1.0"),
        OK.replace(b"201", b"103"),
        OK.replace(b"201", b"204"),
        OK.replace(b"201", b"304"),
        OK.replace(b"\r\n", b"\n"),
        OK.replace(b"text/plain", b"text/\r\n plain"),
        OK.replace(b"Content-Type: text/plain", b"Transfer-Encoding: chunked"),
        OK.replace(b"Content-Type: text/plain", b"Connection: close"),
        OK.replace(b"Content-Type: text/plain", b"Content-Length: 2"),
        OK.replace(b"Content-Type:", b"Content-Type :"),
        OK.replace(b"text", b"te\0xt"),
        OK.replace(b"Content-Length: 2", b"Content-Length: 2, 2"),
        OK.replace(b"Content-Length: 2", b"Content-Length: \xb2"),
        OK.replace(b"Content-Length: 2", b"Content-Length: " + b"9" * 5000),
        OK.replace(b"Content-Length: 2\r\n", b""),
    ],
)
def test_what_is_not_plain(data: bytes) -> None:
    """Anything in pieces, with another frame, or in another grammar is left to h11."""
    assert exchange.answer(data) is None


_LINES = st.sampled_from(
    [
        *(b"Content-Length: 2", b"content-length:2 ", b"Content-Length: 02", b"Content-Length: +2"),
        *(b"Content-Length: 3", b"Content-Length:", b"Transfer-Encoding: chunked", b"X:\t a \t b "),
        *(b"Connection: close", b"Connection: keep-alive", b"Upgrade: x", b": v", b"X y: z", b" f"),
        *(b"X: \xff", b"X: \x01", b"X: \x0b", b"Retry-After: 1", b"X:", b"nothing", b"X: a\nY: b"),
    ]
)
_STATUS = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK", b"HTTP/1.1 201", b"HTTP/1.1 409 ", b"HTTP/1.1 500 \xe4\t!"),
        *(b"HTTP/1.1 204 No", b"HTTP/1.1 304 Same", b"HTTP/1.1 100 Go on", b"HTTP/1.1 999 ?"),
        *(b"HTTP/1.0 200 OK", b"HTTP/1.1  200 OK", b"HTTP/2.0 200 OK", b"HTTP/1.1 2000 OK"),
    ]
)
_BODY = st.sampled_from([b"ok", b"o", b"okk", b"", b"2\r\nok\r\n0\r\n\r\n", OK])
_END = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n"])


@given(_STATUS, st.lists(_LINES, max_size=4), _END, _BODY)
def test_an_answer_is_what_h11_says(
    status: bytes, lines: list[bytes], end: bytes, body: bytes
) -> None:
    """Whatever is taken as plain is the same to h11, to the last byte."""
    data = end.join([status, *lines, b"", b""]) + body

    decoded_answer = exchange.answer(data)

    assert decoded_answer is None or decoded_answer == oracle(data)


@given(st.binary(max_size=3), st.integers(0, len(OK)))
def test_a_damaged_answer(some: bytes, where: int) -> None:
    """The same with bytes in the middle of one."""
    data = OK[:where] + some + OK[where:]

    decoded_answer = exchange.answer(data)

    assert decoded_answer is None or decoded_answer == oracle(data)


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_an_answer_in_plain_chunks() -> None:
    """Its content is that of its chunks, in one piece, where the last chunk is here, too."""
    names = {"transfer-encoding": "chunked"}
    data = STREAM + b"1\r\no\r\n0A\r\nk"
    plain = STREAM + b"2\r\nok\r\nc\r\n and a dozen\r\n0\r\n\r\n"

    assert exchange.answer(plain) == (200, names, b"ok and a dozen")
    assert exchange.answer(plain[:-2]) is None
    assert exchange.answer(data) is None
    assert exchange.streamed(data) == (200, names, len(STREAM))
    assert exchange.chunks(data[len(STREAM) :]) == (b"o", b"0A\r\nk", False)


_CHUNK = st.sampled_from([b"2\r\nok\r\n", b"c\r\nand a dozen!\r\n", b"0\r\n\r\n", b"1;x\r\no\r\n"])


@given(st.lists(_CHUNK, max_size=5), st.binary(max_size=3), st.integers(0, 60))
def test_chunks_are_what_h11_says(several: list[bytes], some: bytes, where: int) -> None:
    """Whole ones first, then h11 from the first that is none: the same content, damaged or not."""
    data = b"".join(several)
    data = data[:where] + some + data[where:]

    content, rest, _ = exchange.chunks(data)

    assert content + _content(STREAM + rest) == _content(STREAM + data)
    decoded_answer = exchange.answer(STREAM + data)
    assert decoded_answer is None or decoded_answer == oracle(STREAM + data)


def _content(data: bytes) -> bytes:
    """What h11 has read of a body before its end, an error or the last of the bytes."""
    machine, _ = exchange.begun("GET", "/", (("host", "h"),), b"")
    machine.receive_data(data)
    body = bytearray()
    with contextlib.suppress(h11.RemoteProtocolError):
        while isinstance(event := machine.next_event(), h11.Response | h11.Data):
            body += event.data if isinstance(event, h11.Data) else b""
    return bytes(body)


_WORD = st.text(st.characters(max_codepoint=255), max_size=4)
_OWN = st.tuples(
    st.sampled_from(["Host", "host", "Content-Length", "Transfer-Encoding", "Accept"]),
    st.sampled_from(["h", "1", "2", "chunked"]),
)
_PLAIN = st.text("aZ09-_.~%/?=&", min_size=1, max_size=6)


@given(
    st.sampled_from(["GET", "POST", "PATCH"]) | _WORD,
    _PLAIN | _WORD,
    st.lists(_OWN | st.tuples(_PLAIN | _WORD, _PLAIN | _WORD), max_size=2).map(tuple),
    st.binary(max_size=3),
)
def test_a_request_is_what_h11_says(
    method: str, target: str, more: exchange.Headers, body: bytes
) -> None:
    """The same bytes, or the same refusal: nothing in a name or a value begins another line."""
    length = (("content-length", str(len(body))),) if body else ()
    headers = (("host", "h"), *more, *length)
    try:
        _, wanted = exchange.begun(method, target, headers, body)
    except (h11.LocalProtocolError, UnicodeEncodeError):
        with pytest.raises((h11.LocalProtocolError, UnicodeEncodeError)):
            exchange.request(method, target, headers, body)
        return

    decoded_answer = exchange.request(method, target, headers, body)

    assert decoded_answer == wanted
