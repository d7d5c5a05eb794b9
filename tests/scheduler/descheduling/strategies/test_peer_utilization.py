"""Kubernetes' descheduler's cases of LowNodeUtilization, by requests and by what agents report.

Facts in tables: three nodes, who is on them, thresholds, how many go. Everywhere the pod must fit
elsewhere (``nodeFit``).
"""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from tests.kit.descheduling import Body, ago, evicted, node, play, pod, policy

LOW = "LowNodeUtilization"
GPU = "example.com/foo"
FIT: Body = {"nodeFit": True}
MIRROR = {"kubernetes.io/config.mirror": "x"}
CRITICAL = 2_000_000_000
HALF: Body = {"thresholds": {"cpu": 30, "pods": 30}, "targetThresholds": {"cpu": 50, "pods": 50}}
AROUND: Body = {
    "thresholds": {"cpu": 5, "pods": 5}, "targetThresholds": {"cpu": 5, "pods": 5},
    "useDeviationThresholds": True,
}  # fmt: skip
GPUS: Body = {
    "thresholds": {"pods": 30, GPU: 30}, "targetThresholds": {"pods": 50, GPU: 50},
}  # fmt: skip
WEST: Body = {"nodeSelector": {"datacenter": "west"}}
TERM = {"matchExpressions": [{"key": "datacenter", "operator": "In", "values": ["west"]}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
TO_WEST: Body = {"affinity": {"nodeAffinity": REQUIRED}}


def asks(amounts: Body) -> Body:
    """A container that requests this, and nothing else."""
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": amounts}}]}


def nodes(*changes: Body, pods: int = 9) -> list[Body]:
    """Nodes ``n1``, ``n2``, … of four CPUs; of ten pods, but the first."""
    return [
        node(f"n{place + 1}", "4", "24Gi", **{"pods": pods if place == 0 else 10, **change})
        for place, change in enumerate(changes)
    ]


CORDONED: Body = {"unschedulable": True}
THREE = nodes({}, {}, CORDONED)


def full(*changes: Body, size: int = 5, cpu: str = "400m", memory: str = "0", **more: Any
         ) -> list[Body]:  # fmt: skip
    """Node n1 with ``p1`` to ``p5`` (``changes``: by place), and three that are protected."""
    several = [
        {**more, **(changes[place] if place < len(changes) else {})} for place in range(size)
    ]
    return [
        *(pod(f"p{place + 1}", "n1", cpu, memory, **each) for place, each in enumerate(several)),
        pod("p6", "n1", cpu, memory, **{**more, "owner": "DaemonSet/d"}),
        pod("p7", "n1", cpu, memory, **{**more, "annotations": MIRROR}),
        pod("p8", "n1", cpu, memory, **{**more, "priority": CRITICAL}),
    ]


OTHER = pod("p9", "n2", "400m")
IMPORTANT: Body = {"priority": 10_000}
NOTHING: Body = {"spec": asks({})}
ONE_GPU: Body = {"spec": asks({GPU: "1"})}
WITH_GPU: Body = {"room": {GPU: "8"}}


@pytest.mark.parametrize(
    ("bodies", "args", "count"),
    [
        ([*THREE, *full(size=0), pod("d", "n1", "400m", owner="DaemonSet/d"), OTHER], HALF, 0),
        ([*THREE, *full(), OTHER], HALF, 4),
        (
            [*THREE, *full(namespace="one"), OTHER],
            {**HALF, "evictableNamespaces": {"exclude": ["one"]}}, 0,
        ),
        # Pods that nobody would create again stay.
        ([*THREE, *full({}, {}, *3 * [{"owner": ""}]), OTHER], HALF, 2),
        ([*THREE, *full(*4 * [IMPORTANT]), OTHER], HALF, 4),
        ([*THREE, *full(**ONE_GPU)], GPUS, 0),
        (
            [*nodes(WITH_GPU, WITH_GPU, CORDONED),
             *full(**ONE_GPU), pod("p9", "n2", **ONE_GPU)],
            GPUS, 3,
        ),
        ([*nodes(WITH_GPU, {}, CORDONED), pod("p1", "n1", **ONE_GPU), OTHER], GPUS, 0),
        ([*nodes({}, CORDONED), *full()], HALF, 0),
        ([*nodes({}, {}), *full({}, {}, {}, *2 * [{"spec": {**asks({"cpu": "400m"}), **WEST}}])],
         HALF, 3),
        ([*nodes({}, {}),
          *full({}, {}, {}, *2 * [{"spec": {**asks({"cpu": "400m"}), **TO_WEST}}])],
         HALF, 3),
        ([*THREE, *full(), OTHER], AROUND, 2),
        # The other node has no memory left, whatever the thresholds are about.
        (
            [*nodes({}, {}, CORDONED, pods=10), *full(memory="3Gi"),
             pod("p9", "n2", "400m", "24Gi")],
            AROUND, 0,
        ),
        ([*THREE, *full(), OTHER], {**HALF, "evictionLimits": {"node": 2}}, 2),
    ],
)  # fmt: skip
def test_by_requests(bodies: list[Body], args: Body, count: int) -> None:
    """As many go as bring the node to its targets, while the others have room below theirs."""
    assert len(evicted(bodies, policy({LOW: args}, FIT))) == count


def test_pods_that_request_nothing_go_first() -> None:
    """Of equal priority."""
    bodies = [*THREE, *full(NOTHING, NOTHING, {}, NOTHING, NOTHING), OTHER]
    assert evicted(bodies, policy({LOW: HALF}, FIT)) == ["p1", "p2", "p4", "p5"]


def test_the_mean_is_of_the_nodes_that_have_the_resource() -> None:
    """1 and 7 of 8 devices are half, and so are 5 and 3: nodes without devices are no idle ones."""
    args = {
        "thresholds": {"pods": 5, GPU: 10}, "targetThresholds": {"pods": 5, GPU: 10},
        "useDeviationThresholds": True,
    }  # fmt: skip
    bodies = [
        *nodes(WITH_GPU, WITH_GPU, CORDONED, pods=10),
        *(pod("p1", "n1", **ONE_GPU), pod("p2", "n2", spec=asks({GPU: "7"}))),
        *(pod("p3", "n2", **NOTHING), pod("p8", "n3"), pod("p9", "n3")),
    ]
    assert len(evicted(bodies, policy({LOW: args}, FIT))) == 1
    only = {
        "thresholds": {GPU: 10}, "targetThresholds": {GPU: 10}, "useDeviationThresholds": True,
    }  # fmt: skip
    mixed = [
        *nodes(WITH_GPU, WITH_GPU, {}, {}),
        *(pod(f"a{place}", "n1", **ONE_GPU) for place in range(5)),
        *(pod(f"b{place}", "n2", **ONE_GPU) for place in range(3)),
    ]
    assert evicted(mixed, policy({LOW: only}, FIT)) == ["a0"]


# The same clusters by what agents report.


def reports(
    uses: dict[str, tuple[str, str]], pods: dict[str, str], seconds: float = 10
) -> list[Body]:
    """NodeMetrics: CPU and memory of each node, and CPU of pods of the first."""
    return [
        {
            "kind": "NodeMetric",
            "metadata": {"name": name},
            "status": {
                "updateTime": ago(seconds),
                "nodeMetric": {"nodeUsage": {"resources": {"cpu": cpu, "memory": memory}}},
                "podsMetric": [
                    {"namespace": "default", "name": pod,
                     "podUsage": {"resources": {"cpu": amount, "memory": "0"}}}
                    for pod, amount in pods.items() if name == "n1"
                ],
            },
        }
        for name, (cpu, memory) in uses.items()
    ]  # fmt: skip


USES = {"n1": ("3201m", "0"), "n2": ("401m", "0"), "n3": ("11m", "0")}
FIVE = {f"p{place}": "401m" for place in range(1, 6)}
REPORTED = reports(USES, FIVE)


@pytest.mark.parametrize(
    ("bodies", "args", "reported", "count"),
    [
        ([*THREE, *full(), OTHER], HALF, REPORTED, 4),
        ([*THREE, *full(namespace="one"), OTHER],
         {**HALF, "evictableNamespaces": {"exclude": ["one"]}}, REPORTED, 0),
        ([*THREE, *full({}, {}, *3 * [{"owner": ""}]), OTHER], HALF, REPORTED, 2),
        ([*THREE, *full(*4 * [IMPORTANT]), OTHER], HALF, REPORTED, 4),
        ([*nodes({}, CORDONED), *full()], HALF, REPORTED, 0),
        ([*THREE, *full(), OTHER], AROUND, REPORTED, 2),
        ([*THREE, *full(), OTHER], {**HALF, "evictionLimits": {"node": 2}}, REPORTED, 2),
        # Three pods really take twice what they ask for: two fill the other node.
        ([*nodes({}, {}), *full({}, {}, {}, *2 * [{"spec": {**asks({"cpu": "400m"}), **TO_WEST}}]),
          pod("p9", "n2", **NOTHING)],
         HALF, reports(USES, {"p1": "801m", "p2": "801m", "p3": "801m"}), 2),
        # Full everywhere.
        ([*THREE, *full(), OTHER], AROUND,
         reports(dict.fromkeys(("n1", "n2", "n3"), ("4", "3000")), FIVE), 0),
        # Nobody measures the devices.
        ([*nodes(WITH_GPU, WITH_GPU, CORDONED), *full(**ONE_GPU), pod("p9", "n2", **ONE_GPU)],
         GPUS, REPORTED, 0),
        ([*THREE, *full(), OTHER], HALF, [], 0),
    ],
)  # fmt: skip
def test_by_what_agents_report(
    bodies: list[Body], args: Body, reported: list[Body], count: int
) -> None:
    """Pods of which nobody reports anything stay."""
    measured = {**args, "metricsUtilization": {"source": "KubernetesMetrics"}}
    assert len(evicted([*bodies, *reported], policy({LOW: measured}, FIT))) == count


def test_a_pod_of_which_a_threshold_is_not_measured_stays() -> None:
    """It would take nothing along, and so would all others after it."""
    bounds = {"thresholds": {"memory": 30}, "targetThresholds": {"memory": 50}}
    args = {**bounds, "metricsUtilization": {"source": "KubernetesMetrics"}}
    reported = reports({**USES, "n1": ("0", "16Gi")}, FIVE)
    count = len(evicted([*THREE, *full(), *reported], policy({LOW: args})))
    for body in reported[0]["status"]["podsMetric"]:
        del body["podUsage"]["resources"]["memory"]
    assert (count, evicted([*THREE, *full(), *reported], policy({LOW: args}))) == (5, [])


@pytest.mark.parametrize(("seconds", "count"), [(179, 4), (180, 0), (3600, 0)])
def test_a_report_that_is_old_says_nothing(seconds: float, count: int) -> None:
    """Its node is left alone, as LowNodeLoad leaves it, and a note says so."""
    args = {**HALF, "metricsUtilization": {"source": "KubernetesMetrics"}}
    result = play([*THREE, *full(), OTHER, *reports(USES, FIVE, seconds)], policy({LOW: args}))
    old = "3 nodes are left alone: no report that is new enough has cpu, memory"
    assert len(result.evicted) == count
    assert result.notes == ([] if count else [("p", LOW, old)])


# By number of pods, with a node that has a taint.

TAINT = {"key": "key", "value": "value", "effect": "NoSchedule"}
TOLERATES: Body = {
    "spec": {**asks({"cpu": "200m"}), "tolerations": [{"key": "key", "value": "value"}]}
}
CROWD = [pod(f"p{place}", "n1", "200m") for place in range(7)]


@pytest.mark.parametrize(
    ("others", "eighth", "limits", "names"),
    [
        ([node("n2", "1"), node("n3", "1"), pod("x", "n2", "200m")], {}, {}, ["p0"]),
        ([node("n3", "1", taints=[TAINT]), pod("x", "n3", "200m")], {}, {}, []),
        ([node("n3", "1", taints=[TAINT]), pod("x", "n3", "200m")], TOLERATES, {}, ["p7"]),
        (
            [node("n3", "1", taints=[TAINT]), pod("x", "n3", "200m")], TOLERATES,
            {"maxNoOfPodsToEvictPerNode": 1, "maxNoOfPodsToEvictTotal": 0}, [],
        ),
    ],
)  # fmt: skip
def test_by_number_of_pods(
    others: list[Body], eighth: Body, limits: Body, names: list[str]
) -> None:
    """Eight of ten pods are more than 70 %: one goes, and it tolerates the node below 20 %."""
    args = {"thresholds": {"pods": 20}, "targetThresholds": {"pods": 70}}
    bodies = [node("n1", "2"), *others, *CROWD, pod("p7", "n1", "200m", **eighth)]
    assert evicted(bodies, policy({LOW: args}, FIT, **limits)) == names


# Thresholds that are refused.

MEMORY = {"cpu": 20, "memory": 20}
MORE = {"cpu": 80, "memory": 80}


@pytest.mark.parametrize(
    ("low", "high", "more", "message"),
    [
        ({"cpu": 20, "memory": 120}, MORE, {}, "thresholds.memory|thresholds: memory|120"),
        (MEMORY, {**MORE, "pods": 80}, {}, "pods has a value in targetThresholds"),
        (MEMORY, {"cpu": 80, "pods": 80}, {}, "memory has a value in thresholds"),
        ({"cpu": 90, "memory": 20}, MORE, {}, "90 is above targetThresholds.cpu"),
        ({**MEMORY, GPU: 20}, MORE, {}, "has a value in thresholds and none here"),
        (MEMORY, {**MORE, GPU: 80}, {}, "has a value in targetThresholds and none here"),
        ({**MEMORY, GPU: 20}, {**MORE, "example.com/bar": 80}, {}, "has a value in thresholds"),
        ({**MEMORY, GPU: 90}, {**MORE, GPU: 20}, {}, "90 is above"),
        ({}, MORE, {}, "no resource threshold"),
        (MEMORY, {}, {}, "no resource threshold"),
        (MEMORY, MORE, {"evictableNamespaces": {"include": ["default"]}}, "only exclude"),
        (MEMORY, MORE,
         {"metricsUtilization": {"metricsServer": True, "source": "KubernetesMetrics"}},
         "source takes its place"),
        (MEMORY, MORE, {"metricsUtilization": {"source": "KubernetesMetrics", "prometheus": {}}},
         "does not count with source KubernetesMetrics"),
        (MEMORY, MORE, {"metricsUtilization": {"source": "Prometheus"}}, "Prometheus"),
        (MEMORY, MORE, {"metricsUtilization": {"source": "Other"}}, "expected one of"),
    ],
)  # fmt: skip
def test_thresholds_that_are_refused(low: Body, high: Body, more: Body, message: str) -> None:
    """Each names its resource."""
    args = {"thresholds": low, "targetThresholds": high, **more}
    with pytest.raises(errors.ConfigError, match=message):
        evicted(THREE, policy({LOW: args}))


@pytest.mark.parametrize(
    ("low", "high", "deviates"),
    [(MEMORY, MORE, False), ({**MEMORY, GPU: 20}, {**MORE, GPU: 80}, False),
     ({"cpu": 20}, {"cpu": 10}, True)],
)  # fmt: skip
def test_thresholds_that_are_accepted(low: Body, high: Body, *, deviates: bool) -> None:
    """Of deviations, the lower one may be the larger number."""
    args = {"thresholds": low, "targetThresholds": high, "useDeviationThresholds": deviates}
    assert evicted(THREE, policy({LOW: args})) == []
