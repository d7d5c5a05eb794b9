"""Groups with names that nobody should choose: written, remembered and put back like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit import agents, dying, nameless, trees
from tests.kit.kernel import Machine
from tests.kit.kernel.machine import Cgroup

CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
workloads:
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""


def furnished(version: Cgroup, state: Path) -> agents.Site:
    """A best-effort workload that has named its groups itself."""
    host = Machine("0-3", cgroup=version, passed_down=("cpuset", "cpu") if version == "v2" else ())
    top = trees.top(version)
    for path in ("batch", *(f"batch/{name}" for name in nameless.NAMES)):
        host.mkdir(host.at(f"{top}/{path}"))
        if version == "v1":
            host.write(host.at(f"{top}/{path}/cpuset.cpus"), b"0-3\n")
            host.write(host.at(f"{top}/{path}/cpuset.mems"), b"0\n")
    for name in nameless.NAMES:
        host.spawn(f"{top}/batch/{name}")
    return agents.Site(host, state, config=CONFIG)


def test_nobody_escapes_by_a_name(ram: Path) -> None:
    """Every group is cut to the pool on v1, where each has to be, and the audit log can be read."""
    site = furnished("v1", ram)
    before = site.image()
    site.settle()
    top = trees.top("v1")
    for name in nameless.NAMES:
        assert site.host.text(site.host.at(f"{top}/batch/{name}/cpuset.cpus")).strip() == "1-3"

    records = [json.loads(line) for line in site.paths.audit.read_text().splitlines()]
    groups = {
        record["group"].removeprefix("batch/") for record in records if record["verdict"] == "done"
    }
    assert set(nameless.NAMES) <= groups
    assert site.restore().failed == ()
    assert before == site.image()


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_killed_among_them(ram: Path, version: Cgroup) -> None:
    """After a kill in the middle the next agent puts everything back by its journal."""
    site = furnished(version, ram)
    before = site.image()
    with pytest.raises(dying.Killed):
        site.settle(dying.DyingHost(site.host, 2, done=True))

    assert site.restore().failed == ()
    assert before == site.image()
