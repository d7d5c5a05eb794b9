"""Runs in the machine: an agent on the real resctrl, seen from outside.

Prints JSON: what the groups said while the agent enforced, and what was there after it stopped.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

PLACE = pathlib.Path("/sys/fs/resctrl")
STATE = pathlib.Path("/tmp/koordlet-state")
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
policies:
  reserved_cpus: {mode: "off"}
  shared_pools: {mode: "off"}
  resctrl:
    mode: enforce
    mount: true
    mountOptions: [%s]
    processEvents: true
    podMonitoring: true
    beClass: {mbaPercent: 45}
workloads:
  - {name: web, qos: LSR, match: {cgroup: web}}
  - {name: api, qos: LS, match: {cgroup: api}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""
#: Added to the policy where the third argument says so.
PARTITIONS = """
    partitions:
      - {name: latency, ways: 60, classes: [LSR, LS]}
      - {name: batch, ways: 40, bandwidth: 50, classes: [BE]}
"""
#: Forks all the time: what it leaves behind must be in the group too.
FORKS = 30
BUSY = f"for i in $(seq {FORKS}); do sleep 90 & sleep 0.2; done; wait"


def cgroup() -> pathlib.Path:
    """Where workloads can be made."""
    v1 = pathlib.Path("/sys/fs/cgroup/cpuset")
    return v1 if v1.is_dir() else pathlib.Path("/sys/fs/cgroup")


def start(name: str) -> subprocess.Popen[bytes]:
    """A busy process in a cgroup of its own."""
    group = cgroup() / name
    group.mkdir()
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (group / file).exists():
            (group / file).write_text((cgroup() / file).read_text() if v1_file(file) else "")
    child = subprocess.Popen(["sh", "-c", f"read go; {BUSY}"], stdin=subprocess.PIPE)
    (group / "cgroup.procs").write_text(str(child.pid))
    assert child.stdin is not None
    child.stdin.write(b"go\n")
    child.stdin.flush()
    return child


def intruder() -> bool:
    """Whether a process that enters a workload from outside is moved long before the next scan."""
    child = subprocess.Popen(["sh", "-c", "read go; exec sleep 60"], stdin=subprocess.PIPE)
    (cgroup() / "batch" / "cgroup.procs").write_text(str(child.pid))
    assert child.stdin is not None
    # A scan has just been made: the next of its own accord is seconds away.
    child.stdin.write(b"go\n")
    child.stdin.flush()
    tasks = PLACE / "BE" / "tasks"
    return until(lambda: str(child.pid) in tasks.read_text().split(), 30.0)


def v1_file(file: str) -> bool:
    """Whether the set must be filled before a process may come."""
    return (cgroup() / file).exists() and cgroup().name == "cpuset"


def threads(name: str) -> set[str]:
    """The threads of a workload."""
    group = cgroup() / name
    file = group / ("tasks" if (group / "tasks").exists() else "cgroup.threads")
    return set(file.read_text().split())


def groups() -> list[str]:
    """What stands below the mount."""
    reserved = {"info", "mon_groups", "mon_data"}
    return sorted(p.name for p in PLACE.iterdir() if p.is_dir() and p.name not in reserved)


def until(true: Callable[[], object], seconds: float = 120.0) -> bool:
    """Waits for something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.2)
    return False


def settled(expected: set[str]) -> bool:
    """Whether the groups are there and hold every thread of their workload."""
    for group, name in (("BE", "batch"), ("LS", "api"), ("LSR", "web")):
        if group in expected:
            file = PLACE / group / "tasks"
            if not file.exists() or not threads(name) <= set(file.read_text().split()):
                return False
    return True


def shown(config: pathlib.Path) -> dict[str, str]:
    """What the commands say beside the running agent."""
    words = {
        "resctrl": ["resctrl"],
        "explain": ["explain", "write", str(PLACE / "BE" / "schemata")],
        "plan": ["plan"],
    }
    where = ["--config", str(config)]
    return {
        name: subprocess.run(
            [sys.executable, "-m", "koordlet", *each, *where],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for name, each in words.items()
    }


def troubled(expected: set[str]) -> dict[str, bool]:
    """What others do to the groups of a running agent, and whether it puts that right."""
    ours = (PLACE / "BE" / "schemata").read_text()
    line = next(row for row in ours.splitlines() if row.strip()[:2] in ("L3", "L2", "MB"))
    (PLACE / "BE" / "schemata").write_text(unlimited(line) + "\n")
    mended = {"changed": (PLACE / "BE" / "schemata").read_text() != ours}
    mended["rewritten"] = until(lambda: (PLACE / "BE" / "schemata").read_text() == ours)
    (PLACE / "BE").rmdir()
    mended["made anew"] = until(lambda: (PLACE / "BE").is_dir() and settled(expected))
    mended["limited anew"] = until(lambda: (PLACE / "BE" / "schemata").read_text() == ours)
    subprocess.run(["umount", str(PLACE)], check=True)
    mended["mounted anew"] = until(lambda: (PLACE / "BE").is_dir() and settled(expected))
    return mended


def unlimited(line: str) -> str:
    """A line of schemata as the root group has it."""
    name, _, _ = line.partition(":")
    lines = (PLACE / "schemata").read_text().splitlines()
    return next(line for line in lines if line.partition(":")[0] == name)


def main() -> None:
    """One life of an agent."""
    options, expected = sys.argv[1], set(sys.argv[2].split(","))
    config = pathlib.Path("/tmp/koordlet.yaml")
    text = CONFIG % options
    if "partitions" in sys.argv[3:]:
        text = text.replace("    beClass: {mbaPercent: 45}\n", PARTITIONS.lstrip("\n"))
    config.write_text(text)
    children = [start(name) for name in ("web", "api", "batch")]
    argv = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    agent = subprocess.Popen([*argv, "--state-dir", str(STATE)], stderr=subprocess.PIPE)
    ready = until(lambda: settled(expected) and len(threads("batch")) > FORKS)
    time.sleep(3)
    facts = {
        "settled": ready and settled(expected),
        "groups": groups(),
        "schemata": {g: (PLACE / g / "schemata").read_text() for g in groups()},
        "options": [
            x for x in pathlib.Path("/proc/mounts").read_text().splitlines() if "resctrl" in x
        ],
        "threads": len(threads("batch")),
    }
    facts["intruder"] = intruder()
    facts["counted"] = (
        sorted(p.name for p in (PLACE / "BE" / "mon_groups").iterdir())
        if (PLACE / "BE" / "mon_groups").is_dir()
        else []
    )
    facts["shown"] = shown(config) if "partitions" in sys.argv[3:] else {}
    facts["trouble"] = troubled(expected)
    facts["alive"] = agent.poll() is None
    agent.terminate()
    facts["status"] = agent.wait(120)
    assert agent.stderr is not None
    facts["log"] = agent.stderr.read().decode()[-6000:]
    facts["mounted"] = "resctrl" in pathlib.Path("/proc/mounts").read_text()
    for child in children:
        child.kill()
    for name in ("web", "api", "batch"):
        for pid in threads(name):
            try:
                os.kill(int(pid), 9)
            except ProcessLookupError:
                continue
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
