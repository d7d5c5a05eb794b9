"""Manual pages, from the help of each command.

Covers: one page for the program, one for each command, in the form of man(7).
Does not cover: where they are installed.

    python -m tools.docs.man build/man        koordlet.1, koordlet-plan.1, ...
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import koordlet
from koordlet import cli


def pages() -> dict[str, str]:
    """File name to text."""
    top = cli.parser(None, everything=True)
    made = {"koordlet.1": "\n".join(_program(top)) + "\n"}
    for name in cli.COMMANDS:
        made[f"koordlet-{name}.1"] = "\n".join(_command(name, cli.parser(name))) + "\n"
    return made


def _program(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from _head("koordlet", parser.description or "")
    yield from (".SH SYNOPSIS", ".B koordlet", ".I COMMAND", "[options]", ".SH COMMANDS")
    for name, line in cli.COMMANDS.items():
        yield from (".TP", f".BR koordlet\\-{_text(name)} (1)", _text(line))
    yield from _examples(parser)


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    own = _sub(parser, name)
    yield from _head(f"koordlet-{name}", own.description or "")
    yield from _options(own)
    yield from _examples(own)
    yield from (".SH SEE ALSO", ".BR koordlet (1)")


def _sub(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    choices: Any = next(
        action.choices
        for action in parser._actions  # noqa: SLF001 -- argparse has no other way
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    )
    own: argparse.ArgumentParser = choices[name]
    return own


def _head(name: str, description: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "koordlet {koordlet.__version__}"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(description.rstrip('.'))}")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield from (".SH SYNOPSIS", _text(usage), ".SH OPTIONS")
    for action in parser._actions:  # noqa: SLF001 -- argparse has no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, own in action.choices.items():
                yield from (".TP", f".B {_text(name)}", _text(own.description or ""))
            continue
        if action.help == argparse.SUPPRESS:
            continue
        value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
        shown = " ".join(value) if isinstance(value, tuple) else str(value)
        names = ", ".join(action.option_strings) or shown
        term = f"{names} {shown}" if action.option_strings and action.nargs != 0 else names
        # A list of choices may be longer than a line, which breaks at spaces alone.
        term = term.replace(",", ", ") if " " not in term else term
        words = (action.help or "") % {**vars(action), "prog": parser.prog}
        yield from (".TP", f".B {_text(term)}", _text(words))


def _examples(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from (".SH EXAMPLES", ".nf")
    yield from (_text(line.strip()) for line in (parser.epilog or "").splitlines()[1:])
    yield ".fi"


def _text(words: str) -> str:
    """Nothing of it is a request to the formatter."""
    plain = words.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain[:1] in (".", "'") else plain


def main(folder: str) -> int:
    """Write all pages."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (place / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
