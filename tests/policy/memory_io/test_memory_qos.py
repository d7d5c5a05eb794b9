"""Protection and throttling of memory, decided from a moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import cgroup, decision, nodeslo, pod, qos, strategies
from koordlet.policy.memory_io import memory_qos as policy
from tests.kit import moments

V1 = cgroup.Layout(
    hierarchies=(cgroup.Hierarchy(mount="/cg", unified=False, controllers=frozenset({"memory"})),)
)
VENDOR = frozenset({"memory.wmark_ratio", "memory.wmark_scale_factor", "memory.wmark_min_adj"})
PRIORITIES = frozenset({"memory.priority", "memory.use_priority_oom"})
ORDINARY = cgroup.Hierarchy(
    mount="/cg", unified=True, controllers=frozenset({"memory"}), lacks=VENDOR | PRIORITIES
)
V2 = cgroup.Layout(hierarchies=(ORDINARY,))
SPECIAL = cgroup.Layout(hierarchies=(replace(ORDINARY, lacks=frozenset()),))
MIB = 1 << 20
Asked = strategies.MemoryQos
Decided = decision.Decision[policy.State]


def asked(**more: Any) -> Asked:
    """A class's strategy over the neutral one."""
    return strategies.overlay(nodeslo.NEUTRAL.memory, Asked(enable=True, **more))


def web(name: str = "web", **more: Any) -> pod.Pod:
    """A Burstable pod of one container, as the kubelet places it."""
    group = f"kubepods/burstable/{name}"
    return moments.workload(
        name,
        **{
            "raw_qos": qos.Qos.LS,
            "kube_qos": qos.KubeQos.BURSTABLE,
            "group": group,
            "requests": {"memory": 100 * MIB},
            "containers": (
                pod.Container(
                    name="main",
                    group=f"{group}/main",
                    requests={"memory": 100 * MIB},
                    limits={"memory": 300 * MIB},
                ),
            ),
            **more,
        },
    )


def decide(
    *pods: pod.Pod,
    classes: dict[str, Asked] | None = None,
    layout: cgroup.Layout = V2,
    slo: nodeslo.NodeSlo | None = None,
    capacity: int | None = None,
    most: int = 100,
) -> Decided:
    """One decision."""
    paths = {"", "kubepods", "kubepods/burstable", "kubepods/besteffort"}
    for member in pods:
        paths |= {member.group or "", *(each.group or "" for each in member.containers)}
    groups = [moments.group(path, "0-11") for path in sorted(paths)]
    now = moments.moment(moments.machine(), pods, layout=layout, groups=groups)
    amounts = {} if capacity is None else {"memory": capacity}
    node = replace(now.node, capacity=amounts, allocatable={"memory": 500 * MIB})
    settings = policy.Settings(classes=classes or {}, max_percent=most)
    return policy.decide(
        replace(now, slo=slo, node=node), series.History(), settings, policy.State()
    )


def texts(decided: Decided) -> dict[str, str]:
    """What each file shall say, below the mount."""
    files = moments.written(decided.actions)
    assert len(files) == len(decided.actions)
    return {path.removeprefix("/cg/"): text for path, text in files.items()}


def test_nothing_by_default() -> None:
    """Without a strategy no file is ours."""
    assert decide(web()).actions == ()
    assert decide(web(), classes={"LS": asked()}).actions == ()


def test_a_promise_is_held_all_the_way_up() -> None:
    """The container's, the pod's, and the sums of the QoS groups above them."""
    decided = decide(
        web(), web("db"), classes={"LS": asked(min_limit_percent=40, low_limit_percent=20)}
    )

    assert texts(decided) == {
        **{
            f"kubepods/burstable/{name}{inside}/memory.{file}": str(40 * MIB)
            for name in ("web", "db")
            for inside in ("", "/main")
            for file in ("min", "low")
        },
        "kubepods/burstable/memory.min": str(80 * MIB),
        "kubepods/burstable/memory.low": str(80 * MIB),
        "kubepods/memory.min": str(80 * MIB),
        "kubepods/memory.low": str(80 * MIB),
    }


def test_what_crun_nests_in_a_scope() -> None:
    """The kernel protects it as far as the scope around it is protected."""
    guarded = web()
    inside = f"{guarded.group}/crio-ab.scope/container"
    nested = replace(guarded, containers=(replace(guarded.containers[0], group=inside),))
    decided = texts(decide(nested, classes={"LS": asked(min_limit_percent=40)}))

    scope = f"{guarded.group}/crio-ab.scope"
    assert [str(40 * MIB)] * 2 == [decided[f"{at}/memory.min"] for at in (scope, inside)]


