"""``koordlet top``: what runs here and what it uses, live.

Covers: options, keys, drawing once a second, the terminal as it was before.
Does not cover: the screen (``cli.top_screen``), where it comes from (``cli.node_source``).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator

from rich import console, live

from koordlet.cli import node_source, options, output, top_screen
from koordlet.model import errors
from koordlet.report import documents

EXAMPLES = """\
koordlet top                      live; h shows the keys
koordlet top --once               one look, for a person
koordlet top --once -o json       one look, for a program
koordlet top --sort memory        most memory first
"""
_SORTS = {
    "cpu": "c",
    "memory": "m",
    "throttling": "t",
    "pressure": "p",
    "io": "i",
    "network": "w",
    "name": "n",
}
_ESCAPE, _ENTER, _BACKSPACE = "\x1b", ("\r", "\n"), ("\x7f", "\b")
#: Arrows as terminals send them, plainly and in application mode, and how far each key moves.
_MOVES = {
    **dict.fromkeys(("k", "\x1b[A", "\x1bOA"), -1),
    **dict.fromkeys(("j", "\x1b[B", "\x1bOB"), 1),
    "\x1b[5~": -10,
    "\x1b[6~": 10,
}
#: A key that sends several characters begins with Escape: it is one key, known or not.
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)|.", re.DOTALL)
#: Seconds after which a screen is drawn again at the latest.
_REDRAWN = 1.0


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.config(parser)
    options.root(parser)
    options.output(parser, ("table", "json"))
    parser.add_argument("--once", action="store_true", help="look once, print, and end")
    parser.add_argument(
        "--every", metavar="SECONDS", type=_seconds, default=1.0, help="how often to look (1)"
    )
    parser.add_argument(
        "--sort", choices=sorted(_SORTS), default="cpu", help="what comes first (default: cpu)"
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="ask this agent (default: that of the configuration, if it answers)",
    )
    options.cgroup_root(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.5 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"from 0.5 to 3600 seconds, not {text!r}")
    return value


def run(args: argparse.Namespace) -> int:
    """Once, or until the person has seen enough."""
    if args.output == "json" and not args.once:
        raise errors.ConfigError(
            "is one document, and top goes on", culprit="-o json", fix="add --once"
        )
    terminal = console.Console()
    drawable = terminal.is_terminal and not terminal.is_dumb_terminal
    if not args.once and not (sys.stdin.isatty() and drawable):
        raise errors.ConfigError(
            "needs a terminal that moves its cursor",
            culprit="koordlet top",
            fix="add --once to look once",
        )
    source = node_source.choose(args)
    if args.once:
        return _once(args, source, terminal)
    _Session(source, terminal, _show(args, source, terminal), args.every).run()
    return 0


def _show(
    args: argparse.Namespace, source: node_source.Source, terminal: console.Console
) -> top_screen.Show:
    return top_screen.Show(
        sort=_SORTS[args.sort],
        source=source.name,
        bars=terminal.encoding.lower().startswith("utf"),
        height=terminal.height,
        width=terminal.width,
    )


def _once(args: argparse.Namespace, source: node_source.Source, terminal: console.Console) -> int:
    if isinstance(source, node_source.Self):
        source.settle(args.every)
    try:
        document = source.read()
    finally:
        if isinstance(source, node_source.Self):
            source.close()
    if args.output == "json":
        output.print_json(document)
    else:
        whole = dataclasses.replace(_show(args, source, terminal), height=10_000, keys=False)
        terminal.print(top_screen.screen(document, whole))
    return 0


class _Session:
    """An interactive session on one terminal."""

    def __init__(
        self,
        source: node_source.Source,
        terminal: console.Console,
        show: top_screen.Show,
        every: float,
    ) -> None:
        self._source = source
        self._terminal = terminal
        self._show = show
        self._every = every
        self._found: documents.Document = {}

    def run(self) -> None:
        """Look and draw until the person quits."""
        with (
            _ended_politely(),
            _keys() as descriptor,
            live.Live(console=self._terminal, screen=True, auto_refresh=False) as drawn,
        ):
            due = time.monotonic()
            while True:
                if time.monotonic() >= due:
                    due = time.monotonic() + self._every
                    self._look()
                self._fit()
                drawn.update(top_screen.screen(self._found, self._show), refresh=True)
                # Not longer: the terminal may have another size by now.
                pause = min(_REDRAWN, max(0, due - time.monotonic()))
                ready, _, _ = select.select([descriptor], [], [], pause)
                if ready and not all(map(self._press, _split(os.read(descriptor, 64)))):
                    return

    def _look(self) -> None:
        if self._show.paused:
            return
        try:
            self._found, problem = self._source.read(), ""
        except errors.HostError as error:
            # The agent may be restarting: the last screen stays, and says that it is old.
            problem = str(error)
        self._show = dataclasses.replace(self._show, problem=problem)

    def _fit(self) -> None:
        rows = len(top_screen.chosen(self._found, self._show))
        self._show = dataclasses.replace(
            self._show,
            height=self._terminal.height,
            width=self._terminal.width,
            # Who went on beyond the last row comes back with the first key, not the hundredth.
            first=min(self._show.first, max(0, rows - 1)),
        )

    def _press(self, key: str) -> bool:
        """Take one key; ``False`` ends the session."""
        after = pressed(self._show, key)
        if after is None:
            return False
        self._show = after
        return True


def pressed(show: top_screen.Show, key: str) -> top_screen.Show | None:
    """Apply a key to the settings of the screen; ``None`` to quit."""
    if show.typing:
        return _typed(show, key)
    if key in ("q", "\x03"):
        return None
    if key in top_screen.SORTS:
        return dataclasses.replace(show, sort=key, first=0)
    if key in _MOVES:
        return dataclasses.replace(show, first=max(0, show.first + _MOVES[key]))
    return {
        "/": dataclasses.replace(show, typing=True, first=0),
        _ESCAPE: dataclasses.replace(show, filter="", help=False),
        " ": dataclasses.replace(show, paused=not show.paused),
        "h": dataclasses.replace(show, help=not show.help),
        "?": dataclasses.replace(show, help=not show.help),
    }.get(key, show)


def _typed(show: top_screen.Show, key: str) -> top_screen.Show:
    if key in _ENTER:
        return dataclasses.replace(show, typing=False)
    if key in (_ESCAPE, "\x03"):
        return dataclasses.replace(show, typing=False, filter="")
    if key in _BACKSPACE:
        return dataclasses.replace(show, filter=show.filter[:-1])
    return dataclasses.replace(show, filter=show.filter + key) if key.isprintable() else show


def _split(data: bytes) -> list[str]:
    """Keys in what was typed; an arrow is three characters."""
    # Nothing at all: the terminal is gone.
    return _KEY.findall(data.decode("utf-8", "replace")) or ["q"]


@contextlib.contextmanager
def _ended_politely() -> Iterator[None]:
    """SIGTERM leaves through the front door: the terminal of whoever is ended stays usable."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _keys() -> Iterator[int]:
    """The keyboard without lines and echo; as it was before, afterwards."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
