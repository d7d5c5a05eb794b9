"""Runs in the machine: groups of cgroup v2 that die and stay, because memory is charged to them.

    python3 -m tests.vm.probes.dead_groups COUNT

A process hops through COUNT groups of a best-effort workload. Each gets a page of a file in memory
before it is removed: such a group stays in the kernel, without a name, until the page goes. An
agent makes its passes before, and while the last ones die. Prints JSON: what the kernel counts,
what the agent saw and held.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile

from koordlet import log
from koordlet.agent import lifecycle, tick
from koordlet.host.fs import live_host
from koordlet.model import meter
from koordlet.state import paths
from tests.kit import agents

COUNT = int(sys.argv[1])
TOP = pathlib.Path("/sys/fs/cgroup/dead")
PAGES = pathlib.Path("/dev/shm/dead")
CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: batch, qos: BE, match: {cgroup: dead/batch}}
"""
HOP = """
import os, sys
top, pages, first, end = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for n in range(first, end):
    os.mkdir(f"{top}/g{n}")
    with open(f"{top}/g{n}/cgroup.procs", "w") as file:
        file.write("0")
    with open(f"{pages}/{n}", "w") as file:
        file.write("x")
    if n > first:
        os.rmdir(f"{top}/g{n - 1}")
"""
#: So many die while the agent looks: each pass holds them up, and the machine is slow.
LAST = 100


def hop(first: int, end: int) -> subprocess.Popen[bytes]:
    """Groups of these numbers come and go; the last one stays until its process has ended."""
    words = [str(TOP / "batch"), str(PAGES), str(first), str(end)]
    return subprocess.Popen([sys.executable, "-c", HOP, *words])


def counted(name: str) -> int:
    """A row of the workload's ``cgroup.stat``."""
    rows = (TOP / "batch/cgroup.stat").read_text().split("\n")
    return next(int(row.split()[1]) for row in rows if row.startswith(name + " "))


def passed(who: lifecycle.Agent, clock: agents.Clock) -> int:
    """One pass; how many policies failed in it."""
    who.one_pass(slow=True)
    clock.tick()
    assert who.publisher.view is not None
    return len(who.publisher.view.plan.failures)


def held(who: lifecycle.Agent) -> dict[str, object]:
    """What the agent knows and keeps now."""
    shown = who.publisher.view
    assert shown is not None
    return {
        "groups": sorted(path for path in shown.snapshot.groups if path.startswith("dead")),
        "memory": shown.used.groups.value("dead/batch", meter.MEMORY),
        "handles": len(list(pathlib.Path("/proc/self/fd").iterdir())),
        "book": sorted(who.book.entries),
        "cpus": (TOP / "batch/cpuset.cpus").read_text().strip(),
    }


def main() -> None:
    """The groups' life and death."""
    log.configure("error", "json")
    # Moving a process waits for no grace period then.
    subprocess.run(["mount", "-o", "remount,favordynmods", "/sys/fs/cgroup"], check=True)
    PAGES.mkdir()
    for place in (TOP, TOP / "batch"):
        place.mkdir()
        (place / "cgroup.subtree_control").write_text("+cpuset +memory")
    state = paths.choose({}, root=True, state_dir=tempfile.mkdtemp())
    run = tick.Tick(live_host.LiveHost(), agents.effective(CONFIG))
    who, clock = lifecycle.Agent(run, state, enforce=True), agents.Clock()
    failed = sum(passed(who, clock) for _ in range(5))
    facts: dict[str, object] = {"before": held(who)}
    status = [hop(0, COUNT - LAST).wait()]
    (TOP / f"batch/g{COUNT - LAST - 1}").rmdir()
    hopper, passes = hop(COUNT - LAST, COUNT), 0
    while hopper.poll() is None:
        failed += passed(who, clock)
        passes += 1
    (TOP / f"batch/g{COUNT - 1}").rmdir()
    failed += sum(passed(who, clock) for _ in range(5))
    facts |= {
        "after": held(who),
        "passes": passes,
        "failed": failed,
        "status": [*status, hopper.returncode],
    }
    facts |= {"dying": counted("nr_dying_descendants"), "living": counted("nr_descendants")}
    facts["restored"] = [str(failure) for failure in who.restore().failed]
    who.close()
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
