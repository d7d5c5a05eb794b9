"""What the kernel's scheduler is told of each class, decided from a moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import cgroup, decision, nodeslo, pod, qos, strategies, wishes
from koordlet.policy.cpu import cpu_qos as policy
from tests.kit import moments

ORDINARY = cgroup.Hierarchy(
    mount="/cg", unified=True, controllers=frozenset({"cpu"}), lacks=frozenset({"cpu.bvt_warp_ns"})
)
#: A kernel that knows a group's identity, and one that does not.
KNOWS = cgroup.Layout(hierarchies=(replace(ORDINARY, lacks=frozenset()),))
KNOWS_NOT = cgroup.Layout(hierarchies=(ORDINARY,))
TIERS = {
    qos.KubeQos.GUARANTEED: "kubepods",
    qos.KubeQos.BURSTABLE: "kubepods/burstable",
    qos.KubeQos.BEST_EFFORT: "kubepods/besteffort",
}
ON = nodeslo.CLASSES
ALL = {name: replace(ON[name].cpu, enable=True) for name in policy.CLASSES}
OFF = strategies.CpuQos(enable=False, group_identity=2)


def workload(
    raw: qos.Qos | None, kube: qos.KubeQos | None, asked: strategies.CpuQos | None = None
) -> pod.Pod:
    """A pod where its kubelet puts it, or a declared workload."""
    return moments.workload(
        "web",
        raw or qos.Qos.LS,
        raw_qos=raw if kube is not None else None,
        kube_qos=kube,
        group=f"{TIERS[kube]}/podweb" if kube is not None else "web",
        wishes=wishes.Wishes(cpu_qos=asked),
    )


def decide(
    *pods: pod.Pod,
    classes: dict[str, strategies.CpuQos] | None = None,
    layout: cgroup.Layout = KNOWS,
    slo: nodeslo.NodeSlo | None = None,
    most: int = 2,
) -> decision.Decision[policy.State]:
    """One decision."""
    paths = {"", *TIERS.values(), *(member.group or "" for member in pods)}
    groups = [moments.group(path, "0-11") for path in sorted(paths)]
    now = moments.moment(moments.machine(), pods, layout=layout, groups=groups)
    settings = policy.Settings(classes=classes or {}, most=most)
    return policy.decide(replace(now, slo=slo), series.History(), settings, policy.State())


def values_of(decided: decision.Decision[policy.State]) -> dict[str, str]:
    """Group and file to what is written."""
    files = moments.written(decided.actions)
    return {path.removeprefix("/cg/"): text for path, text in files.items()}


@pytest.mark.parametrize(
    ("raw", "kube", "expected"),
    [
        (qos.Qos.LSE, qos.KubeQos.GUARANTEED, "2"),
        (qos.Qos.LSR, qos.KubeQos.GUARANTEED, "2"),
        (qos.Qos.LS, qos.KubeQos.BURSTABLE, "1"),
        (qos.Qos.BE, qos.KubeQos.BURSTABLE, "-1"),
        (None, qos.KubeQos.GUARANTEED, "2"),
        (None, qos.KubeQos.BURSTABLE, "1"),
        (None, qos.KubeQos.BEST_EFFORT, "-1"),
        (qos.Qos.SYSTEM, qos.KubeQos.GUARANTEED, "2"),
        (qos.Qos.BE, None, "-1"),
        (qos.Qos.SYSTEM, None, "0"),
    ],
)
def test_each_class_has_its_identity(
    raw: qos.Qos | None, kube: qos.KubeQos | None, expected: str
) -> None:
    """By its own name, else by what Kubernetes says; the groups above have theirs."""
    classes = {**ALL, "LS": replace(ALL["LS"], group_identity=1)}
    subject = workload(raw, kube)
    other = replace(workload(qos.Qos.LSR, None), group="other", uid="other")
    values = values_of(decide(subject, other, classes=classes))

    assert ("2", expected) == (
        values["other/cpu.bvt_warp_ns"],
        values[f"{subject.group}/cpu.bvt_warp_ns"],
    )
    tiers = [values.get(f"{tier}/cpu.bvt_warp_ns") for tier in TIERS.values()]
    assert ([None] * 3 if kube is None else ["0", "1", "-1"]) == tiers


def test_a_guaranteed_pod_without_a_class_is_ls_where_lsr_is_off() -> None:
    """The peer's rule."""
    values = values_of(decide(workload(None, qos.KubeQos.GUARANTEED), classes={"LS": ALL["LS"]}))
    assert values["kubepods/podweb/cpu.bvt_warp_ns"] == "2"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (strategies.CpuQos(enable=True, group_identity=1), "1"),
        (strategies.CpuQos(enable=True), "2"),
        (strategies.CpuQos(group_identity=1), "0"),
        (OFF, "0"),
    ],
)
def test_an_annotation_counts_for_ls_alone(asked: strategies.CpuQos, expected: str) -> None:
    """Not enabled is 0; for another class it is nothing."""
    ls = workload(qos.Qos.LS, qos.KubeQos.BURSTABLE, asked)
    be = workload(qos.Qos.BE, qos.KubeQos.BEST_EFFORT, asked)

    assert (
        values_of(decide(ls, classes=ALL))["kubepods/burstable/podweb/cpu.bvt_warp_ns"] == expected
    )
    assert values_of(decide(be, classes=ALL))["kubepods/besteffort/podweb/cpu.bvt_warp_ns"] == "-1"


