"""Holds ``tests/proves.toml``: which suite proves a module that has no test file of its own.

Covers: ``python -m tools.checks.proves``, which exits 1 where a module has neither a test file nor
a row, or a row is not true; ``--write``, which adds what is missing and removes what is wrong.
Does not cover: how well a suite proves anything; a mutation does that.

Rules:
1. A module's own test file mirrors its path: ``koordlet/host/fs/worker.py`` has
   ``tests/host/fs/test_worker.py``. Packages without code and generated code need none.
2. A row is true where its suite reaches the module in at most ``STEPS`` imports, ``tests/kit``
   included. A command, and a program of the demo, is reached by its name in quotes.
3. ``--write`` keeps each true row, so a better choice by hand stays.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path("tests/proves.toml")
HEAD = """\
# Which suite proves a module that has no test file of its own; `make proves` checks each row.
# `python -m tools.checks.proves --write` adds what is missing and removes what is wrong.
"""
#: A suite drives a plugin through the simulation of `tests/kit`, for instance.
STEPS = 4
#: Generated, or a process that only other processes start.
_EXEMPT = ("koordlet/rpc/gen/", "koordlet/__main__.py")
_IMPORT = re.compile(
    r"^ *(?:from ((?:koordlet|tests\.kit)[\w.]*) import (\([^)]*\)|[^\n]*)"
    r"|import (koordlet[\w.]*))",
    re.MULTILINE,
)
_CODE = re.compile(r"^(?:def|class|async def|if|for|import koordlet|[A-Z_]+ ?[:=])", re.MULTILINE)
_BY_NAME = ("koordlet/cli/", "koordlet/demo/")
_SLOW = ("tests/e2e/", "tests/vm/", "tests/bench/", "tests/browser/")


def imports(text: str) -> frozenset[str]:
    """Our modules that a text imports, as dotted names; a name in a module may be among them."""
    modules: set[str] = set()
    for package, names, module in _IMPORT.findall(text):
        modules.add(module or package)
        modules.update(f"{package}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", names))
    return frozenset(modules)


class Checkout:
    """The modules and suites of one checkout, and who imports whom."""

    def __init__(self, root: Path) -> None:
        self.root = root
        modules = {path: self._text(path) for path in self._paths("koordlet")}
        self.modules = [path for path, text in modules.items() if self._needs(path, text)]
        tests = {path: self._text(path) for path in self._paths("tests")}
        self.suites = {path: text for path, text in tests.items() if "/test_" in path}
        graph = modules | {path: text for path, text in tests.items() if "/kit/" in path}
        names = {dotted(path): path for path in graph}
        self._imports = {
            path: {names[name] for name in imports(text) if name in names}
            | {named for named in self.modules if is_named(named, path, text)}
            for path, text in (graph | self.suites).items()
        }

    def _paths(self, room: str) -> Iterator[str]:
        return (
            str(path.relative_to(self.root)) for path in sorted((self.root / room).rglob("*.py"))
        )

    def _text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    @staticmethod
    def _needs(path: str, text: str) -> bool:
        if path.startswith(_EXEMPT):
            return False
        return not path.endswith("__init__.py") or bool(_CODE.search(text))

    def has_mirror(self, module: str) -> bool:
        """Whether rule 1 holds."""
        return mirror(module) in self.suites

    def distance(self, module: str, suite: str) -> int | None:
        """How many imports lie between them; ``None``: more than rule 2 allows."""
        near = {suite} & self.suites.keys()
        for steps in range(1, STEPS + 1):
            near = {each for path in near for each in self._imports.get(path, ())}
            if module in near:
                return steps
        return None

    def choose(self, module: str) -> str | None:
        """The suite that is nearest, in the same room, and speaks most about the module."""
        room = f"tests/{module.split('/')[1]}/"
        word = re.compile(rf"\b{Path(module).stem}\b")
        mirrors = {mirror(path) for path in self.modules if module in self._imports[path]}

        def merit(suite: str) -> tuple[bool, bool, bool, int, float, str]:
            text = self.suites[suite]
            steps, share = self.distance(module, suite), len(word.findall(text)) / len(text)
            near = steps == 1 or suite in mirrors
            slow = suite.startswith(_SLOW)
            return not slow, near, suite.startswith(room), -(steps or 0), share, suite

        candidates = (suite for suite in self.suites if self.distance(module, suite) is not None)
        return max(candidates, key=merit, default=None)


def dotted(path: str) -> str:
    """``koordlet/host/observe.py`` as ``koordlet.host.observe``."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def is_named(module: str, path: str, text: str) -> bool:
    """Whether a suite, or a module beside it, names a command or a program of the demo."""
    if not module.startswith(_BY_NAME) or module == path:
        return False
    if path.startswith("koordlet/") and Path(path).parent != Path(module).parent:
        return False
    return all(f'"{word}"' in text for word in Path(module).stem.split("_"))


def mirror(module: str) -> str:
    """The path of a module's own test file."""
    folder, _, name = module.removeprefix("koordlet/").rpartition("/")
    return "/".join(filter(None, ("tests", folder, f"test_{name}")))


def read(root: Path) -> dict[str, str]:
    """The rows of the table: module to suite."""
    path = root / TABLE
    return dict(tomllib.loads(path.read_text(encoding="utf-8"))["proves"]) if path.exists() else {}


def problems(checkout: Checkout, rows: Mapping[str, str]) -> list[str]:
    """What is wrong, one sentence each."""
    wrong = [
        f"{module}: no {mirror(module)} and no row"
        for module in checkout.modules
        if module not in rows and not checkout.has_mirror(module)
    ]
    for module, suite in rows.items():
        if module not in checkout.modules:
            wrong.append(f"{module}: a row, but no such module")
        elif checkout.has_mirror(module):
            wrong.append(f"{module}: a row, but {mirror(module)} exists")
        elif checkout.distance(module, suite) is None:
            wrong.append(f"{module}: {suite} does not reach it")
    return wrong


def mended(checkout: Checkout, rows: Mapping[str, str]) -> dict[str, str]:
    """The table with each true row kept and each missing one chosen."""
    table = {}
    for module in checkout.modules:
        if checkout.has_mirror(module):
            continue
        suite = rows.get(module)
        if suite is None or checkout.distance(module, suite) is None:
            suite = checkout.choose(module)
        if suite is not None:
            table[module] = suite
    return table


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="mend the table")
    options = parser.parse_args(arguments)
    checkout, rows = Checkout(root), read(root)
    if options.write:
        rows = mended(checkout, rows)
        lines = [f'"{module}" = "{suite}"\n' for module, suite in sorted(rows.items())]
        (root / TABLE).write_text(HEAD + "\n[proves]\n" + "".join(lines), encoding="utf-8")
    wrong = problems(checkout, rows)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    if wrong:
        print("fix: write the test file, or a row of tests/proves.toml", file=sys.stderr)
        return 1
    print(f"  {len(checkout.modules)} modules, {len(rows)} of them proved by a suite of {TABLE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
