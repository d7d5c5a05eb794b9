"""``koordlet top`` on a real terminal: however it ends, the terminal is as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.kit import deadline

_SCREEN, _BACK = b"\x1b[?1049h", b"\x1b[?1049l"


def read_until(terminal: int, mark: bytes) -> bytes:
    """What came, up to a mark."""
    found = b""
    while mark not in found:
        ready, _, _ = select.select([terminal], [], [], deadline.PATIENCE)
        assert ready, "nothing comes any more"
        found += os.read(terminal, 65536)
    return found


@pytest.mark.parametrize(
    ("how", "status"), [(b"q", 0), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_the_terminal_is_as_it_was(how: bytes | signal.Signals, status: int) -> None:
    """Main screen, cursor, lines and echo come back after a key and after a signal."""
    terminal, inside = pty.openpty()
    before = termios.tcgetattr(inside)
    top = subprocess.Popen(
        [sys.executable, "-m", "koordlet", "top"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "TERM": "xterm"},
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    try:
        read_until(terminal, _SCREEN)
        read_until(terminal, b"workload")
        if isinstance(how, bytes):
            os.write(terminal, how)
        else:
            top.send_signal(how)
        said = read_until(terminal, _BACK)
        assert status == top.wait(deadline.PATIENCE)
        assert b"Traceback" not in said
        assert before == termios.tcgetattr(inside)
    finally:
        top.kill()
        top.wait()
        os.close(terminal)
        os.close(inside)
