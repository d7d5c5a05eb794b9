"""Sets that others write in the kubelet's tree: decided anew, made room for, or told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.model import cpuset, kubelet, qos
from tests.agent.test_moving_sets import KUBE, Node, kube
from tests.kit.kernel.machine import Cgroup

Qos, KubeQos = qos.Qos, qos.KubeQos
RESERVE = "policies: {reserved_cpus: {cpus: '0'}}\n"
TIER = KUBE.tier(KubeQos.BURSTABLE)
POD = KUBE.pod(KubeQos.BURSTABLE, "p1")
BOX, OTHER = f"{POD}/{'a' * 64}", f"{POD}/{'b' * 64}"
WEB = kube("p1", Qos.LS, KubeQos.BURSTABLE, boxes="ab")


def static(default: str = "0-7", **held: str) -> kubelet.Kubelet:
    """A kubelet that writes containers' sets: its default, and those of pods' container a."""
    entries = {uid: {"a": cpuset.CPUSet.parse(cpus)} for uid, cpus in held.items()}
    state = kubelet.CpuState(policy="static", default=cpuset.CPUSet.parse(default), entries=entries)
    return kubelet.Kubelet(cpu=state)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_another_agent_left_in_containers(version: Cgroup, tmp_path: Path) -> None:
    """Without the kubelet's static policy all sets are ours, and stay; stopping brings his back."""
    node = Node(version, tmp_path)
    for path, cpus in ((TIER, "0-3"), (POD, "0-3"), (BOX, "2"), (OTHER, "")):
        node.make(path, cpus)
    before = node.site.image()

    for _ in range(3):
        conditions = node.passed(WEB, config=RESERVE)

        assert [node.cpus(path) for path in (TIER, POD, BOX, OTHER)] == ["1-7"] * 4
        assert conditions == []
    node.site.restore()

    assert before == node.site.image()


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_all_pods_stay_where_somebody_keeps_them(version: Cgroup, tmp_path: Path) -> None:
    """``AllowedCPUs=`` of their slice: its owner keeps pods off the other CPUs, koordlet tells."""
    node = Node(version, tmp_path)
    node.make(KUBE.root, "0-3")
    node.make(BOX)
    before = node.site.image()

    for _ in range(3):
        conditions = node.passed(WEB, config=RESERVE)

        assert [node.cpus(path) for path in (KUBE.root, TIER, BOX)] == ["1-3"] * 3
        assert conditions == ["PodsConfined node"]
    conditions = node.passed(WEB, config=RESERVE.replace("'0'", "'0,4-7'"))
    node.site.restore()

    assert conditions == []
    assert before == node.site.image()


def test_all_pods_stay_there_before_the_kubelet_has_said_its_policy(tmp_path: Path) -> None:
    """v1: wide is as far as they were. A static one's CPUs have room: without, none starts."""
    node = Node("v1", tmp_path)
    node.make(KUBE.root, "0-3")
    node.make(BOX)
    web = replace(WEB, source="cluster")
    silent = ["CPUManagerPolicyUnknown node", "PodsConfined node"]
    known = kubelet.Kubelet(configuration=kubelet.Configuration())
    for reported, root, box, conditions in (
        (None, "0-3", "1-3", silent),
        (known, "1-3", "1-3", ["PodsConfined node"]),
        (None, "0-3", "1-3", silent),
        (static("0-2"), "0-3", "1-3", ["PodsConfined node"]),
        (static("0-5"), "0-5", "1-5", ["PodsConfined node"]),
        (static("0-7"), "0-7", "1-7", []),
        (static("0-3,6-7", p9="4-5"), "0-7", "1-3,6-7", []),
    ):
        met = node.passed(web, config=RESERVE, reported=reported, passes=2)

        assert [node.cpus(path) for path in (KUBE.root, BOX)] == [root, box]
        assert sorted(met) == conditions


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_a_workload_makes_inside_is_its_own(version: Cgroup, tmp_path: Path) -> None:
    """Below a container sets are wishes of who runs there."""
    node = Node(version, tmp_path)
    for path, cpus in ((BOX, "2-5"), (f"{BOX}/inner", "2-3")):
        node.make(path, cpus)
    node.passed(WEB, config=RESERVE)

    assert [node.cpus(path) for path in (BOX, f"{BOX}/inner")] == ["1-7", "2-3"]


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("holds", [False, True])
def test_a_container_of_the_static_policy_that_runs_on_less(
    version: Cgroup, holds: bool, tmp_path: Path
) -> None:
    """It is the kubelet's to write, or ours to write below it; if it stays, a condition tells."""
    node = Node(version, tmp_path)
    for path, cpus in ((BOX, "2"), (OTHER, "")):
        node.make(path, cpus)
    reported = static("0-1,4-7", p1="2-3") if holds else static()
    web = kube("p1", Qos.LS, KubeQos.BURSTABLE, boxes="a")
    if holds:
        web = kube("p1", Qos.LSR, KubeQos.GUARANTEED, "2-3", boxes="a")
        web = replace(web, kubelet_owned=True)
        node.make(f"{KUBE.pod(KubeQos.GUARANTEED, 'p1')}/{'a' * 64}", "2")

    conditions = node.passed(web, config=RESERVE, reported=reported, passes=2)

    ours = version == "v1" and not holds
    assert ([] if ours else ["CPUSetTooNarrow t/p1"]) == conditions


