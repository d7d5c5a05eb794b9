"""What is read only where somebody asks; whom a pass finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.agent import observation
from koordlet.host import observe
from koordlet.host.recording import directory
from koordlet.model import node_ratios, observed, plan, qos, snapshot
from koordlet.policy.memory_io import blkio_qos, network_qos
from tests.agent.test_moving_sets import KUBE, Node, kube
from tests.kit import agents, moments, trees
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


def node_of(folder: Path, text: str, answer: observed.Observed | None) -> snapshot.NodeInfo:
    """The node of this section, with this answer of the sources."""
    host, effective = directory.DirHost(str(folder)), agents.effective(f"node: {text}\n")
    observing = observation.Observation(host, effective)
    observing.observed = answer
    return observing._node()


def test_ratios_of_the_table_count_where_no_node_object_has_any(tmp_path: Path) -> None:
    """A Node's own word counts before them, and so does the file's annotation."""
    table = "cpuNormalization: {other: 1.25}, amplification: {memory: 1.5}"
    written = {node_ratios.NORMALIZATION: "1.30"}
    noted = f"{{{table}, annotations: {{{node_ratios.NORMALIZATION}: '1.30'}}}}"

    alone = node_of(tmp_path, f"{{{table}}}", None)
    assert alone.annotations == {
        node_ratios.NORMALIZATION: "1.25",
        node_ratios.AMPLIFICATION: '{"cpu":1.25,"memory":1.5}',
    }
    assert node_of(tmp_path, noted, None).annotations == {
        node_ratios.NORMALIZATION: "1.30",
        node_ratios.AMPLIFICATION: '{"cpu":1.3,"memory":1.5}',
    }
    answer = observed.Observed(node=snapshot.NodeInfo(name="n", annotations=written))
    in_cluster = node_of(tmp_path, f"{{{table}}}", answer)
    assert (in_cluster.annotations, in_cluster.ratios) == (written, alone.ratios)


def test_ratios_of_a_node_that_was_not_heard_are_not_known(tmp_path: Path) -> None:
    """Its object may have an annotation, or the label that switches them off."""
    table = "{cpuNormalization: {other: 1.25}}"
    silent = snapshot.Source(name="cluster node", ok=False)
    off = snapshot.NodeInfo(name="n", labels={node_ratios.ENABLED: "false"})

    unheard = node_of(tmp_path, table, observed.Observed(sources=(silent,)))
    assert (unheard.annotations, unheard.ratios) == ({}, None)
    heard = node_of(tmp_path, table, observed.Observed(node=off)).ratios
    assert heard is not None
    assert heard.normalization == 1.0
