"""Finds import cycles between files, imports for types and inside functions counted.

Covers: our packages, by the text of their files.
Does not cover: the order of the rooms (import-linter).

``python -m tools.checks.cycles`` names the files of each cycle.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imports(name: str, text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the modules that a file imports; ``from package import module`` means the module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                imported = inner if inner in modules else node.module
                if imported in modules and imported != name:
                    yield imported


def cycles(texts: Mapping[str, str]) -> list[list[str]]:
    """Find the groups of modules that import each other, by name and text (Tarjan)."""
    edges = {name: sorted(set(imports(name, text, texts))) for name, text in texts.items()}
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        path.append(name)
        for other in edges[name]:
            if other not in order:
                visit(other)
            if other in path:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == order[name]:
            at = path.index(name)
            group = path[at:]
            del path[at:]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in sorted(edges):
        if name not in order:
            visit(name)
    return sorted(groups)


def main() -> int:
    """Check our packages."""
    texts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): (
            path.read_text(encoding="utf-8")
        )
        for package in ("koordlet", "tools")
        for path in (ROOT / package).rglob("*.py")
    }
    untied = cycles(texts)
    for group in untied:
        sys.stderr.write(f"these files import each other: {', '.join(group)}\n")
    return 1 if untied else 0


if __name__ == "__main__":
    sys.exit(main())
