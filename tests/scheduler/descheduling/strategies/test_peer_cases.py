"""Edge cases of the peers' strategies: clusters, arguments, and who goes, as facts in tables.

The numbers are those of Kubernetes' descheduler, whose own tests ask the same. Where ours differs
on purpose, the row says so (docs/descheduler.md).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.descheduling import Body, evicted, node, pod, policy

TAINT = {"key": "hardware", "value": "gpu", "effect": "NoSchedule"}
TOLERATES = {"tolerations": [{"key": "hardware", "operator": "Equal", "value": "gpu"}]}
HOST = "kubernetes.io/hostname"


def some(count: int, on: str, prefix: str = "p", **more: Any) -> list[Body]:
    """So many pods on a node: ``p0``, ``p1``, …."""
    return [pod(f"{prefix}{place}", on, **more) for place in range(count)]


def nodes(*names: str, **more: Any) -> list[Body]:
    """Nodes of one shape."""
    return [node(name, **more) for name in names]


def only(*names: str) -> Body:
    """A pod's spec that needs one of these nodes."""
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": list(names)}]}
    needs = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": needs}}


# Who may be evicted, over all strategies. ``PodLifeTime`` wants every pod of an hour and more.

OLD = {"PodLifeTime": {"maxPodLifeTimeSeconds": 3600}}
CLASSES: list[Body] = [
    {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
]


@pytest.mark.parametrize(
    ("evictor", "body", "goes"),
    [
        ({"priorityThreshold": {"value": 10}}, pod("p", "a", priority=9), True),
        ({"priorityThreshold": {"value": 10}}, pod("p", "a", priority=10), False),
        ({"priorityThreshold": {"value": 10}}, pod("p", "a"), True),
        ({"priorityThreshold": {"name": "high"}}, pod("p", "a", priority=999), True),
        ({"priorityThreshold": {"name": "high"}}, pod("p", "a", priority=1000), False),
        ({"minPodAge": "3h"}, pod("p", "a"), False),
        ({"minPodAge": "1h"}, pod("p", "a"), True),
        ({"minReplicas": 2}, pod("p", "a"), False),
        ({"minReplicas": 1}, pod("p", "a"), True),
        ({"labelSelector": {"matchLabels": {"app": "x"}}}, pod("p", "a"), False),
        (
            {"labelSelector": {"matchLabels": {"app": "x"}}},
            pod("p", "a", labels={"app": "x"}), True,
        ),
        ({"nodeFit": True}, pod("p", "a", spec={"nodeSelector": {HOST: "a"}}), False),
        ({"nodeFit": True}, pod("p", "a", spec={"nodeSelector": {HOST: "b"}}), True),
        ({"nodeFit": True}, pod("p", "a", cpu="3"), False),
        ({}, pod("p", "a", meta={"deletionTimestamp": "2020-01-01T00:00:00Z"}), False),
    ],
)  # fmt: skip
def test_the_evictor_decides_who_may_go(evictor: Body, body: Body, *, goes: bool) -> None:
    """Whatever the strategy wants."""
    bodies = [*nodes("a", "b"), *CLASSES, body]
    assert evicted(bodies, policy(OLD, evictor)) == (["p"] if goes else [])


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"namespaces": {"include": ["dev"]}}, ["dev"]),
        ({"namespaces": {"exclude": ["dev"]}}, ["test"]),
        ({"namespaces": {"include": ["nowhere"]}}, []),
        ({"namespaces": {"include": []}}, ["dev", "test"]),
        ({"labelSelector": {"matchExpressions": [
            {"key": "tier", "operator": "NotIn", "values": ["web"]}]}}, ["test"]),
        ({"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}, ["dev"]),
        ({"labelSelector": {}}, ["dev", "test"]),
    ],
)  # fmt: skip
def test_a_strategy_looks_at_namespaces_and_labels(args: Body, names: list[str]) -> None:
    """Both must agree; an empty list or selector bounds nothing."""
    bodies = [
        pod("dev", "a", namespace="dev", labels={"tier": "web"}, age=9000),
        pod("test", "a", namespace="test"),
    ]
    strategies = {"PodLifeTime": {"maxPodLifeTimeSeconds": 3600, **args}}
    assert evicted([*nodes("a", "b"), *bodies], policy(strategies)) == names


# RemoveDuplicates.

DUPLICATES = "RemoveDuplicates"
TAINTED = node("c", taints=[TAINT])


@pytest.mark.parametrize(
    ("bodies", "names"),
    [
        # Two ReplicaSets of 5, 3 and 1 pods each.
        (
            [*nodes("a", "b", "c", pods=20),
             *(each for name in "xy" for on, count in (("a", 5), ("b", 3), ("c", 1))
               for each in some(count, on, f"{name}{on}", cpu="1m", owner=f"ReplicaSet/{name}"))],
            ["xa3", "xa4", "ya3", "ya4"],
        ),
        # A node that they do not tolerate is no choice: 9 of two nodes are 5 and 4.
        (
            [*nodes("a", "b", pods=20), TAINTED, *some(7, "a", cpu="1m"), *some(2, "b", "q")],
            ["p5", "p6"],
        ),
        # Whoever tolerates it has three.
        (
            [*nodes("a", "b", pods=20), TAINTED, *some(6, "a", cpu="1m", spec=TOLERATES)],
            ["p2", "p3", "p4", "p5"],
        ),
        # Required affinity leaves two of three nodes.
        (
            [*nodes("a", "b", "c", pods=20), *some(6, "a", cpu="1m", spec=only("a", "b"))],
            ["p3", "p4", "p5"],
        ),
    ],
)  # fmt: skip
def test_duplicates(bodies: list[Body], names: list[str]) -> None:
    """What is above its share of a node goes."""
    assert sorted(evicted(bodies, policy({DUPLICATES: None}))) == names


