"""The page ``docs/api-grpc.md``, from the ``.proto`` files and their comments.

Covers: services, messages and enumerations of ``koordlet.v1``, who may call. Does not cover: how
calls are made (``docs/objects.md``, ``koordlet.client``).

    python -m tools.docs.grpc_api > docs/api-grpc.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from koordlet.model.record import dataclass
from koordlet.rpc import permissions

SOURCES = Path(permissions.__file__).parent / "proto" / "koordlet" / "v1"

_HEAD = """\
# gRPC: koordlet.v1

The agent serves `NodeFeed`; a scheduler serves `NodeIngest`, and a standalone one `Reservations`
and `Scheduler` as well. Health and reflection are on everywhere. `koordlet.client` speaks the feed
from Python, `koordlet get` and `koordlet watch` from a shell.

This page is generated: `python -m tools.docs.grpc_api > docs/api-grpc.md`.
"""
_WHO = """\
## Who may call

Over TCP, by the rights of the caller's certificate; the owner of a Unix socket may call everything
about everybody. A method that is not in this table is not served.
"""
_BLOCK = re.compile(r"(service|message|enum) (\w+) \{(\})?")
_RPC = re.compile(r"rpc (\w+)\((stream )?([\w.]+)\) returns \((stream )?([\w.]+)\);?")
_FIELD = re.compile(r"((?:optional |repeated )?(?:map<[^>]+>|[\w.]+)) (\w+) = (\d+)")
_VALUE = re.compile(r"(\w+) = (\d+);")


def page() -> str:
    """The whole page."""
    files = sorted(SOURCES.glob("*.proto"))
    return "\n".join(
        [
            _HEAD,
            _who(),
            *(line for source in files for line in _file(source.name, source.read_text())),
        ]
    )


def _who() -> str:
    """The table of ``permissions``."""
    rows = "\n".join(
        f"| `{method}` | {permissions.who(method)} |" for method in permissions.METHODS
    )
    return f"{_WHO}\n| method | one of these rights | about whom |\n|---|---|---|\n{rows}\n"


@dataclass
class _Section:
    """A service, message or enumeration on its way."""

    title: str
    comment: str
    rows: list[str] = field(default_factory=list)


def _file(name: str, text: str) -> Iterator[str]:
    yield f"## {name}\n"
    comment: list[str] = []
    made: list[_Section] = []
    #: Those that are open; ``None``: a oneof, whose fields are those of the message around it.
    stack: list[_Section | None] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("//"):
            comment.append(line[2:].strip())
            continue
        if line.startswith("syntax") and comment:
            yield " ".join(filter(None, comment)) + "\n"
        elif block := _BLOCK.match(line):
            inside = ".".join(
                [*(section.title.split()[1] for section in stack[-1:] if section), block[2]]
            )
            made.append(_Section(f"{block[1]} {inside}", " ".join(comment)))
            stack += [] if block[3] else [made[-1]]
        elif line.startswith("oneof "):
            stack.append(None)
        elif line.startswith("}") and stack:
            stack.pop()
        elif row := _row(line, " ".join(comment), alternative=bool(stack) and stack[-1] is None):
            next(section for section in reversed(stack) if section is not None).rows.append(row)
        comment = []
    for section in made:
        yield from _section(section)


def _section(section: _Section) -> Iterator[str]:
    yield f"### {section.title}\n"
    if section.comment:
        yield f"{section.comment}\n"
    if section.rows:
        yield "| name | what | |\n|---|---|---|\n" + "\n".join(section.rows) + "\n"


def _row(line: str, comment: str, *, alternative: bool) -> str:
    if rpc := _RPC.match(line):
        taken, given = f"{rpc[2] or ''}{rpc[3]}", f"{rpc[4] or ''}{rpc[5]}"
        return f"| `{rpc[1]}` | `{taken}` → `{given}` | {comment} |"
    if entry := _FIELD.match(line):
        one_of = " (one of)" if alternative else ""
        return f"| `{entry[2]}` = {entry[3]} | `{entry[1]}`{one_of} | {comment} |"
    if value := _VALUE.match(line):
        return f"| `{value[1]}` | {value[2]} | {comment} |"
    return ""


if __name__ == "__main__":
    sys.stdout.write(page())
