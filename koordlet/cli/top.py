"""``koordlet top``: what runs here and what it uses, live.

Covers: options, what each key does, drawing once a second.
Does not cover: the screen (``cli.top_screen``), where it comes from (``cli.node_source``), the
terminal (``cli.top_terminal``).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import select
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from rich import console, live

from koordlet.cli import (
    explain_cpu,
    explain_pod,
    node_source,
    options,
    output,
    top_cpus,
    top_replay,
    top_screen,
    top_terminal,
    top_workloads,
)
from koordlet.model import errors
from koordlet.report import documents

EXAMPLES = """\
koordlet top                      live; h shows the keys
koordlet top --once               one look, for a person
koordlet top --once -o json       one look, for a program
koordlet top --sort memory        most memory first
koordlet top --replay busy.tar.gz    a recording of `koordlet record`, moment by moment
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
_OPTIONS = {
    "--address HOST:PORT": "ask this agent (default: that of the configuration, if it answers)",
}
#: Arrows as terminals send them, plainly and in application mode, and how far each key moves.
_MOVES = {
    **dict.fromkeys(("k", "\x1b[A", "\x1bOA"), -1),
    **dict.fromkeys(("j", "\x1b[B", "\x1bOB"), 1),
    "\x1b[5~": -10,
    "\x1b[6~": 10,
}
#: The same sideways: CPUs, or moments of a recording.
_SIDEWAYS = {
    **dict.fromkeys(("\x1b[D", "\x1bOD"), -1),
    **dict.fromkeys(("\x1b[C", "\x1bOC"), 1),
}
#: The wheel as xterm sends it (1000 and 1006), up and down; and a click, with column and line.
_WHEEL = re.compile(r"\x1b\[<(64|65);\d+;\d+M")
_CLICK = re.compile(r"\x1b\[<0;(\d+);(\d+)M")
#: Looks that are remembered: two for each sign of the widest terminal.
_REMEMBERED = 800
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
    options.declare(parser, _OPTIONS)
    parser.add_argument(
        "--replay", metavar="ARCHIVE", help="show a recording of `koordlet record` instead"
    )
    parser.add_argument("--pods", metavar="FILE", help="who runs there, as for `koordlet plan`")
    options.cgroup_root(parser)


def _seconds(text: str) -> float:
    value = options.number(text)
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
    source = node_source.choose(args) if args.replay is None else top_replay.recorded(args)
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
        self._document: documents.Document = {}

    def run(self) -> None:
        """Look and draw until the person quits."""
        with contextlib.suppress(errors.KoordletError):  # an older agent: no sockets, no past
            places = top_cpus.places(self._source.topology())
            self._show = dataclasses.replace(self._show, places=places)
            if isinstance(self._source, node_source.Agent):
                recorded = self._source.ask(top_cpus.history_path(_REMEMBERED * self._every))
                history = tuple(top_cpus.past(recorded, self._every))
                self._show = dataclasses.replace(self._show, history=history)
        with (
            top_terminal.opened(self._terminal) as descriptor,
            live.Live(console=self._terminal, screen=True, auto_refresh=False) as drawn,
        ):
            due = time.monotonic()
            while True:
                if time.monotonic() >= due:
                    due = time.monotonic() + self._every
                    self._look()
                self._fit()
                drawn.update(top_screen.screen(self._document, self._show), refresh=True)
                # Not longer: the terminal may have another size by now.
                pause = min(_REDRAWN, max(0, due - time.monotonic()))
                ready, _, _ = select.select([descriptor], [], [], pause)
                if ready and not all(map(self._press, top_terminal.keys(descriptor))):
                    return

    def _look(self) -> None:
        if self._show.paused:
            return
        try:
            self._document, problem = self._source.read(), ""
        except errors.HostError as error:
            # The agent may be restarting: the last screen stays, and says that it is old.
            problem = str(error)
        self._show = dataclasses.replace(self._show, problem=problem)
        self._remember()

    def _remember(self) -> None:
        """Add what is shown to the past; a recording has its own."""
        show, seen = self._show, [self._document]
        if isinstance(self._source, top_replay.RecordingSource):
            moment, moments = self._source.moment, self._source.documents
            seen = moments[max(0, moment + 1 - _REMEMBERED) : moment + 1]
            show = dataclasses.replace(
                show, moment=moment, moments=len(moments), history=(), workloads=()
            )
        newest = 2 * top_screen.LATELY
        history = (*show.history, *map(top_cpus.used, seen))[-_REMEMBERED:]
        workloads = (*show.workloads, *map(top_workloads.used, seen[-newest:]))[-newest:]
        self._show = dataclasses.replace(show, history=history, workloads=workloads)

    def _fit(self) -> None:
        rows = len(top_workloads.chosen(self._document, self._show.sort, self._show.filter))
        cpus = len(top_cpus.owners(self._document))
        self._show = dataclasses.replace(
            self._show,
            height=self._terminal.height,
            width=self._terminal.width,
            # Who went on beyond the last row comes back with the first key, not the hundredth.
            cursor=min(self._show.cursor, max(0, rows - 1)),
            cpu=min(self._show.cpu, max(0, cpus - 1)),
        )

    def _press(self, key: str) -> bool:
        """Take one key; ``False`` ends the session."""
        if click := _CLICK.fullmatch(key):
            place = (int(click[1]) - 1, int(click[2]) - 1)
            target = top_screen.pointed(self._document, self._show, place)
            if "moment" in target:
                self._step(target["moment"] - self._show.moment)
                return True
            key, self._show = clicked(self._show, target)
        if key in _ENTER and not self._show.typing:
            lines = explained(self._source, self._document, self._show)
            self._show = dataclasses.replace(self._show, detail=tuple(lines))
            return True
        if key in _SIDEWAYS and self._show.moments and not self._show.on_cpus:
            self._step(_SIDEWAYS[key])
            return True
        after = pressed(self._show, key)
        if after is None:
            return False
        self._show = after
        return True

    def _step(self, moments: int) -> None:
        """Go on or back in a recording, and stop there."""
        if isinstance(self._source, top_replay.RecordingSource):
            self._source.step(moments)
            self._document = self._source.documents[self._source.moment]
            self._show = dataclasses.replace(self._show, paused=True)
            self._remember()


