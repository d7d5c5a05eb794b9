"""Machines with resource control, workloads on them, and an agent that enforces it.

Covers: a site whose resctrl is mounted, one process for each of three classes.
Does not cover: the file system's manners (``tests.kit.kernel.resctrl``).
"""

from __future__ import annotations

from pathlib import Path

from koordlet.model import schemata
from tests.kit import agents
from tests.kit.kernel import KernelHost, Machine

PLACE = "/sys/fs/resctrl"
NODES = {0: "0-3", 1: "4-7"}
CONFIG = """
policies:
  shared_pools: {mode: "off"}
  reserved_cpus: {mode: "off"}
  resctrl: {mode: enforce%s}
workloads:
  - {name: web, qos: LSR, match: {cgroup: web}}
  - {name: api, qos: LS, match: {cgroup: api}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""


def machine(
    rdt: str = "intel", *, mount: str | None = "", l3: dict[int, str] | None = None
) -> KernelHost:
    """Eight CPUs, two caches, three cgroups with a process each; ``mount=None`` does not mount."""
    host = Machine("0-7", NODES, rdt=rdt, l3=l3)
    if mount is not None:
        host.mount("resctrl", host.at(PLACE), "resctrl", mount)
    for name in ("web", "api", "batch"):
        for controller in ("cpuset", "cpu,cpuacct"):
            host.mkdir(host.at(f"/sys/fs/cgroup/{controller}/{name}"))
        host.write(host.at(f"/sys/fs/cgroup/cpuset/{name}/cpuset.cpus"), b"0-7\n")
        host.write(host.at(f"/sys/fs/cgroup/cpuset/{name}/cpuset.mems"), b"0\n")
        host.spawn(f"/sys/fs/cgroup/cpuset/{name}")
    host.calls.clear()
    return host


def site(host: KernelHost, state: Path, more: str = "") -> agents.Site:
    """An agent's place there; ``more`` goes into the policy's section (``, beClass: ...``)."""
    return agents.Site(host, state, config=CONFIG % more)


def text(host: KernelHost, name: str) -> str:
    """A file below the mount."""
    return host.text(host.at(f"{PLACE}/{name}"))


def values(host: KernelHost, group: str) -> schemata.Values:
    """A group's schemata."""
    return schemata.parse(text(host, f"{group}/schemata")).values


def pids(host: KernelHost, cgroup: str) -> list[int]:
    """The processes of a workload."""
    return host.pids(f"/sys/fs/cgroup/cpuset/{cgroup}")


def inside(host: KernelHost, group: str) -> list[int]:
    """The threads of a resctrl group."""
    return [int(word) for word in text(host, f"{group}/tasks").split()]
