"""The recorded minute: what a program writes to its terminal, as a cast and as a picture."""

from __future__ import annotations

import json
import os
import re
import sys

from tests.kit import cast, demos

_PROGRAM = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("columns", os.get_terminal_size().columns, flush=True)
print("enough", flush=True)
signal.sigwait({signal.SIGINT})
print("undone", flush=True)
"""


def test_a_program_is_recorded_on_a_terminal_until_its_words_and_to_its_end() -> None:
    """It is told to stop as by Ctrl-C; what it writes then is recorded as well, in order."""
    words = [sys.executable, "-c", _PROGRAM]
    events = list(cast.record(words, until="enough", environment=dict(os.environ)))
    text = "".join(part for _, part in events)
    assert text.split() == ["columns", str(cast.COLUMNS), "enough", "undone"]
    assert sorted(at for at, _ in events) == [at for at, _ in events]


def test_a_screen_has_the_last_lines_and_long_ones_go_on_below() -> None:
    """As a terminal of that width shows them."""
    lines = cast.screen([(0.0, "first\r\n" + "x" * (cast.COLUMNS + 1)), (1.0, "\r\n\r\nend")])
    assert lines == ["first", "x" * cast.COLUMNS, "x", "", "end"]
    assert cast.screen([(0.0, "\r\n".join(map(str, range(99))))])[0] == str(99 - cast.ROWS)


def test_the_recorded_minute_is_one_recording() -> None:
    """Its picture is its own last screen; times do not go back; no machine is in it."""
    text = (cast.IMAGES / "first-minute.cast").read_text(encoding="utf-8")
    header, *events = map(json.loads, text.splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, cast.COLUMNS, cast.ROWS)
    shown = [(at, part) for at, kind, part in events if kind == "o"]
    assert len(shown) == len(events)
    assert sorted(at for at, _ in shown) == [at for at, _ in shown]
    drawn = (cast.IMAGES / "first-minute.svg").read_text(encoding="utf-8")
    assert drawn == cast.picture(cast.screen(shown))
    assert "The demo is over: all changes are undone." in "".join(part for _, part in shown)
    assert str(cast.REPO) not in text


def test_the_recorded_minute_has_the_words_of_todays_comparison() -> None:
    """Heads and labels of its table and its summary; where they change, it is recorded anew."""
    today, _ = demos.compared(demos.Stage(off=0.1, on=0.01))
    lines = [line for line in today.splitlines() if re.match("TIME|The same|  |Without", line)]
    labels = [label.split() for line in lines for label in re.findall(r"[A-Za-z][^\d]{4,}", line)]
    text = (cast.IMAGES / "first-minute.cast").read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()[1:]]
    recorded = " ".join("".join(part for _, _, part in events).split())

    assert len(lines) == 10
    assert [words for words in labels if " ".join(words) not in recorded] == []
