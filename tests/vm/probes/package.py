"""The Debian package in the guest: installed, upgraded, removed, purged; what was seen, as JSON.

Covers: dpkg at each turn, the agent and its limit after it, files and groups before and after.
Does not cover: what must be seen (``tests.vm.test_package``).
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time

from tests.vm.probes import service

_TREES = ("etc", "usr", "opt", "var", "run/koordlet", "run/systemd/generator")
#: What dpkg and the journal keep about themselves.
_OTHERS = ("/var/lib/dpkg", "/var/log/journal", "/var/log/dpkg.log")
_CONFIG = """apiVersion: koordlet.io/v1
kind: Config
workloads: [{name: batch, qos: BE, match: {cgroup: own/batch}}]
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
"""


def files() -> set[str]:
    """Every file and folder that a package could leave."""
    paths = {
        path
        for tree in _TREES
        for folder, _, names in os.walk(f"/{tree}")
        for path in (folder, *(f"{folder}/{name}" for name in names))
    }
    return {path for path in paths if not path.startswith(_OTHERS) and "__pycache__" not in path}


def dpkg(*words: str) -> str:
    """The program: it knows of no other package, because the guest was laid out without it."""
    service.sh("systemctl", "reset-failed", service.AGENT)  # starts are counted from here
    began = time.monotonic()
    done = service.sh("dpkg", "--force-depends", "--force-unsafe-io", *words)
    if done.returncode:
        sys.exit(f"dpkg {words}: {done.stdout}{done.stderr}{service.said()}")
    print(f"dpkg {words[0]}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return done.stdout


def agent() -> dict[str, object]:
    """The unit, its process, the limit of the workload."""
    names = ("ActiveState", "UnitFileState", "MainPID", "FragmentPath")
    text = service.sh("systemctl", "show", "-p", ",".join(names), service.AGENT).stdout
    shown = dict(line.split("=", 1) for line in text.splitlines())
    return {**shown, "cpus": service.read(service.FILES["batch"])}


def life(first: str, second: str) -> dict[str, object]:
    """From before the first installation to after the purge."""
    pathlib.Path("/var/lib/dpkg/status").touch()
    service.occupy("batch")
    service.tune()
    before = files()
    service.BEFORE.write_text(json.dumps(service.control_files()))

    dpkg("-i", first)
    seen: dict[str, object] = {"installed": agent(), "verified": dpkg("--verify", "koordlet")}
    seen["version"] = service.sh("koordlet", "--version").stdout
    service.CONFIG.write_text(_CONFIG)
    limit = service.FILES["batch"]
    service.wait("the limit", lambda _: service.read(limit) == "1")

    with service.watching() as limits:
        dpkg("-i", second)
    seen |= {"upgraded": agent(), "limits": limits, "kept": service.CONFIG.read_text() == _CONFIG}

    dpkg("-r", "koordlet")
    seen |= {"removed": agent(), "different": service.different()}
    seen["conffile"] = service.CONFIG.exists()
    dpkg("-P", "koordlet")
    seen |= {"left": sorted(files() - before), "missing": sorted(before - files())}
    return seen


if __name__ == "__main__":
    print(json.dumps(life(*sys.argv[1:])))
