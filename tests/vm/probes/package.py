"""The Debian package in the guest: installed, upgraded, removed, purged; what was seen, as JSON.

Covers: dpkg at each turn, the agent and its limits after it; files, units, groups at both ends,
with modes, owners, sizes, times.
Does not cover: what must be seen (``tests.vm.test_package``).
"""

from __future__ import annotations

import json
import os
import pathlib
import stat
import sys
import time

from tests.vm.probes import service

_TREES = ("etc", "usr", "opt", "root", "srv", "tmp", "var", "run/koordlet", "run/systemd")
#: What dpkg and the journal keep about themselves, and systemd about units: that they run, when it
#: read them.
_OTHERS = (
    *("/var/lib/dpkg", "/var/log", "/run/systemd/journal"),
    *("/run/systemd/units", "/run/systemd/systemd-units-load"),
)
#: The folder of the limits that systemd keeps until the next boot, of units that are not ours.
_UNTIL_BOOT = "/run/systemd/system.control"


def inventory() -> dict[str, str]:
    """Files, folders, groups and units that a package could leave or change; what each is like."""
    paths = (
        path
        for tree in _TREES
        for folder, _, names in os.walk(f"/{tree}")
        for path in (folder, *(f"{folder}/{name}" for name in names))
    )
    kept = (path for path in paths if not path.startswith((*_OTHERS, _UNTIL_BOOT)))
    listed = {path: _likeness(pathlib.Path(path)) for path in kept}
    logs = pathlib.Path("/var/log").glob("koordlet*")
    groups = service.CGROUPS.rglob("*koordlet*")
    units = service.sh("systemctl", "list-units", "--all", "--plain", "--no-legend", "koordlet*")
    return {
        **listed,
        **{str(path): "" for path in (*logs, *groups)},
        # A unit that failed outlives its file.
        **{line.split()[0]: " ".join(line.split()[1:4]) for line in units.stdout.splitlines()},
    }


def _likeness(path: pathlib.Path) -> str:
    """Kind, mode and owner; of a file its size and when it was written, too."""
    try:
        status = path.lstat()
    except FileNotFoundError:  # systemd's own folders move
        return "gone"
    common = f"{status.st_mode:o} {status.st_uid}:{status.st_gid}"
    if not stat.S_ISREG(status.st_mode):
        return common
    return f"{common} {status.st_size} {status.st_mtime_ns}"


def dpkg(*words: str) -> str:
    """The program: it knows of no other package, because the guest was laid out without it."""
    began = time.monotonic()
    done = service.sh("dpkg", "--force-depends", "--force-unsafe-io", *words)
    if done.returncode:
        sys.exit(f"dpkg {words}: {done.stdout}{done.stderr}{service.said()}")
    print(f"dpkg {words[0]}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return done.stdout


def agent() -> dict[str, object]:
    """The unit, its process, the limits of the workloads."""
    names = "ActiveState,UnitFileState,MainPID,FragmentPath,StatusText"
    text = service.sh("systemctl", "show", "-p", names, service.AGENT).stdout
    shown = dict(line.split("=", 1) for line in text.splitlines())
    return {**shown, "limits": service.limits()}


def life(first: str, second: str) -> dict[str, object]:
    """From before the first installation to after the purge."""
    pathlib.Path("/var/lib/dpkg/status").touch()
    service.tune()
    service.work()
    before = inventory()

    dpkg("-i", first)
    seen: dict[str, object] = {"installed": agent(), "verified": dpkg("--verify", "koordlet")}
    seen["version"] = service.sh("koordlet", "--version").stdout
    service.configure()
    service.wait("the limits", service.healthy)
    seen["limited"] = agent()

    with service.watching() as values:
        dpkg("-i", second)
    seen |= {"upgraded": agent(), "values": values, "new_version": version_of_package()}
    seen["settings"] = "own/batch" in service.CONFIG.read_text()

    dpkg("-r", "koordlet")
    seen |= {"removed": agent(), "different": service.different()}
    seen["settings_stay"] = service.CONFIG.exists()
    dpkg("-P", "koordlet")
    return {**seen, "machine": service.differences(before, inventory())}


def version_of_package() -> str:
    """As dpkg knows it."""
    return service.sh("dpkg-query", "-W", "-f", "${Version}", "koordlet").stdout


if __name__ == "__main__":
    print(json.dumps(life(*sys.argv[1:])))
