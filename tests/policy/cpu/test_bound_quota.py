"""Pods with CPUs of their own are not throttled on them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import action, cgroup, decision, ledger, pod, qos, snapshot
from koordlet.policy.cpu import bound_quota
from tests.kit import moments
from tests.kit.moments import group, workload

SERVER = moments.machine()


def bound(name: str, **more: Any) -> pod.Pod:
    """A pod of the kubelet with one limited container and one without a limit."""
    boxes = (
        pod.Container(name="main", group=f"{name}/main", limits={"cpu": 2000}),
        pod.Container(name="side", group=f"{name}/side"),
    )
    values: dict[str, Any] = {"kube_qos": qos.KubeQos.GUARANTEED, "containers": boxes, **more}
    return workload(name, qos.Qos.LSR, **values)


def moment(
    pods: list[pod.Pod], *, kubelet: bool = False, layout: cgroup.Layout = moments.FULL_V1
) -> snapshot.Snapshot:
    """A moment at which all of them hold a CPU."""
    claims = tuple(
        ledger.Claim(
            owner=ledger.Owner.LSR,
            cpus=SERVER.online,
            holder=pod.key,
            policy="exclusive_cpus",
            reason="test",
            uid=pod.uid,
            kubelet=kubelet,
        )
        for pod in pods
    )
    paths = [
        path
        for workload in pods
        for path in (workload.group, *(b.group for b in workload.containers))
    ]
    groups = [group("", "0-11"), *(group(path, "0-11") for path in paths if path)]
    return moments.moment(
        SERVER, pods, groups=groups, held=ledger.Ledger(claims=claims), layout=layout
    )


def decided(now: snapshot.Snapshot) -> decision.Decision[bound_quota.State]:
    """The decision."""
    settings, state = bound_quota.Settings(), bound_quota.State()
    return bound_quota.decide(now, series.History(), settings, state)


@pytest.mark.parametrize(
    ("layout", "value"), [(moments.FULL_V1, "-1"), (moments.FULL_V2, "max 100000")]
)
def test_the_quota_of_a_bound_pod_is_taken_away(layout: cgroup.Layout, value: str) -> None:
    """That of the pod's group and of each limited container, and of nobody else."""
    now = moment([bound("p")], layout=layout)
    now = dataclasses.replace(now, pods=(*now.pods, bound("free", uid="other")))
    files = [write for write in decided(now).actions if isinstance(write, action.WriteFile)]

    assert {"p": value, "p/main": value} == {write.group: write.value for write in files}


def test_a_limit_of_the_whole_pod_is_a_quota_of_each_container() -> None:
    """The kubelet writes it into containers without a limit of their own, so it goes there, too."""
    files = [
        write
        for write in decided(moment([bound("p", limits={"cpu": 2000})])).actions
        if isinstance(write, action.WriteFile)
    ]

    assert {write.group: write.value for write in files} == {
        "p": "-1",
        "p/main": "-1",
        "p/side": "-1",
    }


def test_what_crun_nests_in_a_scope() -> None:
    """The limit is inside, where crun puts it; none around it may stay, either."""
    workload = bound("p")
    nested = dataclasses.replace(workload.containers[0], group="p/main.scope/container")
    now = moment([dataclasses.replace(workload, containers=(nested,))], layout=moments.FULL_V2)
    seen = {**now.groups, "p/main.scope": group("p/main.scope", "")}
    made = decided(dataclasses.replace(now, groups=seen)).actions

    assert [write.group for write in made if isinstance(write, action.WriteFile)] == [
        "p",
        "p/main.scope",
        "p/main.scope/container",
    ]


@pytest.mark.parametrize(
    ("workload", "kubelet"),
    [
        (bound("p"), True),
        (bound("p", kube_qos=None), False),
        (bound("p", containers=()), False),
    ],
)
def test_who_keeps_a_quota(workload: pod.Pod, kubelet: bool) -> None:
    """The kubelet's own, standalone workloads, and who has no limit at all: nothing is written."""
    now = moment([workload], kubelet=kubelet)
    answer = bound_quota.admit(now, bound_quota.Settings(), bound_quota.State(), workload, "main")

    assert decided(now).actions == ()
    assert answer.empty


def test_a_container_that_starts() -> None:
    """It has no quota from its first instruction on."""
    now = moment([bound("p")])
    answer = bound_quota.admit(
        now, bound_quota.Settings(), bound_quota.State(), now.pods[0], "main"
    )

    assert answer.cpu_milli == -1
