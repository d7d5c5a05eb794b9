"""What koordlet depends on is declared, explained, locked, and found nowhere else.

Covers: ``pyproject.toml``, the lock files, ``docs/dependencies.md`` and the package's imports.
Does not cover: what is imported when (``test_import_budget``) and where (``test_rooms``).
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT: str = (ROOT / "pyproject.toml").read_text()
DECLARED: dict[str, Any] = tomllib.loads(PROJECT)["project"]
LOCKS = tuple(f"requirements{name}.lock" for name in ("", "-dev", "-docs", "-build"))

#: Import names that differ from the package's name.
IMPORTED_AS = {
    "google": "protobuf",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "grpc_reflection": "grpcio-reflection",
    "grpc_tools": "grpcio-tools",
    "pydantic_core": "pydantic",  # its documented home of errors; pinned by it to one version
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "yaml": "pyyaml",
}

#: Our own packages: the agent, and what development runs.
OURS = ("koordlet", "tools")

#: Imported by commands of development, which an installed agent does not have.
DEVELOPMENT = {"tools/proto/generate.py": {"grpcio-tools"}}


def requirements(*extras: str) -> list[Requirement]:
    """The declared requirements: those of the agent, or those of extras."""
    lines: list[str] = []
    for extra in extras:
        lines += DECLARED["optional-dependencies"][extra]
    return [Requirement(line) for line in (lines if extras else DECLARED["dependencies"])]


def locked(name: str) -> dict[str, Version]:
    """Package to the version that a lock file has."""
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): Version(version) for package, version in pins}


@pytest.mark.parametrize("row", requirements(), ids=str)
def test_each_dependency_says_why_and_what_it_costs(row: Requirement) -> None:
    """A line has one exact lower bound, and a comment above it with memory and import time."""
    above = re.search(rf'((?:^ *#.*\n)+)^ *"{re.escape(str(row))}"', PROJECT, re.MULTILINE)

    assert above is not None
    assert re.search(r"\d MB, \+?\d+ ms", above[1])
    assert [each.operator for each in row.specifier] == [">="]


@pytest.mark.parametrize("wanted", requirements(), ids=str)
def test_each_dependency_has_its_row(wanted: Requirement) -> None:
    """The page of dependencies has a row for it, with nothing left empty."""
    page = (ROOT / "docs" / "dependencies.md").read_text()
    row = re.search(rf"^\|(?: `\w+` \|)? {re.escape(wanted.name)} \|(.+)\|$", page, re.MULTILINE)

    assert row is not None
    assert len([cell for cell in row[1].split(" | ") if cell.strip()]) == 4


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_names_packages_and_hashes_only(lock: str) -> None:
    """No index, host or path of a machine is in it, and no package is without a hash."""
    lines = (ROOT / lock).read_text().splitlines()
    pin = re.compile(r"[\w.-]+==[\w.]+( ; [\w'=!<>.\s()]+)? \\")
    a_hash = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?")

    assert lines[0].startswith("# ")
    assert [line for line in lines[1:] if not (pin.fullmatch(line) or a_hash.fullmatch(line))] == []
    assert [
        line
        for line, after in itertools.pairwise(lines)
        if pin.fullmatch(line) and not a_hash.fullmatch(after)
    ] == []


def test_the_lock_files_have_what_is_declared() -> None:
    """Each declared package is locked at a version that its bound allows."""
    extras = list(DECLARED["optional-dependencies"])
    wanted = [row for row in requirements(*extras) if row.name != "koordlet"] + requirements()
    pins = locked("requirements-dev.lock")

    assert [
        str(row)
        for row in wanted
        if not row.specifier.contains(pins.get(canonicalize_name(row.name), Version("0")))
    ] == []


def test_the_agent_runs_in_tests_with_what_it_runs_with() -> None:
    """The lock file of the checks has every package of the other one, at the same version."""
    assert locked("requirements.lock").items() <= locked("requirements-dev.lock").items()
    assert {canonicalize_name(row.name) for row in requirements()} <= locked(
        "requirements.lock"
    ).keys()


def imports() -> Iterator[tuple[str, str]]:
    """File and the first name of everything that it imports from elsewhere."""
    for path in sorted(file for room in OURS for file in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Import(names=names):
                    imported = [each.name for each in names]
                case ast.ImportFrom(module=str(module), level=0):
                    imported = [module]
                case _:
                    continue
            for name in imported:
                first = name.partition(".")[0]
                if first not in sys.stdlib_module_names and first not in {*OURS, "__future__"}:
                    yield str(path.relative_to(ROOT)), IMPORTED_AS.get(first, first)


def test_what_is_imported_is_declared() -> None:
    """No module leans on a package that is only there because another one needs it."""
    runtime = requirements()
    declared = {canonicalize_name(row.name) for row in runtime}

    assert [
        f"{path} imports {package}"
        for path, package in imports()
        if package not in declared | DEVELOPMENT.get(path, set())
    ] == []


def test_every_ignored_rule_has_its_reason() -> None:
    """A rule of the linter is switched off only with a comment on its line."""
    section = PROJECT[PROJECT.index("[tool.ruff.lint]") : PROJECT.index("[tool.ruff.lint.pydoc")]
    rules = [line for line in section.splitlines() if re.search(r'"[A-Z]+\d+"', line)]

    assert rules
    assert [line for line in rules if not re.search(r"# \S+ \S+", line)] == []
