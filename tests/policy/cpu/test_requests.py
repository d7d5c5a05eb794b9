"""CPUs that a pod's annotation names: for whom they count, and how many."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import cpuset, decision, kubelet, pod, qos, resources, snapshot
from koordlet.policy.cpu import exclusive_cpus
from koordlet.policy.cpu import requests as cpu_requests
from koordlet.policy.cpu.exclusive_cpus import Settings
from koordlet.policy.cpu.holdings import State
from tests.kit import moments

EIGHT = moments.machine(1, 8, threads=1)
Qos = qos.Qos


def decided(now: snapshot.Snapshot, *, trust: bool = False) -> decision.Decision[State]:
    """Who holds CPUs alone."""
    settings = Settings(trust_annotations=trust)
    return exclusive_cpus.decide(now, series.History(), settings, State())


def held(made: decision.Decision[State]) -> dict[str, str]:
    """Name to CPUs."""
    return {claim.holder.removeprefix("t/"): str(claim.cpus) for claim in made.claims}


def said(made: decision.Decision[State]) -> list[tuple[str, str]]:
    """Type and subject of each condition."""
    return [(condition.type, condition.subject) for condition in made.conditions]


def tenant(name: str, kind: Qos | None, cpus: str, milli: int, **more: Any) -> pod.Pod:
    """A pod of the cluster whose annotation names CPUs."""
    more = {"kube_qos": qos.KubeQos.BURSTABLE, "band": qos.Band.PROD, **more}
    requests = {resources.CPU: milli}
    return moments.workload(
        name, kind or Qos.LSR, cpus, raw_qos=kind, requests=requests, match=f"pod={name}", **more
    )


@pytest.mark.parametrize(
    ("annotated", "believed"),
    [
        pytest.param(tenant("a", Qos.LSR, "1-4", 4000), True, id="as a scheduler gives it"),
        pytest.param(tenant("a", Qos.LSE, "1-4", 4500), True, id="LSE with overhead"),
        pytest.param(tenant("a", Qos.LSR, "1-7", 10), False, id="all CPUs but one"),
        pytest.param(tenant("a", Qos.LSR, "1-4", 3999), False, id="a thousandth too little"),
        pytest.param(tenant("a", Qos.LSR, "1-4", 0), False, id="no request"),
        pytest.param(tenant("a", Qos.LS, "1", 1000), False, id="LS"),
        pytest.param(tenant("a", None, "1", 1000), False, id="no label"),
        pytest.param(tenant("a", Qos.SYSTEM, "1", 1000), False, id="SYSTEM"),
        pytest.param(tenant("a", Qos.LSR, "1", 1000, band=qos.Band.MID), False, id="mid"),
        # The default of its class, as a scheduler has it.
        pytest.param(tenant("a", Qos.LSR, "1", 1000, band=None), True, id="no band"),
    ],
)
def test_a_pod_s_annotation_takes_no_more_than_the_pod_asked_for(
    annotated: pod.Pod, believed: bool
) -> None:
    """Nor does it count for a class or priority that is given no CPUs; one condition says why."""
    made = decided(moments.moment(EIGHT, [annotated]))

    assert ({"a": str(annotated.cpus)} if believed else {}) == held(made)
    assert ([] if believed else [("ExclusiveCPUsRefused", "t/a")]) == said(made)
    assert believed or "trustAnnotations" in made.conditions[0].message


@pytest.mark.parametrize(("kind", "holds"), [(Qos.LS, True), (Qos.BE, False), (None, True)])
def test_a_node_that_binds_every_pod(kind: Qos | None, holds: bool) -> None:
    """On it a scheduler names CPUs for LS pods, too, within their request."""
    pods = [tenant("a", kind, "1-2", 2000), tenant("b", kind, "3-6", 2000)]
    now = moments.moment(EIGHT, pods)
    labelled = dataclasses.replace(
        now, node=dataclasses.replace(now.node, labels={cpu_requests.BIND_LABEL: "FullPCPUsOnly"})
    )
    static = kubelet.Configuration(
        cpu_manager_policy="static", cpu_manager_options={"full-pcpus-only": "true"}
    )
    static_node = dataclasses.replace(now, kubelet=kubelet.Kubelet(configuration=static))

    for each in (labelled, static_node):
        assert ({"a": "1-2"} if holds else {}) == held(decided(each))


def test_the_operator_may_believe_annotations_and_names_any_set_himself() -> None:
    """By a setting, or for a unit or cgroup of this machine."""
    pods = [tenant("a", Qos.LS, "1-2", 10), tenant("s", Qos.SYSTEM, "3", 10)]
    trusting = decided(moments.moment(EIGHT, pods), trust=True)
    mine = dataclasses.replace(pods[0], match="unit=a.service")

    assert {"a": "1-2"} == held(trusting) == held(decided(moments.moment(EIGHT, [mine])))


def test_a_refused_annotation_hides_nothing_that_the_kubelet_holds() -> None:
    """CPUs that its static policy gave to the pod are still nobody else's."""
    annotated = tenant("a", Qos.LSR, "1-7", 2000)
    state = kubelet.CpuState(
        policy="static", entries={annotated.uid: {"main": cpuset.CPUSet.parse("4-5")}}
    )
    now = dataclasses.replace(
        moments.moment(EIGHT, [annotated]), kubelet=kubelet.Kubelet(cpu=state)
    )
    made = decided(now)

    assert [str(claim.cpus) for claim in made.claims] == ["4-5"]
    assert said(made) == [("ExclusiveCPUsRefused", "t/a")]


@pytest.mark.parametrize(
    ("strategy", "first", "second"),
    [
        ("", "0-1,6-7", "3,9"),
        ("MostAllocated", "0-1,6-7", "2,8"),
        ("DistributeEvenly", "0,3,6,9", "1,7"),
    ],
)
def test_the_node_says_how_cpus_lie_over_numa_nodes(strategy: str, first: str, second: str) -> None:
    """As to the scheduler: the emptiest, the fullest, or from all of them by their free share."""
    labels = {"node.koordinator.sh/numa-allocate-strategy": strategy}
    several = [
        moments.workload(name, Qos.LSR, cpu_count=count) for name, count in (("a", 4), ("b", 2))
    ]
    now = moments.moment(moments.machine(), several)
    now = dataclasses.replace(now, node=dataclasses.replace(now.node, labels=labels))
    assert held(decided(now)) == {"a": first, "b": second}