def explained(
    source: node_source.Source, document: documents.Document, show: top_screen.Show
) -> Iterator[str]:
    """The lines of ``koordlet explain`` about the chosen CPU or workload, if there is one."""
    cpus, rows = (
        sorted(top_cpus.owners(document)),
        top_workloads.chosen(document, show.sort, show.filter),
    )
    # Keys may be faster than the screen: the cursor is behind the last one until it is drawn.
    try:
        if show.on_cpus:
            owners = documents.rows(source.cpus(), "cpus")
            number = cpus[min(show.cpu, len(cpus) - 1)] if cpus else None
            owner = next((row for row in owners if row.get("cpu") == number), None)
            yield from () if owner is None else explain_cpu.lines(owner, owners)
        elif rows:
            row = rows[min(show.cursor, len(rows) - 1)]
            key = f"{row.get('namespace')}/{row.get('name')}"
            yield from explain_pod.lines(source.pod(key))
    except errors.KoordletError as error:
        yield error.printable()


def clicked(show: top_screen.Show, target: Mapping[str, Any]) -> tuple[str, top_screen.Show]:
    """The key that a click stands for, and what it has chosen before."""
    if show.typing:
        return "\r", show
    if show.detail or show.help:
        return _ESCAPE, show
    if "sort" in target:
        return str(target["sort"]), show
    if "row" in target or "cpu" in target:
        on_cpus = "cpu" in target
        chosen = dataclasses.replace(
            show,
            on_cpus=on_cpus,
            cpu=target.get("cpu", show.cpu),
            cursor=target.get("row", show.cursor),
        )
        return "\r" if chosen == show else "", chosen
    return "", show


def pressed(show: top_screen.Show, key: str) -> top_screen.Show | None:
    """Apply a key to the settings of the screen; ``None`` to quit."""
    if show.typing:
        return _typed(show, key)
    if key in ("q", "\x03"):
        return None
    if key in top_workloads.SORTS:
        return dataclasses.replace(show, sort=key, cursor=0)
    wheel = _WHEEL.fullmatch(key)
    step = _MOVES.get(key, 0) if wheel is None else 3 * (1 if wheel[1] == "65" else -1)
    if show.on_cpus:
        step = step or _SIDEWAYS.get(key, 0)
        if step:
            return dataclasses.replace(show, cpu=max(0, show.cpu + step))
    elif step:
        return dataclasses.replace(show, cursor=max(0, show.cursor + step))
    return {
        "/": dataclasses.replace(show, typing=True, cursor=0),
        "\t": dataclasses.replace(show, on_cpus=not show.on_cpus, detail=()),
        _ESCAPE: _closed(show),
        " ": dataclasses.replace(show, paused=not show.paused),
        "h": dataclasses.replace(show, help=not show.help),
        "?": dataclasses.replace(show, help=not show.help),
    }.get(key, show)


def _closed(show: top_screen.Show) -> top_screen.Show:
    """Escape closes a page; where none is open it clears the filter."""
    kept = show.filter if show.help or show.detail else ""
    return dataclasses.replace(show, filter=kept, help=False, detail=())


def _typed(show: top_screen.Show, key: str) -> top_screen.Show:
    if key in _ENTER:
        return dataclasses.replace(show, typing=False)
    if key in (_ESCAPE, "\x03"):
        return dataclasses.replace(show, typing=False, filter="")
    if key in _BACKSPACE:
        return dataclasses.replace(show, filter=show.filter[:-1])
    return dataclasses.replace(show, filter=show.filter + key) if key.isprintable() else show
