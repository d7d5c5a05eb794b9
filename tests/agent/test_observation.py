"""What is read only where somebody asks; whom a pass finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.agent import observation
from koordlet.host import observe
from koordlet.host.recording import directory
from koordlet.model import plan, qos
from koordlet.policy.memory_io import blkio_qos, network_qos
from tests.agent.test_moving_sets import KUBE, Node, kube
from tests.kit import moments, trees
from tests.kit.kernel.machine import Cgroup


def test_nobody_asks_for_links_while_the_policy_is_off(tmp_path: Path) -> None:
    """Neither off nor unknown modes look; shadow does, so that people see what would be done."""
    seen = moments.moment(moments.machine())
    seen = replace(seen, pods=())
    observer = observe.Observer(directory.DirHost(str(tmp_path)))
    settings = {
        blkio_qos.STEM: blkio_qos.Settings(),
        network_qos.STEM: network_qos.Settings(interfaces=("eth0",)),
    }
    for mode in ({}, {network_qos.STEM: plan.Mode.OFF}):
        assert observation.read_optional(seen, observer, settings, mode, slow=True) is seen

    shadowed = {network_qos.STEM: plan.Mode.SHADOW}
    assert observation.read_optional(seen, observer, settings, shadowed, slow=True) == seen
    assert seen.blocks is None


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_stale_pod_has_its_cpus_for_as_long_as_its_cgroup_is_there(
    version: Cgroup, tmp_path: Path
) -> None:
    """No source lists it now, such as a kubelet that has just started: its containers run."""
    node, tier = Node(version, tmp_path), qos.KubeQos.BURSTABLE
    shared, alone = kube("shared", qos.Qos.LS, tier), kube("alone", qos.Qos.LSR, tier)
    alone = replace(alone, requests={"cpu": 2000}, band=qos.Band.PROD)
    groups = [node.make(KUBE.pod(tier, pod.uid)) for pod in (shared, alone)]
    missed = replace(alone, stale=True)

    for pods in ((shared, alone), (shared, missed)):
        node.passed(*pods, passes=3)
        assert [node.cpus(group) for group in groups] == ["2-7", "0-1"]
    node.host.rmdir(node.host.at(f"{trees.top(version)}/{groups[1]}"))
    node.passed(shared, missed, passes=3)
    assert node.cpus(groups[0]) == "0-7"
