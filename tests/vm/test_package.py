"""The Debian package on a real systemd: installed, upgraded, removed, purged.

Covers: what dpkg's scripts make of the agent, its limits and the operator's settings at each turn;
files, units and groups of the machine before and after.
Does not cover: the content (``tests.tools.release``), the units (``test_systemd``);
lintian, which no test runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import koordlet
from tests.vm import machine, root
from tests.vm.fixtures import Boot
from tests.vm.test_systemd import LIMITED, RESTORED
from tools.release import __main__ as release
from tools.release import commands, environment, package

#: Every program that dpkg starts is a Python in emulation: two minutes and more.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

_DEBS = "/srv/packages"


def framed(into: Path) -> Path:
    """The package around the packages of Python that the guest has anyway: seconds, no network."""
    tree = into / "tree"
    site = environment.frame(tree, package.PREFIX)
    (site / "carried.pth").write_text(f"{root.REPO}\n{root.SITE}\n")
    built = package.pack(tree, [], into, koordlet.__version__, "-Znone")
    shutil.rmtree(tree)
    return built


def whole(into: Path) -> Path:
    """The package of a release: two minutes of a processor."""
    assert release.main(["wheel", "deb", "--into", str(into)]) == 0
    [built] = into.glob("*.deb")
    return built


def newer(first: Path) -> Path:
    """The same package with a higher version."""
    tree, second = first.parent / "tree", first.with_name("newer.deb")
    commands.run("dpkg-deb", "-R", first, tree)
    control = tree / "DEBIAN/control"
    version = f"Version: {koordlet.__version__}"
    control.write_text(control.read_text().replace(version, f"{version}+1"))
    commands.run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, second)
    shutil.rmtree(tree)
    return second


@pytest.mark.parametrize("build", [framed, whole])
def test_the_life_of_a_package(boot: Boot, tmp_path: Path, build: Callable[[Path], Path]) -> None:
    """The agent runs when dpkg is done; limits stay across an upgrade and go with the package.

    What somebody wrote stays until the purge, after which the machine is as it was.
    """
    first = build(tmp_path)
    debs = [f"{_DEBS}/{path.name}" for path in (first, newer(first))]
    guest = boot("1s2c", systemd=True, shares={_DEBS: tmp_path})
    words = ["python3", "-m", "tests.vm.probes.package", *debs]
    seen = cast("dict[str, Any]", guest.run(words, timeout=5 * machine.COMMAND_TIMEOUT).json())
    installed, limited, upgraded = seen["installed"], seen["limited"], seen["upgraded"]

    assert (installed["ActiveState"], installed["UnitFileState"]) == ("active", "enabled")
    assert installed["FragmentPath"].endswith("/lib/systemd/system/koordlet.service")
    assert installed["limits"] == RESTORED, "no workloads are declared, so nothing was written"
    assert (seen["verified"], seen["version"]) == ("", f"koordlet {koordlet.__version__}\n")
    assert (limited["limits"], limited["MainPID"]) == (LIMITED, installed["MainPID"])
    assert (upgraded["ActiveState"], upgraded["UnitFileState"]) == ("active", "enabled")
    assert upgraded["MainPID"] != installed["MainPID"]
    assert (upgraded["limits"], seen["values"]) == (LIMITED, ["1"]), "without a gap"
    assert (seen["new_version"], seen["settings"]) == (f"{koordlet.__version__}+1", True)
    assert (seen["removed"]["ActiveState"], seen["removed"]["limits"]) == ("inactive", RESTORED)
    assert (seen["different"], seen["settings_stay"]) == ([], True)
    assert seen["machine"] == []
