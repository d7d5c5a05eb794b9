"""``koordlet top`` in a terminal: a real one of the kernel, of any size, alphabet and manners."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.kit import deadline, live

_MACHINE = live.PROJECT / "fixtures" / "sysfs" / "epyc-ccd.tar.gz"


class Terminal:
    """A terminal with ``koordlet top`` of a recorded machine in it."""

    def __init__(
        self,
        *words: str,
        rows: int = 24,
        columns: int = 80,
        stderr: IO[bytes] | None = None,
        **env: str,
    ) -> None:
        self._master, slave = pty.openpty()
        self._slave = slave
        self._open = [self._master, slave]
        self.size(rows, columns)
        self.before = termios.tcgetattr(slave)
        environment = {**os.environ, "TERM": "xterm", **env}
        for name in ("COLUMNS", "LINES", "KOORDLET_ROOT"):
            environment.pop(name, None)
        # As a login shell starts it, whatever this process was told to ignore (nohup, a job's INT).
        heard = ["env", "--default-signal=HUP,INT,TERM"]
        self.process = subprocess.Popen(
            [*heard, sys.executable, "-m", "koordlet", "top", "--root", str(_MACHINE), *words],
            stdin=slave,
            stdout=slave,
            stderr=slave if stderr is None else stderr,
            cwd=live.PROJECT,
            env=environment,
            start_new_session=True,
        )
        self.text = ""

    def size(self, rows: int, columns: int) -> None:
        """Give it another size, as a window that is dragged."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, words: str) -> None:
        """Wait until something is shown."""
        deadline.until(lambda: self._shows(words), f"{words!r} in {self.text[-2000:]!r}")

    def _shows(self, words: str) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.1)
        if ready:
            self.text += os.read(self._master, 65536).decode("latin-1")
        return words in self.text

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._master, keys)

    def end(self) -> int:
        """Its exit status; whatever it still writes is taken."""
        deadline.until(lambda: self._shows("") and self.process.poll() is not None, "its end")
        return self.process.wait()

    @property
    def as_before(self) -> bool:
        """Whether the terminal is as it was."""
        return termios.tcgetattr(self._slave) == self.before

    def go_away(self) -> None:
        """Be closed, as a window; what runs in it is told nothing, as a process of no session."""
        while self._open:
            os.close(self._open.pop())

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self.go_away()


@pytest.fixture
def open_terminal() -> Iterator[typing.Callable[..., Terminal]]:
    """Opens terminals; all are closed at the end."""
    terminals: list[Terminal] = []

    def open_one(*words: str, **how: typing.Any) -> Terminal:
        terminals.append(Terminal(*words, **how))
        return terminals[-1]

    yield open_one
    for terminal in terminals:
        terminal.close()


def test_another_size(open_terminal: typing.Callable[..., Terminal]) -> None:
    """A window that grows is filled within a second, however seldom is looked."""
    terminal = open_terminal("--every", "3600", rows=10, columns=40)
    terminal.until("more room")
    terminal.size(60, 200)
    terminal.process.send_signal(signal.SIGWINCH)
    terminal.until("BE is not limited")
    terminal.press(b"q")

    assert terminal.end() == 0
    assert terminal.as_before


def test_a_click_is_heard(open_terminal: typing.Callable[..., Terminal]) -> None:
    """The terminal is asked for clicks; one on the help closes it, as it closes no program."""
    terminal = open_terminal("--every", "3600", rows=40, columns=100)
    terminal.until("sort c m t")
    terminal.press(b"h")
    terminal.until("choose a workload or CPU, again")
    terminal.text = ""
    terminal.press(b"\x1b[<0;3;3M\x1b[<0;3;3m")
    terminal.until("no workloads declared")
    terminal.press(b"q")

    assert terminal.end() == 0
    assert "\x1b[?1006l\x1b[?1000l" in terminal.text


def test_another_alphabet(open_terminal: typing.Callable[..., Terminal]) -> None:
    """A terminal that has no ellipsis shows another sign for it."""
    terminal = open_terminal(columns=40, PYTHONIOENCODING="latin-1")
    terminal.until("sort c m t")
    terminal.press(b"q")

    assert terminal.end() == 0, terminal.text


def test_a_terminal_that_cannot_go_back(open_terminal: typing.Callable[..., Terminal]) -> None:
    """Where nothing can be drawn over, nothing is: the error names what to do."""
    terminal = open_terminal(TERM="dumb")

    assert terminal.end() == 2
    assert "--once" in terminal.text


@pytest.mark.parametrize(
    ("how", "status"),
    [(b"q", 0), (signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)],
)
def test_the_terminal_is_as_it_was(
    open_terminal: typing.Callable[..., Terminal], how: bytes | signal.Signals, status: int
) -> None:
    """Main screen, cursor, lines and echo come back after a key and after a signal."""
    terminal = open_terminal()
    terminal.until("sort")
    if isinstance(how, bytes):
        terminal.press(how)
    else:
        terminal.process.send_signal(how)

    assert status == terminal.end()
    assert "\x1b[?1049l" in terminal.text
    assert "Traceback" not in terminal.text
    assert terminal.as_before


def test_a_terminal_that_goes_away(
    open_terminal: typing.Callable[..., Terminal], tmp_path: Path
) -> None:
    """It ends as if the terminal had hung up, and complains to nobody."""
    complaints = tmp_path / "complaints"
    with complaints.open("wb") as errors:
        terminal = open_terminal(stderr=errors)
        terminal.until("sort")
        terminal.go_away()

        assert terminal.process.wait(timeout=60) == 128 + signal.SIGHUP
    assert complaints.read_text() == ""
