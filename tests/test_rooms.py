"""The walls between the rooms hold: every contract of ``pyproject.toml`` fails when it is broken.

Covers: import-linter's contracts, proved on a small package of the same name, in which each wall is
breached once; the rooms to come stand in it too, so their contracts are proved before they exist.
Does not cover: the real package; ``make imports`` does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
LINTER: dict[str, Any] = tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]
CONTRACTS: dict[str, str] = {each["id"]: each["name"] for each in LINTER["contracts"]}

#: Modules that the contracts name, beside the rooms, which are read from the layers.
NAMED = (
    "apply.network",
    "apply.ordering",
    "apply.turns",
    "client.calls",
    "agent.loop",
    "agent.nri.adapter",
    "host.devices.netlink",
    "host.fs.root",
    "kube.transport",
    "policy.cpu.packing",
    "policy.framework.registry",
    "report.crds",
    "rpc.server",
    "scheduler.loop",
    "scheduler.store",
    "workloads.nri",
)

#: Contract to the imports that breach it: who imports what.
BREACHES: dict[str, dict[str, str]] = {
    "line": {"policy.framework.registry": "koordlet.report", "history.ring": "koordlet.apply"},
    "agent": {"agent.tick": "koordlet.agent.loop"},
    "agent-nri": {"agent.nri.start_check": "koordlet.agent.nri.adapter"},
    "scheduler-rooms": {"scheduler.cluster": "koordlet.scheduler.loop"},
    "model": {"model.cpuset": "koordlet.log"},
    "pure": {"policy.framework.registry": "os", "apply.ordering": "koordlet.host.fs.root"},
    "agent-without-scheduler": {"state.journal": "koordlet.scheduler.loop"},
    "scheduler": {"scheduler.loop": "koordlet.policy.framework.registry"},
    "client": {"client.calls": "koordlet.model"},
    "only-grpc": {"http.server": "grpc.aio"},
    "only-protobuf": {"workloads.declared": "google.protobuf.message"},
    "only-sqlite3": {"scheduler.loop": "sqlite3"},
    "only-numpy": {"host.counters": "numpy"},
    "only-pyroute2": {"host.cgroup.tree": "pyroute2"},
    "only-msgspec": {"state.journal": "msgspec"},
    "only-re2": {"scheduler.claims.selector": "re2"},
    "only-pydantic": {"model.pod": "pydantic"},
    "only-rich": {"agent.loop": "rich.console"},
    "only-tests": {"demo": "tests.kit"},
}

#: What the walls let through: each would be a breach anywhere else.
ALLOWED = {
    "rpc.server": "grpc.aio",
    "workloads.nri": "google.protobuf.message",
    "scheduler.store": "sqlite3",
    "scheduler.loop": "koordlet.policy.cpu.packing",
    "host.devices.netlink": "pyroute2",
    "host.devices.queueing": "pyroute2",
    "apply.network": "pyroute2",
    "report.crds": "pydantic",
    "cli": "rich.console",
    "client.calls": "koordlet.rpc.server",
    "scheduler.process.pages": "koordlet.http",
}


def house(folder: Path, imports: Mapping[str, str]) -> None:
    """A package ``koordlet`` with all rooms, empty but for these imports."""
    rooms = [
        f"{each['containers'][0]}.{name.strip(' ()')}".removeprefix("koordlet.")
        for each in LINTER["contracts"]
        if each["type"] == "layers"
        for layer in each["layers"]
        for name in re.split("[:|]", layer)
    ]
    for name in (*rooms, *NAMED, *imports):
        at = folder / "koordlet"
        for part in name.split("."):
            at.mkdir(exist_ok=True)
            (at / "__init__.py").touch()
            at /= part
        if not at.is_dir():
            at.with_suffix(".py").touch()
    for importer, imported in imports.items():
        at = folder.joinpath("koordlet", *importer.split("."))
        source = at / "__init__.py" if at.is_dir() else at.with_suffix(".py")
        source.write_text(f"import {imported}\n")
    for target in imports.values():
        if target.startswith("koordlet."):
            at = folder.joinpath(*target.split("."))
            if not at.is_dir():
                at.with_suffix(".py").touch()


def broken(folder: Path) -> set[str]:
    """Which contracts import-linter finds broken in a folder's package."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    environment = os.environ | {"COLUMNS": "300", "PYTHONPATH": str(folder)}
    ran = subprocess.run(
        [sys.executable, *command, "--config", str(PROJECT)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    verdicts = dict(re.findall(r"^(.+) (KEPT|BROKEN)\b", ran.stdout, re.MULTILINE))

    assert set(CONTRACTS.values()) == verdicts.keys(), ran.stdout + ran.stderr

    return {key for key, name in CONTRACTS.items() if verdicts[name] == "BROKEN"}


def test_every_contract_has_a_breach() -> None:
    """A contract that is added must be proved here too."""
    assert CONTRACTS.keys() == BREACHES.keys()


def test_what_is_allowed_passes(tmp_path: Path) -> None:
    """The rooms that may import a package do so without complaint."""
    house(tmp_path, ALLOWED)

    assert set() == broken(tmp_path)


@pytest.mark.parametrize("contract", sorted(BREACHES))
def test_a_breach_is_found(tmp_path: Path, contract: str) -> None:
    """One import on the wrong side of a wall breaks that wall's contract."""
    for importer, imported in BREACHES[contract].items():
        place = tmp_path / importer
        place.mkdir()
        house(place, {importer: imported})

        assert contract in broken(place)


def test_a_room_without_a_place_is_found(tmp_path: Path) -> None:
    """A new room that nobody gave a place in the line breaks the line's contract."""
    house(tmp_path, {"attic": "os"})

    assert broken(tmp_path) == {"line"}
