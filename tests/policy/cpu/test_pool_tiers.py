"""The kubelet's tiers: narrowed to their pools, and wide where it writes sets by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koordlet.model import cgroup, cpuset, kubelet, pod, qos, snapshot
from koordlet.policy.cpu import pool_tiers
from koordlet.policy.cpu.cpuset_files import NODE, Wanted, Wish
from tests.kit import moments

EIGHT = moments.machine(1, 8, threads=1)
ROOT, BURSTABLE, BESTEFFORT = "kubepods", "kubepods/burstable", "kubepods/besteffort"
LS, BE = f"{BURSTABLE}/poda/c", f"{BESTEFFORT}/podb/c"
POOLS = {
    qos.KubeQos.GUARANTEED: cpuset.CPUSet.parse("1-7"),
    qos.KubeQos.BURSTABLE: cpuset.CPUSet.parse("2-7"),
    qos.KubeQos.BEST_EFFORT: cpuset.CPUSet.parse("4-5"),
}
STATIC = kubelet.Kubelet(
    configuration=kubelet.Configuration(cpu_manager_policy="static"),
    cpu=kubelet.CpuState(policy="static", default=cpuset.CPUSet.parse("0-1")),
)
NONE = kubelet.Kubelet(configuration=kubelet.Configuration())


def moment(
    layout: cgroup.Layout = moments.V1, sets: Mapping[str, str] | None = None, **more: Any
) -> snapshot.Snapshot:
    """A pod of each of two tiers, each group with every CPU but for these sets."""
    pods = [
        moments.workload("a", group=LS, kube_qos=qos.KubeQos.BURSTABLE, source="kubelet"),
        moments.workload(
            "b", qos.Qos.BE, group=BE, kube_qos=qos.KubeQos.BEST_EFFORT, source="kubelet"
        ),
    ]
    unified = layout is moments.V2
    groups = [
        moments.group(path, (sets or {}).get(path, "0-7"), unified=unified)
        for path in ("", ROOT, BURSTABLE, BESTEFFORT, LS, BE)
    ]
    return replace(moments.moment(EIGHT, pods, groups=groups, layout=layout), **more)


def wanted(group: str, cpus: str | None, **more: Any) -> Wanted:
    """What a container shall have."""
    parsed = None if cpus is None else cpuset.CPUSet.parse(cpus)
    return Wanted(group=group, who="t/a", cpus=parsed, reason="because", **more)


def wishes_of(texts: Mapping[str, str]) -> dict[str, Wish]:
    """Group to what it wanted, from texts."""
    return {group: Wish.parse(text) for group, text in texts.items()}


def sets(several: list[Wanted]) -> dict[str | None, str]:
    """Group to the set that it shall have."""
    return {want.group: str(want.cpus) for want in several}


@pytest.mark.parametrize(
    ("layout", "known", "leaves"),
    [
        (moments.V1, STATIC, True),
        (moments.V1, NONE, False),
        (moments.V1, None, True),
        (moments.V1, kubelet.Kubelet(), True),
        (moments.V2, STATIC, False),
        (moments.V2, None, False),
    ],
)
def test_where_only_containers_are_narrowed(
    layout: cgroup.Layout, known: kubelet.Kubelet | None, *, leaves: bool
) -> None:
    """On v1, beside a kubelet with the static policy, or one of which nobody knows it."""
    assert leaves is pool_tiers.only_leaves(moment(layout, kubelet=known))


def test_a_kubelet_is_unknown_only_where_it_runs_somebody() -> None:
    """Pods that the operator declared, or without a class of a kubelet's, prove none."""
    now = moment()
    declared = tuple(replace(workload, source="declared") for workload in now.pods)
    plain: tuple[pod.Pod, ...] = tuple(replace(workload, kube_qos=None) for workload in now.pods)

    assert pool_tiers.unknown(now)
    assert not pool_tiers.unknown(replace(now, pods=declared))
    assert not pool_tiers.unknown(replace(now, pods=plain))
    assert not pool_tiers.only_leaves(replace(now, pods=declared))
    assert not pool_tiers.only_leaves(replace(now, layout=cgroup.Layout(hierarchies=())))


@pytest.mark.parametrize(
    ("gate", "milli", "awaits"),
    [(True, 2000, True), (True, 2500, False), (False, 2000, False), (None, 2000, False)],
)
def test_whole_cpus_of_a_pod_are_awaited_where_the_kubelet_may_hold_them(
    gate: bool | None, milli: int, *, awaits: bool
) -> None:
    """Its containers ask for none themselves."""
    gates = {} if gate is None else {"PodLevelResourceManagers": gate}
    known = kubelet.Configuration(cpu_manager_policy="static", feature_gates=gates)
    workload = moments.workload(
        "g",
        group="kubepods/podg",
        kube_qos=qos.KubeQos.GUARANTEED,
        containers=(pod.Container(name="main"),),
        own_requests={"cpu": milli},
    )
    now = moment(kubelet=kubelet.Kubelet(configuration=known))
    assert pool_tiers.awaits_kubelet(now, replace(workload, raw_qos=None)) is awaits


def test_each_tier_gets_its_pool() -> None:
    """And what workloads in it need beyond that; only best-effort's protects others."""
    several = [wanted(LS, "0-3"), wanted(BE, "4")]
    made = pool_tiers.narrowed(moment(), POOLS, several, {})

    assert sets(made) == {ROOT: "0-7", BURSTABLE: "0-7", BESTEFFORT: "4-5"}
    assert [want.group for want in made if want.protective] == [BESTEFFORT]
    assert {NODE} == {want.who for want in made}
    assert {want.group: want.reason for want in made} == {
        ROOT: "the kubelet's Guaranteed pods: all CPUs that are not reserved"
        " and CPUs 0 of workloads inside it",
        BURSTABLE: "the kubelet's Burstable pods: the LS pool and CPUs 0-1 of workloads inside it",
        BESTEFFORT: "the kubelet's BestEffort pods: the BE pool",
    }


