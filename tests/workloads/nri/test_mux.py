"""Frames: however the stream is cut, the same come out."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.workloads.nri import mux

_frames = st.lists(st.tuples(st.integers(0, (1 << 32) - 1), st.binary(max_size=50)), max_size=8)


@given(_frames, st.lists(st.integers(0, 400)))
def test_any_cut(frames: list[tuple[int, bytes]], cuts: list[int]) -> None:
    """Pieces of any size make the frames that were sent."""
    stream = b"".join(mux.frame(*sent) for sent in frames)
    cutter, at = mux.Cutter(), 0
    received: list[tuple[int, bytes]] = []
    for cut in [*sorted(cuts), len(stream)]:
        received += cutter.feed(stream[at:cut])
        at = max(at, min(cut, len(stream)))

    assert frames == received


@given(st.lists(st.binary(max_size=64), max_size=10))
def test_any_bytes(pieces: list[bytes]) -> None:
    """They make frames, or the connection is given up."""
    cutter = mux.Cutter()
    with contextlib.suppress(mux.BrokenError):
        assert all(len(content) <= mux.LARGEST for p in pieces for _, content in cutter.feed(p))


def test_a_frame_that_no_runtime_sends() -> None:
    """Nobody makes us keep four gigabytes."""
    with pytest.raises(mux.BrokenError, match="a frame of 4294967295 bytes"):
        list(mux.Cutter().feed(b"\0\0\0\1\xff\xff\xff\xff"))
