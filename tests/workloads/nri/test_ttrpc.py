"""Calls and answers: both ways, in any pieces, of any size."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.workloads.nri import mux, ttrpc

_streams = st.integers(1, (1 << 31) - 1)
_requests = st.builds(
    ttrpc.TtrpcRequest, _streams, st.text(max_size=9), st.text(max_size=9), st.binary(max_size=60)
)
_responses = st.builds(
    ttrpc.TtrpcResponse, _streams, st.binary(max_size=60), st.integers(1, 16), st.text(max_size=9)
)


@given(st.lists(st.one_of(_requests, _responses), max_size=5))
def test_both_ways(sent: list[ttrpc.TtrpcRequest | ttrpc.TtrpcResponse]) -> None:
    """What is written is read, each header and each body in a frame of its own."""
    cutter, reader = mux.Cutter(), ttrpc.TtrpcReader()
    received: list[ttrpc.Message] = []
    for message in sent:
        frames = list(cutter.feed(ttrpc.write(mux.PLUGIN, message)))
        assert len(frames[0][1]) == 10
        assert len(frames) <= 2
        for _, content in frames:
            received += reader.feed(content)

    assert sent == received


@given(st.lists(st.binary(max_size=64), max_size=10))
def test_any_bytes(pieces: list[bytes]) -> None:
    """They make messages or unreadable ones, or the connection is given up."""
    reader = ttrpc.TtrpcReader()
    with contextlib.suppress(mux.BrokenError):
        for piece in pieces:
            for message in reader.feed(piece):
                assert isinstance(
                    message, ttrpc.TtrpcRequest | ttrpc.TtrpcResponse | ttrpc.Unreadable
                )


def test_a_large_answer_is_two_frames() -> None:
    """Whatever its size: frames of 4 KiB would fill the runtime's queue."""
    sent = ttrpc.write(mux.PLUGIN, ttrpc.TtrpcResponse(1, b"x" * 3_000_000))

    assert len(list(mux.Cutter().feed(sent))) == 2


@pytest.mark.parametrize(
    ("kind", "body", "request_"), [(1, b"\x0b", True), (2, b"\x08", False), (9, b"", False)]
)
def test_unreadable_bodies(kind: int, body: bytes, *, request_: bool) -> None:
    """Their stream is known, so that they can be answered."""
    data = len(body).to_bytes(4, "big") + b"\0\0\0\7" + bytes((kind, 0)) + body
    (unreadable,) = ttrpc.TtrpcReader().feed(data)

    assert isinstance(unreadable, ttrpc.Unreadable)
    assert (7, request_) == (unreadable.stream, unreadable.request)


def test_a_message_without_a_body() -> None:
    """An empty answer is complete with its header."""
    (message,) = ttrpc.TtrpcReader().feed(b"\0\0\0\0\0\0\0\5\2\0")

    assert ttrpc.TtrpcResponse(5, b"") == message
