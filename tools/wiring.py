"""Finds assignments to attributes of other objects: objects are wired when they are made.

Covers: ``other.name = …`` in every form, except on ``self`` and ``cls``, and on an object that the
same function has just made. Does not cover: ``setattr``, mutable containers.

Files that still do it are listed in ``tools/wiring_allowed.txt``; a file that no longer does it
leaves the list, so that the list only shrinks. ``python -m tools.wiring`` checks; ``--write`` makes
the list anew.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = Path(__file__).with_name("wiring_allowed.txt")
_GENERATED = "koordlet/rpc/gen/"


def assignments(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and target of each assignment to an attribute of another object."""
    yield from _within(ast.parse(text), frozenset())


def _within(scope: ast.AST, made: frozenset[str]) -> Iterator[tuple[int, str]]:
    nodes = list(_own(scope))
    made |= {name for node in nodes for name in _made(node)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _within(node, made)
        for target in _targets(node):
            owner = target.value
            if not (isinstance(owner, ast.Name) and owner.id in {"self", "cls", *made}):
                yield target.lineno, ast.unparse(target)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, in order, without those of the functions in it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _own(node)


def _targets(node: ast.AST) -> Iterator[ast.Attribute]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    while targets:
        target = targets.pop(0)
        if isinstance(target, ast.Tuple | ast.List):
            targets[:0] = target.elts
        elif isinstance(target, ast.Starred):
            targets.insert(0, target.value)
        elif isinstance(target, ast.Attribute):
            yield target


def _made(node: ast.AST) -> Iterator[str]:
    """Yield the local variables that hold a new object: the callee is named as classes are."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return
    callee = node.value.func
    name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
    if name.lstrip("_")[:1].isupper() or name == "cls":
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def problems(files: Iterable[tuple[str, str]], allowed: Iterable[str]) -> list[str]:
    """Compare files, by path and text, with the list of those that may still assign."""
    wrong: list[str] = []
    stale = set(allowed)
    for path, text in files:
        lines = list(assignments(text))
        if path not in stale:
            wrong += [f"{path}:{line}: {target} is assigned from outside" for line, target in lines]
        elif lines:
            stale.remove(path)
    return wrong + [f"{path}: take it off {ALLOWED.name}" for path in sorted(stale)]


def _files() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.glob("koordlet/**/*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(_GENERATED):
            yield name, path.read_text(encoding="utf-8")


def main(words: list[str]) -> int:
    """Check the tree. Exit 1 with one line for each problem."""
    files = list(_files())
    if words == ["--write"]:
        listed = [path for path, text in files if any(assignments(text))]
        ALLOWED.write_text("".join(f"{path}\n" for path in listed), encoding="utf-8")
        return 0
    wrong = problems(files, ALLOWED.read_text(encoding="utf-8").split())
    for problem in wrong:
        sys.stderr.write(f"{problem}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
