"""A machine of its own, its scheduler beside the agent: a unit and a process own what is reserved.

Covers: ``koordlet reserve`` and ``delete`` on cgroup v2 and real resctrl; CPUs, ``memory.min`` and
cache ways of each owner and of everybody else, before, meanwhile and afterwards.
Does not cover: what must be seen (``tests.vm.test_reserve``).
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

GROUPS = pathlib.Path("/sys/fs/cgroup")
RESCTRL = pathlib.Path("/sys/fs/resctrl")
STATE, LOG = pathlib.Path("/run/koordlet-state"), pathlib.Path("/run/koordlet.log")
UNIT = pathlib.Path("/run/systemd/system/db.service")
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
node: {name: n1}
report: {http: {enabled: false}}
scheduler: {run: true, http: "127.0.0.1:0"}
policies:
  shared_pools: {enableControllers: true}
  resctrl: {mode: enforce, mount: true}
workloads:
  - {name: web, qos: LS, match: {cgroup: own/web}}
  - {name: batch, qos: BE, match: {cgroup: own/batch}}
"""
#: Name of the reservation to what it is for; each gets as much as the next row says.
WHERE = {"db": "system.slice/db.service", "job": "own/job"}
ASKED = {
    "db": ("--cpus", "1", "--memory", "64Mi", "--cache-ways", "3", "--owner", "unit=db.service"),
    "job": ("--memory", "32Mi", "--cache-ways", "2", "--owner", "pid={job}"),
}
EVERY, PATIENCE = "0-1", 240.0


def koordlet(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of a person, for the agent's own scheduler."""
    whole = [sys.executable, "-m", "koordlet", *words, "--state-dir", str(STATE)]
    return subprocess.run(whole, capture_output=True, text=True, check=False)


def until(what: str, true: Callable[..., object], *words: str) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not true(*words):
        if time.monotonic() > deadline:
            sys.exit(f"waited in vain for: {what}\n{seen()}\n{LOG.read_text()[-6000:]}")
        time.sleep(0.5)


def read(path: pathlib.Path) -> str:
    """A file's text; empty while there is none."""
    return path.read_text().strip() if path.exists() else ""


def mask(group: str) -> str:
    """A group's ways of the first cache, as the kernel spells them."""
    for line in read(RESCTRL / group / "schemata").splitlines():
        name, _, rest = line.strip().partition(":")
        if name == "L3":
            return rest.split(";")[0].partition("=")[2]
    return ""


def cache_group(pid: int) -> str:
    """The resctrl group of a process; empty for the root group."""
    groups = read(pathlib.Path(f"/proc/{pid}/cpu_resctrl_groups"))
    return next((x[4:].strip("/") for x in groups.splitlines() if x.startswith("res:")), "")


def cpus(pid: int) -> str:
    """Where the kernel lets a process run."""
    [line] = [
        x
        for x in read(pathlib.Path(f"/proc/{pid}/status")).splitlines()
        if "s_allowed_" in x and x.startswith("Cpus")
    ]
    return line.split()[1]


def pid(path: str) -> int:
    """The first process of a group."""
    return int((GROUPS / path / "cgroup.procs").read_text().split()[0])


def seen() -> dict[str, Any]:
    """What each owner has, and what is left to others."""
    owners = {}
    for name, path in WHERE.items():
        who = pid(path)
        owners[name] = {
            "cpus": cpus(who),
            "memory.min": read(GROUPS / path / "memory.min"),
            "ways": mask(cache_group(who)) if cache_group(who) else "",
        }
    return {
        "owners": owners,
        "web": cpus(pid("own/web")),
        "batch": cpus(pid("own/batch")),
        "shared": mask("LS"),
    }


def held(name: str) -> bool:
    """Whether an owner has something of each kind."""
    mine = seen()["owners"][name]
    return mine["memory.min"] not in {"", "0"} and mine["ways"] and seen()["web"] != EVERY


def free(name: str) -> bool:
    """Whether it has nothing of its own any more."""
    mine = seen()["owners"][name]
    return mine["memory.min"] in {"", "0"} and not mine["ways"] and seen()["web"] == EVERY


def main() -> None:
    """Owners, the agent, two reservations, their end."""
    UNIT.write_text("[Service]\nExecStart=/bin/sleep infinity\n")
    subprocess.run(["systemctl", "start", "db.service"], check=True)
    children = []
    for name in ("web", "batch", "job"):
        (GROUPS / "own" / name).mkdir(parents=True)
        # Whoever made the group has to hand memory down; systemd does so for its units itself.
        for above in (GROUPS, GROUPS / "own"):
            (above / "cgroup.subtree_control").write_text("+memory")
        children.append(subprocess.Popen(["sleep", "infinity"]))
        (GROUPS / "own" / name / "cgroup.procs").write_text(str(children[-1].pid))
    config = pathlib.Path("/run/koordlet.yaml")
    config.write_text(CONFIG)
    words = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    with LOG.open("wb") as log:
        agent = subprocess.Popen([*words, "--state-dir", str(STATE)], stderr=log)
    facts: dict[str, Any] = {}
    try:
        until("the scheduler listens", (STATE / "run" / "scheduler.sock").exists)
        until("classes have their ways", lambda: mask("LS"))
        facts["before"] = seen()
        for name, asked in ASKED.items():
            more = [word.format(job=children[2].pid) for word in asked]
            made = koordlet("reserve", name, "--node", "n1", *more)
            facts[f"reserve {name}"] = made.stderr
        for name in ASKED:
            until(f"{name} has what was reserved", held, name)
        facts["held"] = seen()
        for name in ASKED:
            koordlet("delete", "reservation", name)
        for name in ASKED:
            until(f"{name} has nothing of its own", free, name)
        facts["deleted"] = seen()
        agent.terminate()
        facts["status"] = agent.wait(PATIENCE)
        facts["stopped"] = {path: read(GROUPS / path / "memory.min") for path in WHERE.values()}
    finally:
        agent.kill()
        for child in children:
            child.kill()
    facts["log"] = LOG.read_text()[-4000:]
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
