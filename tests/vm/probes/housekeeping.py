"""Runs in the machine: an agent that keeps the kernel's own work off CPUs that a workload holds.

The kernel does not balance two of the CPUs, of which that workload names one.

Prints JSON: where interrupts and work queues were before, meanwhile and after it; the CPUs of every
workload meanwhile, and what the agent says of those that are not balanced.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.vm.probes.classes import document

STATE = "/tmp/koordlet-state"
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {grpc: {enabled: false}}
policies:
  shared_pools: {enableControllers: true}
  housekeeping: {mode: enforce}
workloads:
  - {name: alone, qos: LSE, cpus: "2-3", match: {cgroup: alone}}
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: job, qos: BE, match: {cgroup: job}}
"""
GROUPS = tuple(pathlib.Path("/sys/fs/cgroup", name) for name in ("alone", "web", "job"))


def where() -> dict[str, str]:
    """Every file's text."""
    files = [
        *pathlib.Path("/proc/irq").glob("*/smp_affinity_list"),
        pathlib.Path("/proc/irq/default_smp_affinity"),
        pathlib.Path("/sys/devices/virtual/workqueue/cpumask"),
    ]
    values = {}
    for file in files:
        with contextlib.suppress(OSError):
            values[str(file)] = file.read_text().strip()
    return values


def until(true: Callable[[], bool]) -> bool:
    """Waits for something."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.2)
    return False


def main() -> None:
    """One life of an agent."""
    for group in GROUPS:
        group.mkdir()
    config = pathlib.Path("/tmp/koordlet.yaml")
    config.write_text(CONFIG)
    before = where()
    queues = "/sys/devices/virtual/workqueue/cpumask"
    argv = [sys.executable, "-m", "koordlet", "run", "--config", str(config), "--state-dir", STATE]
    with pathlib.Path("/tmp/log").open("w+b") as log:
        agent = subprocess.Popen(argv, stderr=log)
        settled = until(lambda: where()[queues] != before[queues])
        # The first pass is over when its plan can be asked for: whatever is moved, is by then.
        settled &= until(lambda: "conditions" in document("/api/v1/plan"))
        meanwhile = where()
        cpus = {group.name: (group / "cpuset.cpus").read_text().strip() for group in GROUPS}
        conditions = document("/api/v1/plan").get("conditions")
        agent.terminate()
        status = agent.wait(120)
        log.seek(0)
        text = log.read().decode()[-6000:]
    facts: dict[str, Any] = {"before": before, "meanwhile": meanwhile, "after": where()}
    facts |= {"cpus": cpus, "conditions": conditions}
    print(json.dumps({**facts, "settled": settled, "status": status, "log": text}))


if __name__ == "__main__":
    main()