def test_the_operator_has_the_last_word() -> None:
    """No group is told more than he allows."""
    allowed = workload(qos.Qos.LS, qos.KubeQos.BURSTABLE, strategies.CpuQos(enable=True))
    written = values_of(decide(allowed, classes=ALL, most=0))
    values = {where.rpartition("/")[0]: value for where, value in written.items()}

    expected = {"kubepods": "0", "kubepods/burstable": "0", "kubepods/burstable/podweb": "0"}
    assert {**expected, "kubepods/besteffort": "-1"} == values


def test_nothing_is_ours_while_nobody_asks() -> None:
    """Neither without a strategy nor where all of it is 0."""
    idle = workload(qos.Qos.LS, qos.KubeQos.BURSTABLE)
    nothing = {name: replace(ALL[name], group_identity=0) for name in ALL}

    for classes in ({}, nothing):
        made = decide(idle, classes=classes)
        assert (made.actions, made.conditions, made.explanation) == ((), (), {})


def test_another_kernel() -> None:
    """Nothing is written, and one condition says why."""
    made = decide(workload(qos.Qos.LS, qos.KubeQos.BURSTABLE), classes=ALL, layout=KNOWS_NOT)

    assert made.actions == ()
    (condition,) = made.conditions
    assert condition.type == "CpuQosUnsupported"
    assert "this kernel has no cpu.bvt_warp_ns (since Alibaba Cloud Linux)" in condition.message


def test_a_nodeslo_replaces_the_configuration() -> None:
    """Where it says something, the file counts no more."""
    subject = workload(qos.Qos.LS, qos.KubeQos.BURSTABLE)
    off = replace(nodeslo.DEFAULTS, source="cluster")
    classes = {**off.classes, "LS": replace(off.classes["LS"], cpu=ALL["LS"])}

    assert values_of(decide(subject, classes=ALL, slo=off)) == {}
    values = values_of(decide(subject, slo=replace(off, classes=classes)))
    assert values["kubepods/burstable/podweb/cpu.bvt_warp_ns"] == "2"


def test_the_kubelet_s_groups_are_not_idle() -> None:
    """A kubelet could set no weight in an idle group: its groups are left, which is said."""
    idle = {"BE": strategies.CpuQos(enable=True, group_identity=0, sched_idle=1)}
    theirs = workload(qos.Qos.BE, qos.KubeQos.BEST_EFFORT)
    ours = replace(workload(qos.Qos.BE, None), uid="ours", name="ours")
    made = decide(theirs, ours, classes=idle)

    assert values_of(made) == {"web/cpu.weight": "1", "web/cpu.idle": "1"}
    (condition,) = made.conditions
    assert (condition.type, "(t/web)" in condition.message) == ("CpuIdleLeft", True), condition
    assert values_of(decide(workload(qos.Qos.LS, None), classes=idle)) == {}


@pytest.mark.parametrize(
    ("asked", "by_node", "who"),
    [
        (wishes.CoreSharing(group="a", policy=None), False, "t/web"),
        (wishes.CoreSharing(group=None, policy="exclusive"), False, "t/web"),
        (wishes.CoreSharing(group=None, policy="none"), False, None),
        (None, True, "the NodeSLO's cpuPolicy"),
        (None, False, None),
    ],
)
def test_core_scheduling_is_said(
    asked: wishes.CoreSharing | None, *, by_node: bool, who: str | None
) -> None:
    """Whoever asks for it is named; where the node does, there are no identities either."""
    subject = workload(qos.Qos.LS, qos.KubeQos.BURSTABLE)
    subject = replace(subject, wishes=wishes.Wishes(core_sharing=asked))
    policy_of_node = "coreSched" if by_node else "groupIdentity"
    node = replace(nodeslo.DEFAULTS, source="cluster", cpu_policy=policy_of_node)
    classes = {**node.classes, "LS": replace(node.classes["LS"], cpu=ALL["LS"])}
    made = decide(subject, slo=replace(node, classes=classes))

    messages = [
        condition.message for condition in made.conditions if condition.type == "CoreSchedulingOff"
    ]
    assert ([] if who is None else [True]) == [who in text for text in messages if who is not None]
    assert (who is None) == (not messages)
    assert by_node == (not made.actions)
