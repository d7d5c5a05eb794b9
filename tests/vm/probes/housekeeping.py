"""Runs in the machine: an agent that keeps the kernel's own work off CPUs that a workload holds.

Prints JSON: where interrupts and work queues were before, meanwhile and after it.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable

STATE = "/tmp/koordlet-state"
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
policies:
  shared_pools: {mode: "off"}
  housekeeping: {mode: enforce}
workloads:
  - {name: alone, qos: LSE, cpus: "2-3", match: {cgroup: alone}}
"""


def where() -> dict[str, str]:
    """Every file's text."""
    files = [
        *pathlib.Path("/proc/irq").glob("*/smp_affinity_list"),
        pathlib.Path("/proc/irq/default_smp_affinity"),
        pathlib.Path("/sys/devices/virtual/workqueue/cpumask"),
    ]
    found = {}
    for file in files:
        with contextlib.suppress(OSError):
            found[str(file)] = file.read_text().strip()
    return found


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
    pathlib.Path("/sys/fs/cgroup/alone").mkdir()
    config = pathlib.Path("/tmp/koordlet.yaml")
    config.write_text(CONFIG)
    before = where()
    queues = "/sys/devices/virtual/workqueue/cpumask"
    argv = [sys.executable, "-m", "koordlet", "run", "--config", str(config), "--state-dir", STATE]
    with pathlib.Path("/tmp/log").open("w+b") as log:
        agent = subprocess.Popen(argv, stderr=log)
        settled = until(lambda: where()[queues] != before[queues])
        time.sleep(3)
        meanwhile = where()
        agent.terminate()
        status = agent.wait(120)
        log.seek(0)
        text = log.read().decode()[-6000:]
    said = {"before": before, "meanwhile": meanwhile, "after": where()}
    print(json.dumps({**said, "settled": settled, "status": status, "log": text}))


if __name__ == "__main__":
    main()
