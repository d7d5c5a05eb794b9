"""LowNodeLoad on the clusters of Koordinator's own tests, as facts in tables: who goes.

Every pod uses what it requests. Where ours differs on purpose, docs/descheduler.md says so.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.descheduling import Body, ago, evicted, node, play, pod, policy

GPU = "example.com/foo"
BATCH = {"koordinator.sh/priority-class": "koord-batch"}
WEST = {"nodeSelector": {"place": "west"}}
TERM = {"matchExpressions": [{"key": "place", "operator": "In", "values": ["west"]}]}
NEEDS_WEST = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}
        }
    }
}


def nodes(*rooms: int, **more: Any) -> list[Body]:
    """Nodes ``n1``, ``n2``, … with room for so many pods; a negative number: it is cordoned."""
    return [
        node(f"n{place}", cpu="4", memory="3000", pods=abs(room), unschedulable=room < 0, **more)
        for place, room in enumerate(rooms, 1)
    ]


def some(*names: str, on: str = "n1", cpu: str = "400m", **more: Any) -> list[Body]:
    """Pods of a ReplicaSet."""
    return [pod(name, on, cpu=cpu, **more) for name in names]


def gpus(*names: str, on: str = "n1", **more: Any) -> list[Body]:
    """Pods that request one device, and nothing else."""
    asks = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {GPU: "1"}}}]}
    return some(*names, on=on, spec=asks, **more)


def kept() -> list[Body]:
    """Three pods of ``n1`` that may not be evicted, each for a reason of its own."""
    return [
        *some("daemon", owner="DaemonSet/d"),
        *some("mirror", annotations={"kubernetes.io/config.mirror": "x"}),
        *some("critical", priority=2_000_000_000, owner=""),
    ]


def metrics(bodies: list[Body]) -> list[Body]:
    """The NodeMetrics of these nodes."""
    used: dict[str, list[Body]] = {
        body["metadata"]["name"]: [] for body in bodies if body["kind"] == "Node"
    }
    for body in bodies:
        if body["kind"] == "Pod":
            meta, requested = body["metadata"], body["spec"]["containers"][0]["resources"]
            used[body["spec"]["nodeName"]].append(
                {
                    "namespace": meta["namespace"],
                    "name": meta["name"],
                    "podUsage": {"resources": requested["requests"]},
                }
            )
    return [
        {
            "kind": "NodeMetric",
            "metadata": {"name": name},
            "status": {
                "updateTime": ago(10),
                "nodeMetric": {"nodeUsage": {"resources": {}}, "systemUsage": {"resources": {}}},
                "podsMetric": rows,
            },
        }
        for name, rows in used.items()
    ]


def bounds(low: int, high: int, pods: tuple[int, int] = (0, 0), prefix: str = "") -> Body:
    """Thresholds of CPU, and of pods where they are others; ``prefix``: ``prod``."""
    low_pods, high_pods = pods if any(pods) else (low, high)
    names = ["lowThresholds", "highThresholds"]
    if prefix:
        names = [f"{prefix}{name[0].upper()}{name[1:]}" for name in names]
    return {
        names[0]: {"cpu": low, "pods": low_pods},
        names[1]: {"cpu": high, "pods": high_pods},
    }


def at_once(args: Body) -> Body:
    """A policy by which the first look at a node counts."""
    return policy({"LowNodeLoad": {**args, "anomalyCondition": {"consecutiveAbnormalities": 1}}})


def going(bodies: list[Body], args: Body) -> list[str]:
    """Who goes."""
    return evicted([*bodies, *metrics(bodies)], at_once(args))


USUAL = bounds(30, 50)
#: Only the pods of production are too many: as a whole each node is within its bounds.
WIDE = bounds(0, 100)
FIVE = ("p1", "p2", "p3", "p4", "p5")
THREE = nodes(9, 10, -10)
TARGET = some("q", on="n2")


@pytest.mark.parametrize(
    ("bodies", "args", "names"),
    [
        # Nobody may go.
        ([*THREE, *kept(), *some("d1", "d2", owner="DaemonSet/d"), *TARGET], USUAL, []),
        # 8 of 9 pods, and 4 are within 50 %: the number of pods is a resource.
        ([*THREE, *some(*FIVE), *kept(), *TARGET], USUAL, ["p1", "p2", "p3", "p4"]),
        (
            [*THREE, *some(*FIVE, namespace="a"), *kept(), *TARGET],
            {**USUAL, "evictableNamespaces": {"exclude": ["a"]}}, [],
        ),
        (
            [*THREE, *some("p1", "p2"), *some("p3", "p4", "p5", namespace="a"), *kept(), *TARGET],
            {**USUAL, "evictableNamespaces": {"include": ["default"]}}, ["p1", "p2"],
        ),
        # Memory has no threshold, and the target has 900 bytes of it left.
        (
            [*THREE, *some(*FIVE, memory="300"), *kept(), *some("q", on="n2", memory="2100")],
            USUAL, ["p1", "p2", "p3"],
        ),
        # The lowest priority first.
        (
            [*THREE, *some(*FIVE[:4], priority=10000), *some("p5", priority=0), *kept(), *TARGET],
            USUAL, ["p5", "p1", "p2", "p3"],
        ),
        # Best-effort pods before a burstable one.
        (
            [*THREE, *some("p1", "p2", "p4", "p5", cpu="0"), *some("p3"), *kept(), *TARGET],
            USUAL, ["p1", "p2", "p4", "p5"],
        ),
        # The only other node is cordoned.
        ([*nodes(9, -10), *some(*FIVE), *kept()], USUAL, []),
        # Who needs what the target is not stays.
        (
            [*nodes(9, 10), *some("p1", "p2", "p3"), *some("p4", "p5", spec=WEST), *kept()],
            USUAL, ["p1", "p2", "p3"],
        ),
        (
            [*nodes(9, 10), *some("p1", "p2", "p3"), *some("p4", "p5", spec=NEEDS_WEST), *kept()],
            USUAL, ["p1", "p2", "p3"],
        ),
        # 20 and 2 CPUs of 40: 5 around the mean, and nobody is to be below it.
        (
            [*THREE, *some(*FIVE), *kept(), *TARGET],
            {**bounds(5, 5), "useDeviationThresholds": True}, ["p1", "p2"],
        ),
    ],
)  # fmt: skip
def test_pods_go_while_their_node_is_too_full_and_another_has_room(
    bodies: list[Body], args: Body, names: list[str]
) -> None:
    """By CPU and by the number of pods; the cordoned node is never a target."""
    assert going(bodies, args) == names


def test_a_device_has_thresholds_and_a_node_without_it_is_no_target() -> None:
    """8 of 8 devices and 4 within 50 %; the target has room for three beside its own."""
    args = {
        "lowThresholds": {"pods": 30, GPU: 30},
        "highThresholds": {"pods": 50, GPU: 50},
    }
    room = {"room": {GPU: "8"}}
    source = [*gpus(*FIVE, "p6"), *gpus("m", annotations={"kubernetes.io/config.mirror": "x"})]
    bodies = [*nodes(9, 10, **room), *nodes(9, 10, -10)[2:], *source, *gpus("q", on="n2")]
    assert going(bodies, args) == ["p1", "p2", "p3"]
    without = [*nodes(9, **room), *nodes(9, 10, -10)[1:], *source]
    assert going(without, args) == []


@pytest.mark.parametrize(
    ("bodies", "args", "names"),
    [
        # Five of nine are production, and 40 % of nine are three; of the whole node, 90 % are free.
        (
            [*THREE, *some("p1", "p2"), *some("p3", "p4", "p5", labels=BATCH), *kept(), *TARGET],
            {**bounds(30, 90), **bounds(20, 40, prefix="prod")}, ["p1", "p2"],
        ),
        # Too full as a whole and in production: the first round is enough, and takes batch first.
        (
            [*THREE, *some("p1", "p2", "p3"), *some("p4", "p5", labels=BATCH), *kept(), *TARGET],
            {**bounds(30, 70, (30, 80)), **bounds(20, 40, prefix="prod")}, ["p4"],
        ),
        ([*THREE, *some(*FIVE), *kept(), *TARGET],
         {**WIDE, **bounds(30, 50, prefix="prod")}, ["p1", "p2", "p3", "p4"]),
        # The room of n2 is for both rounds: what the first leaves, one pod of n3 takes.
        (
            [*nodes(20, 20, 20), *some(*FIVE, "p6", "p7"), *kept(), *TARGET,
             *some("r1", "r2", "r3", "r4", "r5", "r6", on="n3")],
            {**bounds(30, 60, (50, 80)), **bounds(20, 30, (30, 50), prefix="prod")},
            ["p1", "p2", "p3", "p4", "r1"],
        ),
        # 10 around the mean of production; of the whole nothing deviates.
        (
            [*nodes(20, 20, 20), *some(*FIVE), *kept(), *TARGET, *some("r1", "r2", on="n3")],
            {**WIDE, **bounds(10, 10, prefix="prod"), "useDeviationThresholds": True},
            ["p1", "p2", "p3"],
        ),
        # One pod less, and the node is no source any more.
        (
            [*nodes(20, 20), *some(*FIVE), *kept(), *TARGET],
            {**WIDE, **bounds(60, 70, prefix="prod")}, ["p1"],
        ),
    ],
)  # fmt: skip
def test_production_has_thresholds_of_its_own(
    bodies: list[Body], args: Body, names: list[str]
) -> None:
    """Pods of production leave for nodes with little production; others stay."""
    assert going(bodies, args) == names


def test_the_reason_has_thresholds_as_they_were_given_by_name() -> None:
    """Half of nine pods are four: the reason says 50 %, and CPU before pods."""
    args = {
        "lowThresholds": {"pods": 30, "cpu": 30},
        "highThresholds": {"pods": 50, "cpu": 50},
    }
    bodies = [*THREE, *some(*FIVE), *kept(), *TARGET]
    first = play([*bodies, *metrics(bodies)], at_once(args)).evicted[0]
    assert first.reason == (
        "node is overutilized, node cpu usage(80.00%)>threshold(50.00%),"
        " node pods usage(88.89%)>threshold(50.00%)"
    )


@pytest.mark.parametrize(
    ("args", "first"),
    [
        # 60 and 75 %, and a tenth of its pods; or 65 and 60 %, and four tenths.
        ({}, "n1"),
        ({"resourceWeights": {"cpu": 10, "memory": 1}}, "n2"),
        # Pods that have a threshold weigh 1 at the top level …
        ({"pods": True}, "n2"),
        # … and in a pool nothing, as all that its own weights do not name.
        ({"pods": True, "pool": True}, "n1"),
        ({"pool": True, "resourceWeights": {"cpu": 1}}, "n2"),
        ({"resourceWeights": {"cpu": 0}}, "n1"),
    ],
)
def test_weights_say_which_node_is_the_fullest(args: Body, first: str) -> None:
    """It comes first; the target has room for one pod."""
    names = ("cpu", "memory", *(["pods"] if args.pop("pods", False) else []))
    thresholds = {"lowThresholds": dict.fromkeys(names, 10)}
    thresholds["highThresholds"] = dict.fromkeys(names, 50)
    pool = args.pop("pool", False)
    args = {**thresholds, **args}
    bodies = [
        *nodes(10, 10, 10),
        *some("a", cpu="2400m", memory="2250"),
        *some("b1", "b2", "b3", "b4", on="n2", cpu="650m", memory="450"),
    ]
    args = {"nodePools": [{"name": "pool", **args}]} if pool else args
    result = play([*bodies, *metrics(bodies)], at_once({**args, "nodeFit": False}))
    assert f"n{result.evicted[0].resident.row + 1}" == first


@pytest.mark.parametrize(
    ("raw", "goes"),
    [
        (None, []),
        # A node that was amplified is measured by what it really has.
        ('{"cpu": "2", "memory": "3000"}', ["p1"]),
        ("nonsense", []),
    ],
)
def test_a_node_is_measured_by_what_it_really_has(raw: str | None, goes: list[str]) -> None:
    """1.2 of 4 CPUs are 30 %, of 2 they are 60 %; what it does not name is as it is allocatable."""
    notes = {} if raw is None else {"node.koordinator.sh/raw-allocatable": raw}
    bodies = [*nodes(9, annotations=notes), *nodes(9, 10)[1:], *some("p1", "p2", "p3"), *TARGET]
    assert going(bodies, bounds(20, 50)) == goes


@pytest.mark.parametrize(
    ("used", "pods", "weights", "expected"),
    [
        # 10 CPUs too many, of memory enough is left: the largest first, and all are needed.
        (
            ("20", "8Gi"), [("1", "1Gi"), ("3", "1Gi"), ("2", "1Gi"), ("4", "1Gi")], {},
            ["p3", "p1", "p2", "p0"],
        ),
        # 4 CPUs and 4 GiB too many, memory counts twice: who covers it goes before who does not.
        (
            ("10", "10Gi"), [("2", "5Gi"), ("3", "4Gi"), ("4", "3Gi"), ("5", "2Gi")],
            {"memory": 2}, ["p1", "p0"],
        ),
        # The same where CPUs count: 4 are exactly enough, and 5 more than enough.
        (
            ("10", "10Gi"), [("2", "5Gi"), ("3", "4Gi"), ("4", "3Gi"), ("5", "2Gi")],
            {"cpu": 20}, ["p2", "p3"],
        ),
    ],
)  # fmt: skip
def test_pods_of_an_overloaded_node_are_ordered_by_how_well_they_cover_the_excess(
    used: tuple[str, str], pods: list[tuple[str, str]], weights: Body, expected: list[str]
) -> None:
    """The smallest that is enough, then the largest of the others, over all resources."""
    bodies = [
        node("n1", cpu="32", memory="32Gi"), node("n2", cpu="64", memory="64Gi"),
        pod("stays", "n1", cpu=used[0], memory=used[1], owner="DaemonSet/d"),
        *(pod(f"p{place}", "n1", cpu=cpu, memory=memory)
          for place, (cpu, memory) in enumerate(pods)),
    ]  # fmt: skip
    args = {
        "lowThresholds": {"cpu": 10, "memory": 10},
        "highThresholds": {"cpu": 62.5, "memory": 62.5},
        "resourceWeights": weights,
    }
    assert going(bodies, args) == expected
