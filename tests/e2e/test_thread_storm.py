"""A best-effort workload that starts 10 000 threads which all compute: the limit holds, in time.

The limit is a quota, because on a machine of few CPUs that is the one which threads run into. What
is judged is the kernel's own account of CPU time, and how late the agent says that its ticks were,
less how late an idle process is woken in the same seconds.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kit import answers, deadline, live

pytestmark = pytest.mark.e2e

THREADS = 10_000
#: The formula has no room for anything, so what counts is the least: a fifth of the machine.
_CONFIG = """
apiVersion: koordlet.io/v1
kind: Config
policies:
  cpu_suppress:
    enable: true
    cpuSuppressPolicy: cfsQuota
    cpuSuppressThresholdPercent: 5
    cpuSuppressMinPercent: 20
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""
_SECONDS = 6
_SOURCE = Path(__file__).parents[1] / "kit" / "storm.c"
#: An idle process: the latest of its wake-ups, one each 100 ms.
_IDLE = """
import sys, time
worst, due, end = 0.0, time.monotonic(), time.monotonic() + float(sys.argv[1])
while due < end:
    due += 0.1
    time.sleep(max(0.0, due - time.monotonic()))
    worst = max(worst, time.monotonic() - due)
print(worst)
"""


def groups(place: live.Place, name: str) -> list[Path]:
    """A workload's group in each hierarchy."""
    place.group(name)
    paths = [Path(top, name) for top in place.tops]
    for path in paths:
        path.mkdir(exist_ok=True)
    return paths


def test_ten_thousand_threads(place: live.Place, tmp_path: Path) -> None:
    """They get their limit and no more, are all counted, and no tick is late for their sake."""
    program = tmp_path / "storm"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, _SOURCE], check=True)
    batch = groups(place, "batch")
    groups(place, "web")
    quota = next(group / "cpu.cfs_quota_us" for group in batch if (group / "cpu.shares").exists())
    usage = next(group / "cpuacct.usage" for group in batch if (group / "cpuacct.usage").exists())
    config = tmp_path / "config.yaml"
    config.write_text(_CONFIG)
    with place.running("--config", str(config)) as agent:
        agent.until("READY=1")
        deadline.until(lambda: int(quota.read_text()) > 0, "a quota")
        enter = "".join(f"echo $$ > {group}/cgroup.procs; " for group in batch)
        storm = subprocess.Popen(
            ["sh", "-c", f'{enter}exec "$@"', "sh", program, str(THREADS)], stdout=subprocess.PIPE
        )
        try:
            deadline.until(lambda: threads(storm.pid) > THREADS, "10 000 threads")
            address = address_of(agent.err)
            ticks = answers.metric(address, "koordlet_ticks_total")
            began, spent = time.monotonic(), int(usage.read_text())
            idle = float(subprocess.check_output([sys.executable, "-c", _IDLE, str(_SECONDS)]))
            lasted, spent = time.monotonic() - began, int(usage.read_text()) - spent
            limit = int(quota.read_text())
            passed = answers.metric(address, "koordlet_ticks_total") - ticks
            late = answers.metric(
                address, 'koordlet_tick_lateness_quantile_seconds{quantile="0.99"}'
            )
        finally:
            storm.kill()
            storm.wait()
            assert storm.stdout is not None
            storm.stdout.close()

    assert 0 < limit < 100_000
    # Each CPU may begin a slice of 5 ms that the quota no longer covers.
    assert spent / 1e9 <= 1.3 * lasted * limit / 100_000 + 0.1
    assert passed >= 0.7 * lasted
    assert late - idle <= 0.5
    assert int(quota.read_text()) == -1


def threads(pid: int) -> int:
    """How many a process has."""
    line = re.search(r"Threads:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(line[1]) if line else 0


def address_of(log: str) -> str:
    """Where the agent answers."""
    url = re.search(r"http://(127\.0\.0\.1:\d+)/", log)
    assert url is not None
    return url[1]
