"""Events of processes: what is told, and what of it counts."""

from __future__ import annotations

import os
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.host.process import events
from tests.kit import deadline


def event(what: int, thread: int, process: int) -> bytes:
    """An event as the kernel sends it."""
    body = struct.pack("=IIQII", what, 0, 1, thread, process)
    return struct.pack("=IHHIIIIIIHH", 76, 3, 0, 0, 0, 1, 1, 0, 0, len(body), 0) + body


def test_only_the_start_of_a_program_counts() -> None:
    """Its process, not its thread; forks and ends are nothing."""
    assert events.executed(event(0x2, 8, 7)) == 7
    assert {events.executed(event(what, 8, 7)) for what in (0, 1, 0x80000000)} == {None}


@given(st.binary(max_size=120))
def test_any_bytes(data: bytes) -> None:
    """They are an event or they are none."""
    executed = events.executed(data)

    assert executed is None or len(data) >= 60


def test_a_real_program() -> None:
    """The kernel tells of a program that begins, to who may hear it.

    Whom it tells is the choice of whoever started this shell (root, the first namespaces), and no
    set-up inside can change it: so the test is skipped, on CI too.
    """
    try:
        listener = events.ProcessEvents()
    except OSError as error:
        pytest.skip(f"nobody may listen here: {error}")
    try:
        if os.geteuid() != 0:
            pytest.skip("the kernel tells root only")
        seen: set[int] = set()

        def told() -> bool:
            with subprocess.Popen(["true"]) as child:
                child.wait()
            seen.update(listener.hear() or ())
            return child.pid in seen

        try:
            deadline.until(told, "the kernel tells of it", seconds=2.0)
        except AssertionError:
            pytest.skip("the kernel tells nobody in this namespace")
    finally:
        listener.close()
