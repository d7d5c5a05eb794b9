"""The terminal of ``koordlet top``: keys and clicks as they come; as it was before, afterwards.

Covers: no lines and no echo, the wheel, signals, a terminal that goes away.
Does not cover: what a key does (``cli.top``), the screen (``cli.top_screen``).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from typing import TYPE_CHECKING

from koordlet.cli import streams

if TYPE_CHECKING:
    from rich import console

_MOUSE_ON, _MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l"
#: A key that sends several characters begins with Escape: it is one key, known or not.
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)|.", re.DOTALL)


@contextlib.contextmanager
def opened(terminal: console.Console) -> Iterator[int]:
    """The descriptor that says when a key was typed."""
    with _ended_politely(), _keyboard() as descriptor, _mouse(terminal):
        yield descriptor


def keys(descriptor: int) -> list[str]:
    """What was typed; a terminal that is gone says the key that quits."""
    try:
        return split(os.read(descriptor, 64))
    except OSError:  # it is gone, and this process outlives its session
        return split(b"")


def split(data: bytes) -> list[str]:
    """Keys in what was typed; an arrow is three characters."""
    # Nothing at all: the terminal is gone.
    return _KEY.findall(data.decode("utf-8", "replace")) or ["q"]


@contextlib.contextmanager
def _ended_politely() -> Iterator[None]:
    """A signal leaves through the front door: the terminal of whoever is ended stays usable.

    One that is gone takes nothing any more, and there is nobody to tell: as if it had hung up.
    """

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    # What a shell set to be ignored stays ignored.
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    except (streams.LostError, termios.error):
        streams.drop()
        raise SystemExit(128 + signal.SIGHUP) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _keyboard() -> Iterator[int]:
    """The keyboard without lines and echo; as it was before, afterwards."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _mouse(terminal: console.Console) -> Iterator[None]:
    """The wheel moves; the terminal selects text as before, afterwards."""
    terminal.file.write(_MOUSE_ON)
    try:
        yield
    finally:
        terminal.file.write(_MOUSE_OFF)
        terminal.file.flush()
