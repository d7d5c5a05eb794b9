"""Sites where an agent finds work: declared workloads, and the demo's two processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from koordlet.demo import groups as demo
from koordlet.policy.framework import registry
from tests.kit import agents, trees
from tests.kit.kernel import Machine
from tests.kit.kernel.machine import Cgroup

Make = Callable[[Path], agents.Site]

WORKLOADS = """
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
workloads:
  - {name: web, qos: LSR, cpus: "2-3", match: {cgroup: web}}
  - {name: api, qos: LS, match: {cgroup: api}}
  - {name: batch, qos: BE, match: {cgroup: batch/jobs}}
"""

DEMO = """
policies:
  reserved_cpus: {quantity: "1"}
  shared_pools: {enableControllers: true}
"""


def workloads(version: Cgroup, state: Path) -> agents.Site:
    """Three declared workloads; below ``api`` are groups of its own."""
    passed_down = ("cpu", "memory", "pids") if version == "v2" else ()
    host = Machine("0-4", cgroup=version, passed_down=passed_down)
    top = trees.top(version)
    for path in ("web", "api", "api/one", "api/two", "batch", "batch/jobs"):
        host.mkdir(host.at(f"{top}/{path}"))
        if version == "v1":
            host.write(host.at(f"{top}/{path}/cpuset.cpus"), b"0-4\n")
            host.write(host.at(f"{top}/{path}/cpuset.mems"), b"0\n")
    if version == "v1":
        host.write(host.at(f"{top}/api/two/cpuset.cpus"), b"0-1\n")
    for path in ("web", "api/one", "batch/jobs"):
        host.spawn(f"{top}/{path}")
    host.calls.clear()
    return agents.Site(host, state, config=WORKLOADS)


def busy_demo(version: Cgroup, state: Path) -> agents.Site:
    """The demo's two processes, in groups that the agent makes and removes."""
    host = Machine("0-4", cgroup=version)
    pids = (("ls", host.spawn()), ("be", host.spawn()))
    host.calls.clear()
    return agents.Site(
        host,
        state,
        config=DEMO,
        rows=(demo.POLICY, *registry.POLICIES),
        settings={demo.STEM: demo.DemoSettings(pids=pids)},
        pods=demo.PODS,
    )


SCENES: dict[str, Make] = {
    "workloads on v1": lambda state: workloads("v1", state),
    "workloads on v2": lambda state: workloads("v2", state),
    "demo on v1": lambda state: busy_demo("v1", state),
    "demo on v2": lambda state: busy_demo("v2", state),
}
