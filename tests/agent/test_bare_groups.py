"""Bare groups on v2 to which ``cpuset`` is handed down and ``cpu`` is not: said, and not tried."""

from __future__ import annotations

import json
from pathlib import Path

from koordlet.model import result
from tests.kit import agents, trees
from tests.kit.kernel import KernelHost, Machine

_CONFIG = """
policies:
  adaptive: {mode: enforce}
workloads:
  - {name: web, qos: LS, match: {cgroup: jobs/web}}
  - {name: batch, qos: BE, match: {cgroup: jobs/batch}}
"""


def lived(ram: Path, handed: bytes) -> tuple[KernelHost, list[str], list[str]]:
    """A machine after some passes; what the kernel refused; what was said of best-effort work."""
    host, top = Machine("0-3", {0: "0-3"}, cgroup="v2"), trees.top("v2")
    host.mkdir(host.at(f"{top}/jobs"))
    host.write(host.at(f"{top}/jobs/cgroup.subtree_control"), handed)
    for name in ("jobs/web", "jobs/batch"):
        host.mkdir(host.at(f"{top}/{name}"))
        host.spawn(f"{top}/{name}")
    site = agents.Site(host, ram, config=_CONFIG)
    with site.agent() as who:
        agents.settle(who, site.clock)
        assert who.publisher.view is not None
        messages = [
            condition.message
            for condition in who.publisher.view.plan.conditions
            if condition.type == "BestEffortLimitNotApplied"
        ]
    records = [json.loads(line) for line in site.paths.audit.read_text().splitlines()]
    bad = {verdict.value for verdict in result.BAD}
    refused = [f"{r['target']}: {r.get('detail')}" for r in records if r["verdict"] in bad]
    return host, refused, messages


def test_a_group_without_the_controller_is_said_and_left_alone(ram: Path) -> None:
    """No write that the kernel must refuse; one condition names the group and the fix."""
    host, refused, messages = lived(ram, b"+cpuset\n")

    assert refused == []
    assert not [call.path for call in host.calls if "cpu.weight" in call.path]
    (message,) = messages
    assert "cpu controller is not enabled for cgroup jobs/batch" in message
    assert "CPUWeight=" in message


def test_with_the_controller_it_idles(ram: Path) -> None:
    """The same groups, with ``cpu`` handed down."""
    host, refused, messages = lived(ram, b"+cpuset +cpu\n")

    assert (refused, messages) == ([], [])
    assert host.text(host.at(f"{trees.top('v2')}/jobs/batch/cpu.idle")).strip() == "1"
