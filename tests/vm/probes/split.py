"""Runs in the machine: an agent where cpu is on cgroup v1 and cpuset and memory are on v2.

So a machine that asks for v1 ends up whose kernel has no cpuset and no memory there any more.
Prints JSON: what the workloads' groups said before, under the agent and after it.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable

_TOP = pathlib.Path("/sys/fs/cgroup")
_CPU, _TREE = _TOP / "cpu", _TOP / "unified"
_NAMES = ("web", "batch")
_FILES = (_CPU / "batch/cpu.shares", _TREE / "cgroup.subtree_control")
_METRICS = "http://127.0.0.1:9316/metrics"
_MEMORY = "koordlet_workload_memory_usage_bytes"
_CONFIG = """apiVersion: koordlet.io/v1
kind: Config
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
"""


def until(true: Callable[[], bool]) -> bool:
    """Waits for something."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.2)
    return False


def sets() -> dict[str, str | None]:
    """Workload to its CPUs; None without the controller."""
    files = {name: _TREE / name / "cpuset.cpus" for name in _NAMES}
    return {n: f.read_text().strip() if f.exists() else None for n, f in files.items()}


def affinity(pids: dict[str, int]) -> dict[str, str]:
    """Workload to the CPUs that its process may use."""
    cpus = {}
    for name, pid in pids.items():
        out = subprocess.run(
            ["taskset", "-cp", str(pid)], capture_output=True, text=True, check=True
        )
        cpus[name] = out.stdout.rpartition(":")[2].strip()
    return cpus


def moment(pids: dict[str, int]) -> dict[str, object]:
    """All that the agent may change here."""
    rest = {str(path): path.read_text().strip() for path in _FILES}
    return {"sets": sets(), "affinity": affinity(pids), **rest}


def used() -> dict[str, float]:
    """Workload to the memory that the agent says it uses."""
    try:
        with urllib.request.urlopen(_METRICS, timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return {}
    rows = [line for line in lines if line.startswith(_MEMORY)]
    return {n: float(r.split()[-1]) for n in _NAMES for r in rows if f'name="{n}"' in r}


def main() -> None:
    """One life of an agent."""
    pids = {}
    (_TREE / "cgroup.subtree_control").write_text("+memory")
    for name in _NAMES:
        child = subprocess.Popen(["sleep", "infinity"])
        for top in (_CPU, _TREE):
            (top / name).mkdir()
            (top / name / "cgroup.procs").write_text(str(child.pid))
        pids[name] = child.pid
    config = pathlib.Path("/tmp/koordlet.yaml")
    config.write_text(_CONFIG)
    facts: dict[str, object] = {"before": moment(pids)}
    words = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    with pathlib.Path("/tmp/log").open("w+b") as log:
        agent = subprocess.Popen([*words, "--state-dir", "/tmp/koordlet-state"], stderr=log)
        facts["settled"] = until(lambda: sets() == dict.fromkeys(_NAMES, "1"))
        facts["counted"] = until(lambda: used().keys() == set(_NAMES))
        facts["meanwhile"] = moment(pids)
        agent.terminate()
        facts["status"] = agent.wait(120)
        log.seek(0)
        facts["log"] = log.read().decode()[-8000:]
    print(json.dumps({**facts, "after": moment(pids)}))


if __name__ == "__main__":
    main()
