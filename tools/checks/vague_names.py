"""Refuses variables, arguments and fields that are called ``one``, ``found`` or ``said``.

Covers: every name that a module of ``FOLDERS`` binds, generated code left out; every variable of a
script of the pages.
Does not cover: names of functions, attributes that are only read.

    python -m tools.checks.vague_names
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

#: They say nothing about the type; STYLE.md has the rule.
VAGUE = frozenset({"one", "found", "said"})
FOLDERS = ("koordlet", "tests", "tools")

#: Of a script: what is no code, and a vague name that is no property.
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_VAGUE = re.compile(rf"(?<![\w.])(?:\.\.\.)?({'|'.join(sorted(VAGUE))})\b")


def bound(source: str) -> list[tuple[int, str]]:
    """Line and name of each vague name that a module binds."""
    return sorted(
        {
            (line, name)
            for node in ast.walk(ast.parse(source))
            for line, name in _names(node)
            if name in VAGUE
        }
    )


def in_script(source: str) -> list[tuple[int, str]]:
    """The same of a script of a page."""
    lines = source.split("\n")
    return [
        (number, match[1])
        for number, line in enumerate(lines, start=1)
        for match in _VAGUE.finditer(_TEXT.sub("", line))
    ]


def problems(root: Path) -> list[str]:
    """A line for each vague name below a folder."""
    return [
        f"{path.as_posix()}:{line}: {name}: say the role of its type"
        for suffix, names in ((".py", bound), (".js", in_script))
        for path in sorted(root.rglob(f"*{suffix}"))
        if "gen" not in path.relative_to(root).parts
        for line, name in names(path.read_text(encoding="utf-8"))
    ]


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield node.lineno, name
        case ast.ExceptHandler(name=str(name)):
            yield node.lineno, name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield node.lineno, name
        case ast.MatchMapping(rest=str(name)):
            yield node.lineno, name
        case ast.alias(asname=str(name)):
            yield node.lineno, name
        case _:
            pass


if __name__ == "__main__":
    lines = [line for folder in FOLDERS for line in problems(Path(folder))]
    sys.stderr.writelines(f"  {line}\n" for line in lines)
    sys.exit(bool(lines))