# By what is requested.

LOW, HIGH = "LowNodeUtilization", "HighNodeUtilization"
GPU = "example.com/gpu"


def gpus(count: int, on: str, prefix: str = "p", **more: Any) -> list[Body]:
    """Pods that ask for one device each."""
    asks = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {GPU: "1"}}}]}
    return some(count, on, prefix, spec=asks, **more)


def bounds(low: Body, high: Body, **more: Any) -> Body:
    """The arguments."""
    return {LOW: {"thresholds": low, "targetThresholds": high, **more}}


@pytest.mark.parametrize(
    ("bodies", "strategies", "names"),
    [
        # An extended resource alone decides: 7 of 8 are above 50 %, four remain.
        (
            [*nodes("a", "b", cpu="9", room={GPU: "8"}), *gpus(7, "a")],
            bounds({GPU: 30}, {GPU: 50}), ["p0", "p1", "p2"],
        ),
        # A node without the resource is under every threshold, and has no room for it.
        (
            [*nodes("a", cpu="9", room={GPU: "8"}), *nodes("b", cpu="9"), *gpus(7, "a")],
            bounds({GPU: 30}, {GPU: 50}), [],
        ),
        # No target tolerates: nobody goes; whoever tolerates goes.
        (
            [node("a", cpu="1"), node("b", cpu="1", taints=[TAINT]), *some(8, "a")],
            bounds({"cpu": 20}, {"cpu": 50}), [],
        ),
        (
            [node("a", cpu="1"), node("b", cpu="1", taints=[TAINT]),
             *some(6, "a"), *some(2, "a", "t", spec=TOLERATES)],
            bounds({"cpu": 20}, {"cpu": 50}), ["t0", "t1"],
        ),
        # The only node below is cordoned.
        (
            [node("a", cpu="1"), node("b", cpu="1", unschedulable=True), *some(8, "a")],
            bounds({"cpu": 20}, {"cpu": 50}), [],
        ),
        # Deviations are clamped: 90 around a mean of 40 % is 0 and 100.
        (
            [*nodes("a", "b", cpu="1"), *some(8, "a")],
            bounds({"cpu": 90}, {"cpu": 90}, useDeviationThresholds=True), [],
        ),
        # 80 and 0 %: 10 around the mean of 40, three go and leave 50 %.
        (
            [*nodes("a", "b", cpu="1"), *some(8, "a")],
            bounds({"cpu": 10}, {"cpu": 10}, useDeviationThresholds=True), ["p0", "p1", "p2"],
        ),
    ],
)  # fmt: skip
def test_low_node_utilization(bodies: list[Body], strategies: Body, names: list[str]) -> None:
    """Extended resources, taints, cordons, deviations."""
    assert evicted(bodies, policy(strategies)) == names


@pytest.mark.parametrize(
    ("bodies", "args", "names"),
    [
        # Nobody is below.
        ([*nodes("a", "b", cpu="1"), *some(5, "a"), *some(5, "b", "q")], {}, []),
        # All are below: there is nowhere to go.
        ([*nodes("a", "b", cpu="1"), *some(1, "a"), *some(1, "b", "q")], {}, []),
        # The one that is used is cordoned.
        (
            [node("a", cpu="1"), node("b", cpu="1", unschedulable=True),
             *some(1, "a"), *some(5, "b", "q")],
            {}, [],
        ),
        # Protected pods stay on the node that is emptied.
        (
            [*nodes("a", "b", cpu="1"), *some(1, "a"), *some(1, "a", "d", owner="DaemonSet/d"),
             *some(5, "b", "q")],
            {}, ["p0"],
        ),
        # More nodes below than ``numberOfNodes``, or as many.
        ([*nodes("a", "b", cpu="1"), *some(1, "a"), *some(5, "b", "q")], {"numberOfNodes": 1}, []),
        # Only pods that ask for what has a threshold.
        (
            [*nodes("a", "b", cpu="1"), *some(1, "a"), *some(1, "a", "m", cpu="0", memory="1Mi"),
             *some(5, "b", "q")],
            {"evictionModes": ["OnlyThresholdingResources"]}, ["p0"],
        ),
        (
            [*nodes("a", "b", cpu="1"), *some(1, "a"), *some(5, "b", "q")],
            {"evictableNamespaces": {"exclude": ["default"]}}, [],
        ),
    ],
)  # fmt: skip
def test_high_node_utilization(bodies: list[Body], args: Body, names: list[str]) -> None:
    """A node with at most 30 % of its CPU requested is emptied, where another takes its pods."""
    strategies = {HIGH: {"thresholds": {"cpu": 30}, **args}}
    assert evicted(bodies, policy(strategies)) == names