def test_throttling() -> None:
    """So far on the way from request to limit, in whole pages; without a limit, to allocatable."""
    some = asked(throttling_percent=33)
    limited = texts(decide(web(), classes={"LS": some}))
    free = replace(web().containers[0], limits={})
    unlimited = texts(decide(web(containers=(free,)), classes={"LS": some}))

    assert limited == {"kubepods/burstable/web/main/memory.high": str(166 * MIB // 4096 * 4096)}
    assert unlimited == {"kubepods/burstable/web/main/memory.high": str(232 * MIB)}


@given(*[st.integers(0, 100)] * 2, st.integers(1, 100), *[st.integers(0, 1 << 40)] * 2)
def test_protections_below_throttling(
    least: int, low: int, slow: int, request: int, more: int
) -> None:
    """Whatever is asked: 0 <= min <= low where low is set, and min <= high."""
    some = asked(min_limit_percent=least, low_limit_percent=low, throttling_percent=slow)
    kept, high = policy.protection(some, request), policy.high(some, request, request + more)

    assert 0 <= kept.min <= request
    assert kept.low == 0 or kept.min <= kept.low <= request
    assert high is None or kept.min <= high


def test_batch_memory() -> None:
    """A best-effort pod's request is what it asked of the batch resources."""
    batch = web(
        raw_qos=qos.Qos.BE,
        kube_qos=qos.KubeQos.BEST_EFFORT,
        group="kubepods/besteffort/web",
        requests={"kubernetes.io/batch-memory": 10 * MIB},
        containers=(),
    )

    decided = decide(batch, classes={"BE": asked(min_limit_percent=50)})
    assert texts(decided)["kubepods/besteffort/web/memory.min"] == str(5 * MIB)


@pytest.mark.parametrize(
    ("raw", "kube", "name"),
    [
        (qos.Qos.LSE, qos.KubeQos.GUARANTEED, "LSR"),
        (None, qos.KubeQos.GUARANTEED, "LSR"),
        (None, qos.KubeQos.BEST_EFFORT, "BE"),
        (qos.Qos.SYSTEM, qos.KubeQos.BURSTABLE, None),
    ],
)
def test_whose_strategy(raw: qos.Qos | None, kube: qos.KubeQos, name: str | None) -> None:
    """The label's class; without a label Kubernetes' own; system pods have none."""
    every = {kind: asked(oom_kill_group=1) for kind in ("LSR", "LS", "BE")}
    member = web(raw_qos=raw, kube_qos=kube)

    assert bool(decide(member, classes=every).actions) is (name is not None)
    if name is not None:
        others = {other: some for other, some in every.items() if other != name}
        assert decide(member, classes=others).actions == ()


def wishing(**more: Any) -> pod.Pod:
    """A pod with an annotation."""
    return replace(web(), wishes=replace(web().wishes, memory_qos=Asked(**more)))


def test_the_annotation() -> None:
    """``none`` is nothing, a field lies over the class, ``auto`` counts where the node is off."""
    node = {"LS": asked(min_limit_percent=10)}

    assert decide(wishing(policy="none"), classes=node).actions == ()
    over = texts(decide(wishing(min_limit_percent=50), classes=node))
    assert over["kubepods/burstable/web/memory.min"] == str(50 * MIB)
    auto = texts(decide(wishing(policy="auto", min_limit_percent=50), layout=SPECIAL))
    assert auto["kubepods/burstable/web/memory.wmark_ratio"] == "95"
    assert auto["kubepods/burstable/web/memory.min"] == str(50 * MIB)


def test_files_of_other_kernels() -> None:
    """They are written where they are; elsewhere one condition names them, the rest is done."""
    classes = {"LS": asked(wmark_ratio=95, oom_kill_group=1)}

    there = texts(decide(web(), classes=classes, layout=SPECIAL))
    assert there["kubepods/burstable/web/memory.wmark_ratio"] == "95"
    lacking = decide(web(), classes=classes)
    assert set(texts(lacking).values()) == {"1"}
    (condition,) = lacking.conditions
    assert "memory.wmark_ratio" in condition.message
    old = decide(web(), classes={"LS": asked(min_limit_percent=10)}, layout=V1)
    assert old.actions == ()
    assert "memory.min" in old.conditions[0].message


def test_bounds() -> None:
    """No promise to one pod beyond the operator's part of the machine."""
    huge = web(requests={"memory": 10_000 * MIB}, containers=())
    decided = decide(
        huge, classes={"LS": asked(min_limit_percent=100)}, capacity=1000 * MIB, most=30
    )

    assert texts(decided)["kubepods/burstable/web/memory.min"] == str(300 * MIB)


def test_a_nodeslo_replaces_the_configuration() -> None:
    """Its classes count, and those of the configuration do not."""
    of_class = replace(nodeslo.CLASSES["LS"], memory=asked(min_limit_percent=20))
    slo = replace(
        nodeslo.DEFAULTS, source="NodeSLO", classes={**nodeslo.DEFAULTS.classes, "LS": of_class}
    )

    decided = decide(web(), classes={"LS": asked(min_limit_percent=90)}, slo=slo)
    assert texts(decided)["kubepods/burstable/web/memory.min"] == str(20 * MIB)


def test_who_is_not_there() -> None:
    """A pod that has ended, or whose group is gone, is promised nothing."""
    classes = {"LS": asked(min_limit_percent=20)}

    assert decide(web(phase=pod.Phase.SUCCEEDED), classes=classes).actions == ()
    now = moments.moment(moments.machine(), [web()], layout=V2, groups=[moments.group("", "0")])
    settings = policy.Settings(classes=classes)
    assert policy.decide(now, series.History(), settings, policy.State()).actions == ()
