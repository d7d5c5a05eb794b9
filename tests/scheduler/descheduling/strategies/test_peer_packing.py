"""Kubernetes' descheduler's cases of HighNodeUtilization.

Facts in tables: nodes, pods, thresholds, who goes.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from koordlet.model import errors
from tests.kit.descheduling import Body, evicted, node, pod, policy

HIGH = "HighNodeUtilization"
GPU = "example.com/foo"
FIT: Body = {"nodeFit": True}
CORDONED: Body = {"unschedulable": True}
CRITICAL: Body = {"namespace": "kube-system", "priority": 2_000_000_000}
MIRROR: Body = {"annotations": {"kubernetes.io/config.mirror": "x"}}
DAEMON: Body = {"owner": "DaemonSet/d"}
WITH_GPU: Body = {"room": {GPU: "8"}}
WEST: Body = {"labels": {"datacenter": "west"}}
TAINT: Body = {"taints": [{"key": "key", "value": "value", "effect": "NoSchedule"}]}


def nodes(*changes: Body, cpu: str = "4", memory: str = "3000") -> list[Body]:
    """Nodes ``n1``, ``n2``, …."""
    return [
        node(f"n{place + 1}", **{"cpu": cpu, "memory": memory, **change})
        for place, change in enumerate(changes)
    ]


def pods(on: str, count: int, cpu: str = "400m", memory: str = "0") -> list[Body]:
    """So many pods on a node: ``n1-0``, ``n1-1``, …."""
    return [pod(f"{on}-{place}", on, cpu, memory) for place in range(count)]


def asks(cpu: str, gpus: int = 0, **more: Any) -> Body:
    """A pod that requests CPU and devices."""
    amounts = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
    containers = [{"name": "c", "image": "i", "resources": {"requests": amounts}}]
    return {"spec": {"containers": containers, **more}}


THREE = nodes({}, {}, CORDONED)
BOTH: Body = {"cpu": 30, "pods": 30}
TO_WEST = asks("400m", nodeSelector={"datacenter": "west"})


@pytest.mark.parametrize(
    ("bodies", "thresholds", "names"),
    [
        # Nobody is below.
        ([*nodes({}, {}, {}), *pods("n1", 3), *pods("n2", 3), *pods("n3", 3)],
         {"cpu": 20, "pods": 20}, []),
        # Nobody may go.
        (
            [*nodes({"pods": 9}, {}, {}),
             pod("a", "n1", "400m", **MIRROR), pod("b", "n1", "400m", **CRITICAL),
             pod("c", "n2", "400m", **DAEMON), pod("d", "n2", "400m", **DAEMON), *pods("n3", 4)],
            {"cpu": 40, "pods": 40}, [],
        ),
        # The one that is not below is cordoned.
        ([*THREE, *pods("n1", 1), *pods("n2", 1), *pods("n3", 3)], {"cpu": 20, "pods": 20}, []),
        # One that is cordoned is emptied as any other.
        (
            [*THREE, *pods("n1", 1), pod("b", "n1", "400m", **CRITICAL), *pods("n2", 4),
             *pods("n3", 1)],
            BOTH, ["n1-0", "n3-0"],
        ),
        # The room for one is gone with the first.
        ([*nodes({}, {}, CORDONED, cpu="2"), *pods("n1", 1), *pods("n2", 4), *pods("n3", 1)],
         BOTH, 1),
        # The least important goes first, into the room for one.
        (
            [*nodes({"cpu": "4"}, {}, CORDONED, cpu="2"),
             pod("high", "n1", "400m", priority=10_000), pod("low", "n1", "400m", priority=0),
             *pods("n2", 4), pod("d", "n3", "400m", **DAEMON)],
            {"cpu": 30}, ["low"],
        ),
        # Who requests nothing goes first.
        (
            [*nodes({}, {"pods": 5}, CORDONED, cpu="3"), pod("some", "n1", "400m"),
             pod("none", "n1", "0"), *pods("n2", 4)],
            {"cpu": 30}, ["none"],
        ),
        # Devices.
        (
            [*nodes(WITH_GPU, WITH_GPU, CORDONED),
             *(pod(f"a{place}", "n1", **asks("100m", 1)) for place in range(2)),
             *(pod(f"b{place}", "n2", **asks("500m", 1)) for place in range(4))],
            {"cpu": 20, GPU: 40}, ["a0", "a1"],
        ),
        (
            [*nodes(WITH_GPU, {}, CORDONED),
             *(pod(f"a{place}", "n1", **asks("100m", 1)) for place in range(2)),
             *pods("n2", 4, "500m")],
            {"cpu": 40, GPU: 40}, [],
        ),
        # A selector of the other node, and one that no node meets.
        (
            [*nodes({"pods": 9, **WEST}, {}), *pods("n1", 3), pod("d", "n1", "400m", **DAEMON),
             pod("p", "n2", **TO_WEST)],
            BOTH, ["p"],
        ),
        (
            [*nodes({"pods": 9}, {}), *pods("n1", 3), pod("d", "n1", "400m", **DAEMON),
             pod("p", "n2", **TO_WEST)],
            BOTH, [],
        ),
        # Too little memory on the other.
        (
            [*nodes({"pods": 9, "memory": "200"}, {}), *pods("n1", 3, memory="50"),
             pod("d", "n1", "400m", "50", **DAEMON), pod("p", "n2", "400m", "100")],
            BOTH, [],
        ),
    ],
)  # fmt: skip
def test_under_used_nodes_are_emptied(
    bodies: list[Body], thresholds: Body, names: list[str] | int
) -> None:
    """Where the pods fit; a number where any of several may go."""
    chosen = sorted(evicted(bodies, policy({HIGH: {"thresholds": thresholds}}, FIT)))
    assert (len(chosen) if isinstance(names, int) else chosen) == names


def test_only_pods_that_ask_for_what_has_a_threshold() -> None:
    """Two nodes have no device in use, and their pods ask for none."""
    ten: Body = {"room": {GPU: "10"}}
    args = {"thresholds": {GPU: 40}, "evictionModes": ["OnlyThresholdingResources"]}
    bodies = [
        *nodes(ten, ten, ten),
        *(pod(f"a{place}", "n1", **asks("100m", 3)) for place in range(2)),
        *pods("n2", 4, "500m"),
    ]
    assert evicted(bodies, policy({HIGH: args}, FIT)) == []
    del args["evictionModes"]
    assert len(evicted(bodies, policy({HIGH: args}, FIT))) == 4


def test_the_emptiest_node_is_emptied_first() -> None:
    """Where there is room for one pod only."""
    bodies = [
        *nodes({}, {}, {}, cpu="2"), *pods("n1", 2, "100m"), *pods("n2", 1, "100m"),
        *pods("n3", 1, "1950m"),
    ]  # fmt: skip
    assert evicted(bodies, policy({HIGH: {"thresholds": {"cpu": 30}}})) == ["n2-0"]


TOLERATES = asks("200m", tolerations=[{"key": "key", "value": "value"}])


@pytest.mark.parametrize(
    ("bodies", "names"),
    [
        ([*nodes({}, {}, {}, cpu="1"), *pods("n1", 3, "200m"), *pods("n2", 1, "200m")], ["n2-0"]),
        ([*nodes({}, TAINT, cpu="1"), *pods("n1", 1, "200m"), *pods("n2", 1, "200m")], []),
        (
            [*nodes({}, TAINT, cpu="1"), *pods("n1", 1, "100m"), pod("p", "n1", **TOLERATES),
             *pods("n2", 1, "500m")],
            ["p"],
        ),
    ],
)  # fmt: skip
def test_taints_of_the_others(bodies: list[Body], names: list[str]) -> None:
    """Of one node in three, one in use: a pod must tolerate a node that is not below."""
    assert evicted(bodies, policy({HIGH: {"thresholds": {"cpu": 40}}})) == names


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"thresholds": {}}, "no resource threshold is configured"),
        ({"thresholds": {"cpu": -1}}, "thresholds.*cpu"),
        ({"thresholds": {"memory": 101}}, "thresholds.*memory"),
        ({"thresholds": {"cpu": 50, "memory": 150}}, "thresholds.*memory"),
        ({"thresholds": {"cpu": 80}, "evictionModes": ["InvalidMode"]}, "'InvalidMode' is not"),
        ({"thresholds": {"cpu": 80}, "evictableNamespaces": {"include": ["a"]}}, "only exclude"),
    ],
)
def test_arguments_that_are_refused(args: Body, message: str) -> None:
    """Each names what is wrong."""
    with pytest.raises(errors.ConfigError) as caught:
        evicted(THREE, policy({HIGH: args}))
    assert re.search(message, str(caught.value))


@pytest.mark.parametrize(
    "args",
    [
        {"thresholds": {"cpu": 80, "memory": 90}, "evictionModes": ["OnlyThresholdingResources"]},
        {"thresholds": {"cpu": 85, GPU: 95}, "evictionModes": ["OnlyThresholdingResources"]},
        {"thresholds": {"cpu": 80}, "evictableNamespaces": {"exclude": ["ns1", "ns2"]}},
        {"thresholds": {"cpu": 80}, "evictionModes": None},
        {"thresholds": {"cpu": 80}, "evictionModes": []},
    ],
)
def test_arguments_that_are_accepted(args: Body) -> None:
    """An empty list of modes is none."""
    assert evicted(THREE, policy({HIGH: args})) == []
