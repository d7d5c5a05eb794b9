"""Runs in the machine: a noisy neighbour by the kernel's own counters, and what it costs it.

The emulator's counters grow with time, faster for a higher RMID: with ``BE`` as the only group it
has two thirds of the traffic. Who waits is made here. Prints JSON: each bandwidth limit seen.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

PLACE = pathlib.Path("/sys/fs/resctrl")
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
policies:
  reserved_cpus: {mode: "off"}
  shared_pools: {mode: "off"}
  adaptive: {mode: "off"}
  cpu_suppress: {mode: "off"}
  resctrl:
    mode: enforce
    mount: true
    tighten: true
    lsrClass: {enable: %(others)s}
    lsClass: {enable: %(others)s}
workloads:
  - {name: api, qos: LS, match: {cgroup: api}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""
#: Threads on one CPU: each waits half of the time.
CROWD = 2


def start(name: str, script: str) -> subprocess.Popen[bytes]:
    """A process in a cgroup."""
    group = CGROUPS / name
    group.mkdir(exist_ok=True)
    words = ["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec taskset -c 1 sh -c '{script}'"]
    return subprocess.Popen(words)


def limit() -> int | None:
    """The bandwidth of best-effort work in percent."""
    try:
        text = (PLACE / "BE" / "schemata").read_text()
    except OSError:
        return None
    line = next((row.strip() for row in text.splitlines() if row.strip().startswith("MB:")), "")
    return int(line.split(";")[0].rpartition("=")[2]) if line else None


def watch(
    agent: subprocess.Popen[bytes],
    seen: list[int],
    enough: Callable[[list[int]], bool],
    seconds: float,
) -> bool:
    """Note each value once as it comes, until enough was seen or the agent has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = limit()
        if value is not None and (not seen or seen[-1] != value):
            seen.append(value)
        if enough(seen):
            return True
        try:
            agent.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        return False
    return False


def main() -> None:
    """Noise while somebody waits, then silence."""
    others = "true" if "others" in sys.argv[1:] else "false"
    config = pathlib.Path("/tmp/koordlet.yaml")
    config.write_text(CONFIG % {"others": others})
    children = [start("batch", "while :; do sleep 1; done")]
    children += [start("api", "while :; do :; done") for _ in range(CROWD)]
    words = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    with pathlib.Path("/tmp/agent.log").open("wb") as log:
        agent = subprocess.Popen([*words, "--state-dir", "/tmp/koordlet-state"], stderr=log)
    noisy: list[int] = []
    quiet: list[int] = []
    facts: dict[str, object] = {}
    if others == "true":
        watch(agent, noisy, lambda _: False, 60.0)
    else:
        facts["tightened"] = watch(agent, noisy, lambda seen: seen[-1:] == [10], 300.0)
        for child in children[1:]:
            child.kill()
            child.wait()
        facts["given back"] = watch(agent, quiet, lambda seen: len(seen) >= 4, 300.0)
    totals = sorted(PLACE.glob("**/mbm_total_bytes"))
    facts |= {
        "noisy": noisy,
        "quiet": quiet,
        "counters": {str(path.relative_to(PLACE)): path.read_text().strip() for path in totals},
    }
    agent.terminate()
    facts["status"] = agent.wait(120)
    facts["log"] = pathlib.Path("/tmp/agent.log").read_text()[-3000:]
    for child in children:
        child.kill()
        child.wait()
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
