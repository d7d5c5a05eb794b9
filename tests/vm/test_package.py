"""The Debian package on a real systemd: installed, upgraded, removed, purged.

Covers: the agent after each, its limits, the operator's configuration, what is left of files.
Does not cover: lintian and the content (``tests.tools.release``), the units (``test_systemd``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.vm import machine
from tests.vm.fixtures import Boot
from tools.release import __main__ as release
from tools.release import commands

#: Building takes two minutes of a processor, and emulation another two.
pytestmark = [pytest.mark.vm, pytest.mark.soak]
_PATIENCE = 6 * machine.COMMAND_TIMEOUT


def test_the_life_of_a_package(boot: Boot, tmp_path: Path) -> None:
    """Limits stay across an upgrade and go with the package, which leaves nothing."""
    assert release.main(["wheel", "deb", "--into", str(tmp_path)]) == 0
    [first] = tmp_path.glob("*.deb")
    second = newer(first)
    guest = boot("1s2c", systemd=True, shares={"/srv/packages": tmp_path})
    words = ["python3", "-m", "tests.vm.probes.package"]
    words += [f"/srv/packages/{path.name}" for path in (first, second)]
    seen = cast("dict[str, Any]", guest.run(words, timeout=_PATIENCE).json())

    installed, upgraded, removed = (seen[at] for at in ("installed", "upgraded", "removed"))
    assert (installed["ActiveState"], installed["UnitFileState"]) == ("active", "enabled")
    assert seen["version"] == "koordlet 0.1.0"
    assert (upgraded["ActiveState"], upgraded["cpus"]) == ("active", "1")
    assert upgraded["MainPID"] != installed["MainPID"]
    assert seen["configuration"], "what the operator wrote stays"
    assert (removed["ActiveState"], removed["cpus"]) == ("inactive", "")
    assert "/etc/koordlet/config.yaml" in seen["kept"]
    assert (seen["left"], seen["missing"]) == ([], [])


def newer(package: Path) -> Path:
    """The same package with a higher version."""
    tree, made = package.parent / "tree", package.with_name("newer.deb")
    commands.run("dpkg-deb", "-R", package, tree)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("Version: 0.1.0", "Version: 0.1.0+1"))
    commands.run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, made)
    return made
