"""From the clone to the demo's summary in a terminal, recorded: ``python -m tests.kit.cast``.

Covers: ``first-minute.cast`` (asciicast, version 2) and its last screen as ``first-minute.svg`` in
``docs/images``. Does not cover: the console (``tests.browser.pictures``).

The demo runs without root, so that the recording shows the same machine wherever it is made. Every
line is the program's own, at its time; a player shortens pauses, the longest of which is the first
``make run`` installing its environment.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax import saxutils

REPO = Path(__file__).parents[2]
IMAGES = REPO / "docs" / "images"
#: Of the terminal; lines of the picture.
COLUMNS, ROWS = 100, 36
#: What ends the recording.
_LAST = "Ctrl-C ends it."
_NOBODY = 65534
#: Of text in the picture, in pixels.
_WIDE, _HIGH, _EDGE = 8.43, 19, 14
_SPACE = "\N{NO-BREAK SPACE}"

Event = tuple[float, str]


def record(
    words: Sequence[str], *, until: str, environment: dict[str, str], folder: Path = REPO
) -> Iterator[Event]:
    """What a program writes to a terminal, each with its time, to its end or some words."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    began = time.monotonic()
    running = subprocess.Popen(
        words,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    ended, tail = False, b""
    while True:
        try:
            data = os.read(ours, 65_536)
        except OSError:  # the kernel's answer once nobody has the other side open
            break
        yield round(time.monotonic() - began, 3), data.decode(errors="replace")
        tail = (tail + data)[-4096:]
        if not ended and until.encode() in tail:
            ended = True
            os.killpg(running.pid, signal.SIGINT)
    os.close(ours)
    running.wait(timeout=30)


def typed(words: str) -> Iterator[Event]:
    """A prompt, and what a reader types there."""
    for place, letter in enumerate(("$ ", *words, "\r\n")):
        yield round(0.08 * place, 3), letter


def cast(events: Sequence[Event]) -> str:
    """An asciicast of version 2: a header, then a line for each event."""
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "idle_time_limit": 1.5}
    lines: list[object] = [header, *([at, "o", text] for at, text in events)]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def screen(events: Sequence[Event]) -> list[str]:
    """The last lines; a line longer than the terminal goes on in the next one."""
    lines = [
        line[start : start + COLUMNS]
        for line in "".join(text for _, text in events).replace("\r", "").split("\n")
        for start in range(0, max(1, len(line)), COLUMNS)
    ]
    return lines[-ROWS:]


def picture(lines: Sequence[str]) -> str:
    """Lines of a terminal as SVG, whose viewers make one space of several that may break."""
    wide, high = round(COLUMNS * _WIDE + 2 * _EDGE), len(lines) * _HIGH + 2 * _EDGE
    text = f'<text x="{_EDGE}" y="{{:.0f}}">{{}}</text>\n'
    texts = "".join(
        text.format(_EDGE + _HIGH * (row + 0.75), saxutils.escape(line).replace(" ", _SPACE))
        for row, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img"'
        ' aria-label="The demo in a terminal after its first minute">\n'
        f'<rect width="{wide}" height="{high}" rx="8" fill="#0d1117"/>\n'
        '<g fill="#e6edf3" font-size="14"'
        ' font-family="ui-monospace, DejaVu Sans Mono, Liberation Mono, monospace">\n'
        f"{texts}</g>\n</svg>\n"
    )


def session(folder: Path) -> Iterator[Event]:
    """What a newcomer types in a folder, and what comes of it."""
    subprocess.run(["git", "clone", "--quiet", "--bare", REPO, folder / "koordlet.git"], check=True)
    places = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "TERM": "xterm-256color"}
    alone: list[str] = []
    if os.geteuid() == 0:
        subprocess.run(["chown", "--recursive", f"{_NOBODY}:{_NOBODY}", folder], check=True)
        alone = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    began = 0.0
    for place, words in (("", "git clone -q koordlet.git"), ("koordlet", "make run")):
        change = f"cd {place} && " if place else ""
        program = record(
            [*alone, *words.split()],
            until=_LAST,
            environment={**os.environ, **places},
            folder=folder / place,
        )
        for events, pause in ((typed(f"{change}{words}"), 0.3), (program, 0.5)):
            ended = began
            for at, text in events:
                ended = round(began + at, 3)
                yield ended, text
            began = ended + pause


def main() -> None:
    """Record the demo."""
    with tempfile.TemporaryDirectory(prefix="koordlet-demo-") as folder:
        shown = list(session(Path(folder)))
    for name, text in (("cast", cast(shown)), ("svg", picture(screen(shown)))):
        path = IMAGES / f"first-minute.{name}"
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(REPO)}\n")


if __name__ == "__main__":
    main()
