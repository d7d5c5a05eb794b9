"""The Debian package in the guest: installed, upgraded, removed, purged; what was seen, as JSON.

Covers: dpkg at each turn, the agent and its limits after it, files of the machine before and after.
Does not cover: what must be seen (``tests.vm.test_package``), what is in the package (host tests).
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

from tests.vm.probes import service

_TREES = ("etc", "usr", "lib/systemd", "opt", "var/lib", "var/log", "run/koordlet")
#: What dpkg and systemd keep about themselves.
_OTHERS = ("var/lib/dpkg", "var/lib/systemd", "var/log/journal", "var/log/dpkg.log")
#: Who waits where: below a group of our own, which is no unit.
_GROUP = pathlib.Path("/sys/fs/cgroup/own/batch")
_CONFIG = """apiVersion: koordlet.io/v1
kind: Config
workloads: [{name: batch, qos: BE, match: {cgroup: own/batch}}]
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
"""


def files() -> list[str]:
    """Every file and folder that a package could leave."""
    found = []
    for tree in _TREES:
        for folder, _, names in os.walk(f"/{tree}"):
            found += [folder, *(f"{folder}/{name}" for name in names)]
    own = [path for path in found if not path.lstrip("/").startswith(_OTHERS)]
    return sorted(path for path in own if "__pycache__" not in path)


def dpkg(*words: str) -> None:
    """The program; its dependencies are there without its knowing of them."""
    done = service.sh("dpkg", "--force-depends", *words)
    if done.returncode:
        raise SystemExit(f"dpkg {words}: {done.stdout}{done.stderr}")


def seen() -> dict[str, object]:
    """Unit, its process, the limit of the group."""
    asked = ("ActiveState", "UnitFileState", "MainPID", "NRestarts")
    shown = [
        service.sh("systemctl", "show", "-P", key, service.AGENT).stdout.strip() for key in asked
    ]
    return {**dict(zip(asked, shown, strict=True)), "cpus": service.read(_GROUP / "cpuset.cpus")}


def limited(cpus: str) -> None:
    """Wait until the group has these CPUs."""
    service.wait(f"CPUs {cpus!r}", lambda _: service.read(_GROUP / "cpuset.cpus") == cpus)


def life(first: str, second: str) -> dict[str, object]:
    """All of it, in order."""
    # An empty list of packages: the guest was laid out without dpkg.
    pathlib.Path("/var/lib/dpkg/status").touch()
    _GROUP.mkdir(parents=True)
    before = files()
    found: dict[str, object] = {}
    dpkg("-i", first)
    found["installed"] = seen()
    service.CONFIG.write_text(_CONFIG)
    limited("1")
    found["version"] = service.sh("koordlet", "--version").stdout.strip()
    dpkg("-i", second)
    found["upgraded"] = seen()
    found["configuration"] = service.CONFIG.read_text() == _CONFIG
    dpkg("-r", "koordlet")
    found["removed"] = seen()
    found["kept"] = sorted(set(files()) - set(before))
    dpkg("-P", "koordlet")
    found["left"] = sorted(set(files()) - set(before))
    found["missing"] = sorted(set(before) - set(files()))
    return found


if __name__ == "__main__":
    print(json.dumps(life(*sys.argv[1:])))
