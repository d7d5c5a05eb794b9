"""A cpuset partition of another program keeps its CPUs, and nobody of ours waits for them."""

from __future__ import annotations

from pathlib import Path

from tests.kit import agents
from tests.kit.kernel import Machine

CGROUPS = "/sys/fs/cgroup"
CONFIG = """
policies:
  shared_pools: {mode: enforce, enableControllers: true}
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: job, qos: BE, match: {cgroup: job}}
  - {name: db, qos: LSE, match: {cgroup: db}, cpus: 2}
"""


def test_a_partition_stays_whole_and_apart(tmp_path: Path) -> None:
    """No CPU of it is chosen for a workload: no set below could hold anybody to it."""
    host = Machine("0-7", cgroup="v2")
    host.write(host.at(f"{CGROUPS}/cgroup.subtree_control"), b"+cpuset")
    for name in ("realtime", "web", "job", "db"):
        host.mkdir(host.at(f"{CGROUPS}/{name}"))
        host.spawn(f"{CGROUPS}/{name}")
    partition = f"{CGROUPS}/realtime/cpuset.cpus.partition"
    host.write(host.at(f"{CGROUPS}/realtime/cpuset.cpus"), b"0-3")
    host.write(host.at(partition), b"isolated")

    agents.Site(host, tmp_path, config=CONFIG).settle()

    assert host.text(host.at(partition)).strip() == "isolated"
    sets = {
        name: host.text(host.at(f"{CGROUPS}/{name}/cpuset.cpus.effective")).strip()
        for name in ("realtime", "db", "web", "job")
    }
    assert sets == {"realtime": "0-3", "db": "4-5", "web": "6-7", "job": "6-7"}