def test_room_for_what_a_static_kubelet_writes(tmp_path: Path) -> None:
    """v1: tiers and pods have the CPUs that it writes into containers, also before there is one."""
    node = Node("v1", tmp_path)
    be = kube("p2", Qos.BE, KubeQos.BEST_EFFORT)
    for path in (POD, KUBE.pod(KubeQos.BEST_EFFORT, "p2")):
        node.make(path)
    node.passed(WEB, be, config=RESERVE, reported=static(), passes=2)
    node.make(BOX, "0-7")
    assert node.cpus(BOX) == "0-7"

    node.passed(WEB, be, config=RESERVE, reported=static(), passes=2)

    assert [node.cpus(path) for path in (POD, BOX)] == ["0-7", "1-7"]


def test_a_pod_that_another_agent_left_too_narrow(tmp_path: Path) -> None:
    """v1, static policy: it is widened, and stays so; stopping brings back what was there."""
    node = Node("v1", tmp_path)
    for path, cpus in ((TIER, "1-3"), (POD, "1-3"), (BOX, "1-2")):
        node.make(path, cpus)
    before = node.site.image()
    for _ in range(3):
        node.passed(WEB, config=RESERVE, reported=static(), passes=2)

        assert [node.cpus(path) for path in (TIER, POD, BOX)] == ["0-7", "0-7", "1-7"]
    node.site.restore()

    assert before == node.site.image()


def test_a_kubelet_that_has_not_said_its_policy(tmp_path: Path) -> None:
    """v1: it may write its default set into containers, so pods stay wide; that is said."""
    node = Node("v1", tmp_path)
    pods = [
        replace(pod, source="cluster") for pod in (WEB, kube("p2", Qos.BE, KubeQos.BEST_EFFORT))
    ]
    for path in (POD, KUBE.pod(KubeQos.BEST_EFFORT, "p2")):
        node.make(path)

    assert node.passed(*pods, config=RESERVE, passes=2) == ["CPUManagerPolicyUnknown node"]
    node.make(BOX, "0-7")
    node.passed(*pods, config=RESERVE)
    assert [node.cpus(path) for path in (TIER, POD, BOX)] == ["0-7", "0-7", "1-7"]

    configured = kubelet.Kubelet(configuration=kubelet.Configuration())
    assert node.passed(*pods, config=RESERVE, reported=configured) == []
    assert [node.cpus(path) for path in (TIER, POD, BOX)] == ["1-7", "1-7", "1-7"]


def test_v2_what_an_unknown_kubelet_may_hold_alone(tmp_path: Path) -> None:
    """Sets in Guaranteed pods may be exclusive: they stay, until it has said that it has none."""
    node = Node("v2", tmp_path)
    box = node.make(f"{KUBE.pod(KubeQos.GUARANTEED, 'p1')}/{'a' * 64}", "2-3")
    web = replace(kube("p1", Qos.LS, KubeQos.GUARANTEED, boxes="a"), source="cluster")
    node.passed(web, config=RESERVE)
    assert node.cpus(box) == "2-3"

    configured = kubelet.Kubelet(configuration=kubelet.Configuration())
    node.passed(web, config=RESERVE, reported=configured)
    assert node.cpus(box) == "1-7"
