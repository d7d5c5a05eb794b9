"""Copies of sets that we narrowed: found, with the original of what they copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply import test_interrupted
from tests.kit import agents

TOP = "/sys/fs/cgroup/cpuset"


def born(site: agents.Site, path: str, cpus: str) -> None:
    """A group with a copy of the set above it, as a runtime makes one."""
    site.host.mkdir(site.host.at(f"{TOP}/{path}"))
    for name, text in (("cpus", cpus), ("mems", "0")):
        site.host.write(site.host.at(f"{TOP}/{path}/cpuset.{name}"), f"{text}\n".encode())


def cpus(site: agents.Site, path: str) -> str:
    """A group's set."""
    return site.host.text(site.host.at(f"{TOP}/{path}/cpuset.cpus")).strip()


@pytest.mark.parametrize("again", [False, True])
def test_what_was_born_in_a_narrowed_group(ram: Path, *, again: bool) -> None:
    """It follows the set above, and has the original of that after a restore; a wish stays one."""
    site = test_interrupted.workloads("v1", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        ours = cpus(site, "web")
        assert ours != "0-4"
        born(site, "web/copy", ours)
        born(site, "web/copy/inner", ours)
        born(site, "web/wish", ours[0])
        agents.settle(who, site.clock)
        if not again:
            assert not who.restore().failed
    if again:
        assert not site.restore().failed

    assert ["0-4", "0-4", ours[0]] == [
        cpus(site, f"web/{n}") for n in ("copy", "copy/inner", "wish")
    ]


def test_a_copy_follows_the_set_above(ram: Path) -> None:
    """When the workload gets more, what was born inside it gets more as well."""
    site = test_interrupted.workloads("v1", ram)
    with site.agent() as who:
        agents.settle(who, site.clock)
        born(site, "web/copy", cpus(site, "web"))
        agents.settle(who, site.clock)
        wider = agents.effective(site.config.replace("reserved_cpus:", "reserved_cpus: #"))
        who.line.configure(wider)
        agents.settle(who, site.clock)

        assert cpus(site, "web") == cpus(site, "web/copy")
