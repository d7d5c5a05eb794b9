"""Holds ``tests/proves.toml``: which suite proves a module that has no test file of its own.

Covers: ``python -m tools.checks.proves``, which exits 1 where a module has neither a test file nor
a row, or a row is not true; ``--write``, which adds what is missing and removes what is wrong.
Does not cover: how well a suite proves anything; a mutation does that.

Rules:
1. A module's own test file mirrors its path: ``koordlet/host/fs/worker.py`` has
   ``tests/host/fs/test_worker.py``. Packages without code and generated code need none.
2. A row is true where its suite imports the module, or a module that imports it, or runs it as a
   command.
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
#: Generated, or a process that only other processes start.
_EXEMPT = ("koordlet/rpc/gen/", "koordlet/__main__.py")
_IMPORT = re.compile(
    r"^ *(?:from (koordlet[\w.]*) import (\([^)]*\)|[^\n]*)|import (koordlet[\w.]*))", re.MULTILINE
)
_CODE = re.compile(r"^(?:def|class|async def|if|for|import koordlet|[A-Z_]+ ?[:=])", re.MULTILINE)
_SLOW = ("tests/e2e/", "tests/vm/", "tests/bench/", "tests/browser/")


def imports(text: str) -> frozenset[str]:
    """Our modules that a text imports, as dotted names; a name in a module may be among them."""
    found: set[str] = set()
    for package, names, module in _IMPORT.findall(text):
        found.add(module or package)
        found.update(f"{package}.{name}" for name in re.findall(r"(\w+)(?: as \w+)?", names))
    return frozenset(found)


class Checkout:
    """The modules and suites of one checkout, and who imports whom."""

    def __init__(self, root: Path) -> None:
        self.root = root
        modules = {path: self._text(path) for path in self._paths("koordlet")}
        self.suites = {path: self._text(path) for path in self._paths("tests") if "/test_" in path}
        self._imports = {path: imports(text) for path, text in (modules | self.suites).items()}
        self.modules = [path for path, text in modules.items() if self._needs(path, text)]
        #: Module to the modules that import it.
        self._importers: dict[str, set[str]] = {}
        names = {dotted(path): path for path in modules}
        for path in modules:
            for name in self._imports[path]:
                if name in names:
                    self._importers.setdefault(names[name], set()).add(path)

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

    def is_true(self, module: str, suite: str) -> bool:
        """Rule 2."""
        if suite not in self.suites:
            return False
        near = {module, *self._importers.get(module, ())}
        if any(dotted(path) in self._imports[suite] for path in near):
            return True
        command = f'"{Path(module).stem}"'
        return module.startswith("koordlet/cli/") and command in self.suites[suite]

    def choose(self, module: str) -> str | None:
        """The suite that speaks most about a module, or else about those that import it."""
        candidates = [suite for suite in self.suites if self.is_true(module, suite)]
        importers = self._importers.get(module, ())
        mirrors = {mirror(path) for path in importers}
        room = f"tests/{module.split('/')[1]}/"
        word = re.compile(rf"\b{Path(module).stem}\b")

        def merit(suite: str) -> tuple[bool, bool, bool, float, str]:
            text = self.suites[suite]
            share = len(word.findall(text)) / (len(text) + 1)
            direct = dotted(module) in self._imports[suite]
            return (
                not suite.startswith(_SLOW), direct or suite in mirrors, suite.startswith(room),
                share, suite,
            )  # fmt: skip

        return max(candidates, key=merit, default=None)


def dotted(path: str) -> str:
    """``koordlet/host/observe.py`` as ``koordlet.host.observe``."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


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
    found = [
        f"{module}: no {mirror(module)} and no row"
        for module in checkout.modules
        if module not in rows and not checkout.has_mirror(module)
    ]
    for module, suite in rows.items():
        if module not in checkout.modules:
            found.append(f"{module}: a row, but no such module")
        elif checkout.has_mirror(module):
            found.append(f"{module}: a row, but {mirror(module)} exists")
        elif not checkout.is_true(module, suite):
            found.append(f"{module}: {suite} neither imports it nor a module that imports it")
    return found


def mended(checkout: Checkout, rows: Mapping[str, str]) -> dict[str, str]:
    """The table with each true row kept and each missing one chosen."""
    found = {}
    for module in checkout.modules:
        if checkout.has_mirror(module):
            continue
        suite = rows.get(module)
        if suite is None or not checkout.is_true(module, suite):
            suite = checkout.choose(module)
        if suite is not None:
            found[module] = suite
    return found


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
