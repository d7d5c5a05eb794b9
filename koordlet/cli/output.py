"""Prints for every command: one JSON document, a plain table, an error with its culprit.

Covers: stdout and stderr forms shared by all commands. Does not cover: what is in them.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime as dt
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from koordlet.model import errors, printable
from koordlet.model import moment as moments


def print_json(document: Mapping[str, object]) -> None:
    """Print one document on stdout, ``version`` first, and nothing else."""
    print(json.dumps({"version": "v1", **document}, indent=2, default=str))


def show(
    form: str,
    document: Mapping[str, object],
    lines: Iterable[str],
    picture: Callable[[], str] = str,
) -> int:
    """Print a document, a picture, or lines for people; the exit status of a success."""
    if form == "json":
        print_json(document)
    elif form == "yaml":
        import yaml  # noqa: PLC0415 -- 8 ms that a table does without

        plain = json.loads(json.dumps({"version": "v1", **document}, default=str))
        sys.stdout.write(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
    elif form == "svg":
        sys.stdout.write(picture())
    else:
        sys.stdout.write("".join(f"{visible(line)}\n" for line in lines))
    return 0


def warn(several: Iterable[str]) -> None:
    """On stderr, one line each: what was left out of an input, and where it was."""
    for warning in several:
        say(warning)


def say(text: str) -> None:
    """Print one line on stderr."""
    print(f"koordlet: {visible(text)}", file=sys.stderr)


def print_error(error: errors.KoordletError, *, as_json: bool) -> None:
    """On stderr: ``koordlet: culprit: message (fix)``, or with ``-o json`` the contract's form."""
    if not as_json:
        print(f"koordlet: {error.printable()}", file=sys.stderr)
        return
    body = {name: getattr(error, name) for name in ("code", "message", "culprit", "fix")}
    print(json.dumps({"version": "v1", "error": body}), file=sys.stderr)


def moment(at: object) -> str:
    """A time in seconds since 1970, as people read it; ``?`` for what is none."""
    if not isinstance(at, int | float) or not 0 <= at <= moments.LAST:
        return "?"
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def cores(milli: float | None, missing: str = "-") -> str:
    """Thousandths of a core as cores."""
    return missing if milli is None else f"{milli / 1000:.2f}"


def width() -> int:
    """Columns of the terminal; many where the output is none."""
    if not sys.stdout.isatty() or _WIDE.get():
        return 1000
    import shutil  # noqa: PLC0415 -- 0.3 MB with bz2 and lzma, and an agent has no terminal

    return shutil.get_terminal_size((100, 24)).columns


_WIDE: contextvars.ContextVar[bool] = contextvars.ContextVar("wide", default=False)


@contextlib.contextmanager
def wide(*, on: bool) -> Iterator[None]:
    """Cut no table at the terminal's edge meanwhile (``-o wide``)."""
    before = _WIDE.set(on)
    try:
        yield
    finally:
        _WIDE.reset(before)


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str], indent: str = "") -> list[str]:
    """Aligned columns as lines; the last column is cut to the terminal's width."""
    room = width()
    every = [list(head), *[[visible(cell) for cell in row] for row in rows]]
    sizes = [max(len(row[i]) for row in every) for i in range(len(head))]
    lines = []
    for row in every:
        cells = [cell.ljust(size) for cell, size in zip(row[:-1], sizes[:-1], strict=True)]
        text = indent + "  ".join([*cells, row[-1]])
        lines.append(text if len(text) <= room else text[: room - 1] + "…")
    return lines


#: What somebody else chose, such as a name of a file, never steers the terminal.
visible = printable.escaped


def age(created: str, now: float) -> str:
    """How long ago that was, as kubectl prints it: ``90s``, ``5m``, ``3h``, ``2d``."""
    try:
        passed = max(0, int(now - moments.parse(created)))
    except ValueError:
        return ""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if passed >= 2 * size:
            return f"{passed // size}{unit}"
    return f"{passed}s"