def test_a_tier_that_is_nobodys_to_narrow() -> None:
    """One that is wanted already, does not exist, or whose pool is empty is left alone."""
    now = moment()
    without = replace(now, groups={k: v for k, v in now.groups.items() if k != BURSTABLE})
    empty = {**POOLS, qos.KubeQos.BEST_EFFORT: cpuset.CPUSet()}
    there = pool_tiers.narrowed(without, empty, [wanted(ROOT, "0-7")], {})
    strangers = replace(now, pods=(moments.workload("web"),))

    assert there == []
    assert pool_tiers.narrowed(strangers, POOLS, [], {}) == []


@pytest.mark.parametrize("more", [{"cpus": None}, {"cpus": "4-5", "compare": True}])
def test_a_tier_in_which_somebody_may_run_anywhere_stays_wide(more: dict[str, Any]) -> None:
    """It is not even named on v1, unless the kernel took CPUs from it, or we narrowed it once."""
    free = wanted(BE, **more)

    def tier(**changes: Any) -> dict[str | None, str]:
        wishes = changes.pop("wishes", {})
        made = pool_tiers.narrowed(moment(**changes), POOLS, [free], wishes_of(wishes))
        return {group: cpus for group, cpus in sets(made).items() if group == BESTEFFORT}

    lost: dict[str, Any] = {
        "sets": {BESTEFFORT: "0-6"},
        "went_offline": cpuset.CPUSet.parse("7"),
    }
    assert tier() == {}
    assert tier(sets={BESTEFFORT: "0-6"}) == {}
    assert tier(**lost) == {BESTEFFORT: "0-7"}
    assert tier(wishes={BESTEFFORT: "7:0-7"}) == {BESTEFFORT: "0-7"}
    assert tier(layout=moments.V2, **lost) == {}


@pytest.mark.parametrize(
    ("root", "more", "most"),
    [
        ("0-7", {}, "0-7"),
        ("0-3", {}, "0-3"),
        ("0-3", {"sets": "0-5"}, "0-5"),
        # Empty before koordlet: it lived on the set around it.
        ("0-3", {"sets": ""}, "0-7"),
        # v1: hotplug made it narrow, before the journal or since.
        ("0-3", {"wish": "0-6"}, "0-6"),
        ("0-3", {"sets": "0-3", "wish": "0-6"}, "0-6"),
        ("0-3", {"went_offline": "7"}, "0-3,7"),
        ("0-3", {"layout": moments.V2, "went_offline": "7"}, "0-3"),
    ],
)
def test_pods_stay_where_all_of_them_were_kept(root: str, more: dict[str, Any], most: str) -> None:
    """The set of the group of all pods is cut to what it had before koordlet."""
    now = moment(more.get("layout", moments.V1), sets={ROOT: root})
    if "sets" in more:
        now = replace(now, sets={ROOT: cpuset.CPUSet.parse(more["sets"])})
    now = replace(now, went_offline=cpuset.CPUSet.parse(more.get("went_offline", "")))
    inode = now.groups[ROOT].inode
    wishes = wishes_of({ROOT: f"{inode}:{more['wish']}"} if "wish" in more else {})

    assert str(pool_tiers.confined(now, ROOT, wishes)) == most
    pools = {**POOLS, qos.KubeQos.GUARANTEED: EIGHT.online}
    assert sets(pool_tiers.narrowed(now, pools, [wanted(BE, "4")], wishes))[ROOT] == most


@pytest.mark.parametrize(
    ("pod_set", "wishes", "around"),
    [
        ("2-3", {}, True),
        ("1-3", {}, True),
        ("0-3", {}, False),
        ("0-7", {}, False),
        ("0-7", {LS: "7:0-7"}, True),
        ("", {}, False),
    ],
)
def test_a_pod_is_widened_where_the_kubelets_set_does_not_fit(
    pod_set: str, wishes: dict[str, str], *, around: bool
) -> None:
    """What it writes into new containers (0-1) fits, or the group becomes wide and stays so.

    One whose set nobody knows is left alone.
    """
    now = moment(sets={LS: pod_set}, kubelet=STATIC)
    (made,) = pool_tiers.opened(now, [wanted(LS, "4-5", leaves=True)], wishes_of(wishes))

    assert (EIGHT.online if around else None) == made.around
    assert str(made.cpus) == "4-5"


def test_tiers_are_widened_for_what_the_kubelet_writes() -> None:
    """Those that are too narrow, to every CPU; a kubelet that has not said its set writes any."""
    narrow = {BESTEFFORT: "4-5", BURSTABLE: "0-3"}
    opened = pool_tiers.opened(moment(sets=narrow, kubelet=STATIC), [], {})
    silent = pool_tiers.opened(moment(sets=narrow), [], {})
    whole = wanted(LS, "4-5")

    assert sets(opened) == {BESTEFFORT: "0-7"}
    assert sets(silent) == {BESTEFFORT: "0-7", BURSTABLE: "0-7"}
    assert {want.reason for want in opened} == {
        "the kubelet's BestEffort pods: wide enough for the sets that it writes into containers"
    }
    assert whole in pool_tiers.opened(moment(sets={LS: "2"}), [whole], {})
