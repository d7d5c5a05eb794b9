"""Kubernetes' descheduler's cases of RemoveDuplicates.

Facts in tables: nodes, pods, how many go. Of equal pods, anyone may be the one.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.descheduling import Body, evicted, node, pod, policy

DUPLICATES = "RemoveDuplicates"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FIT: Body = {"nodeFit": True}
CORDONED: Body = {"unschedulable": True}
TO_WEST: Body = {"spec": {"nodeSelector": {"datacenter": "west"}}}
EAST: Body = {"labels": {"datacenter": "east"}}
HARDWARE = [{"key": "hardware", "value": "gpu", "effect": "NoSchedule"}]
PROTECTED = [
    pod("critical", "n1", namespace="kube-system", priority=2_000_000_000),
    pod("daemon", "n1", owner="DaemonSet/d"),
    pod("local", "n1", spec={"volumes": [{"name": "v", "emptyDir": {}}]}),
    pod("mirror", "n1", annotations={"kubernetes.io/config.mirror": "x"}),
]


def several(count: int, prefix: str, on: str = "n1", **more: Any) -> list[Body]:
    """So many pods of one owner."""
    return [pod(f"{prefix}{place}", on, **more) for place in range(count)]


def images(*names: str) -> Body:
    """Containers with these images."""
    containers = [
        {"name": f"c{place}", "image": name, "resources": {"requests": {"cpu": "100m"}}}
        for place, name in enumerate(names)
    ]
    return {"spec": {"containers": containers}}


def bears(key: str) -> Body:
    """A pod that tolerates some taint."""
    return {"spec": {"tolerations": [{"key": key, "operator": "Exists"}]}}


DEV, TEST = several(3, "d", namespace="dev"), several(3, "t", namespace="test")
TWO = [node("n1"), node("n2")]
SMALL = node("n6", cpu="200m", memory="200")


@pytest.mark.parametrize(
    ("bodies", "args", "evictor", "count"),
    [
        ([*TWO, *DEV], {}, {}, 1),
        ([*TWO, *DEV], {"excludeOwnerKinds": ["ReplicaSet"]}, {}, 0),
        ([*TWO, *TEST], {}, {}, 1),
        ([*TWO, *DEV, *TEST], {}, {}, 2),
        ([*TWO, *PROTECTED], {}, {}, 0),
        ([*TWO, *DEV, *PROTECTED, *TEST], {}, {}, 2),
        ([*TWO, pod("a", "n1", **images("foo")), pod("b", "n1", **images("bar"))], {}, {}, 0),
        ([*TWO, pod("a", "n1", **images("i", "foo"))], {}, {}, 0),
        ([*TWO, pod("a", "n1", **images("foo")), pod("b", "n1", **images("i", "foo"))], {}, {}, 0),
        ([node("n1"), node("n3", taints=HARDWARE), *DEV], {}, FIT, 0),
        ([node("n1"), node("n4", **EAST), *several(3, "w", **TO_WEST)], {}, FIT, 0),
        ([node("n1"), node("n5", **CORDONED), *DEV], {}, FIT, 0),
        ([node("n1"), SMALL, *DEV, pod("eats", "n6", "150m", "150", owner="")], {}, FIT, 0),
        ([node("n1"), SMALL, *DEV, pod("saves", "n6", "100m", "150", owner="")], {}, FIT, 1),
    ],
)  # fmt: skip
def test_duplicates(bodies: list[Body], args: Body, evictor: Body, count: int) -> None:
    """Three on one of two nodes are one too many, where it has somewhere to go."""
    assert len(evicted(bodies, policy({DUPLICATES: args}, evictor))) == count


def spread(counts: dict[str, int], *shapes: Body, prefix: str = "p", **more: Any
           ) -> list[Body]:  # fmt: skip
    """Pods on several nodes; shapes in turn."""
    on = [name for name, count in counts.items() for _ in range(count)]
    return [
        pod(f"{prefix}{place}", name, "10m", **(shapes[place % len(shapes)] if shapes else {}),
            **more)
        for place, name in enumerate(on)
    ]  # fmt: skip


def none_of(*keys: str) -> Body:
    """A pod that needs a node without these labels."""
    expressions = [{"key": key, "operator": "DoesNotExist"} for key in keys]
    rule = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return {"spec": {"affinity": {"nodeAffinity": rule}}}


def selects(value: str) -> Body:
    """A pod that selects workers."""
    return {"spec": {"nodeSelector": {"worker": value}}}


THREE = [node(name) for name in ("n1", "n2", "n3")]
MASTERS = ("m1", "m2", "m3")
NINE = {"n1": 5, "n2": 3, "n3": 1}
TWO_OWNERS: Body = {
    "meta": {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ReplicaSet", "name": name, "uid": name}
            for name in ("rs-1", "rs-2")
        ]
    }
}


@pytest.mark.parametrize(
    ("bodies", "count"),
    [
        ([*THREE, *spread(NINE)], 2),
        # The pod of a node that is not in view does not count: 5 and 3 are 4 and 4.
        ([*THREE[:2], *spread({"n1": 5, "n2": 3})], 1),
        # Of pods with two owners the peer counts each eviction twice.
        ([*THREE, *spread(NINE, TWO_OWNERS)], 2),
        (
            [*THREE, *spread(NINE),
             *spread({"n1": 1, "n2": 3, "n3": 5}, prefix="q", owner="ReplicaSet/2")],
            4,
        ),
        ([*THREE, *spread({"n1": 2})], 1),
        ([*THREE, *(pod(f"p{place}", "n1", **images("i", name))
                    for place, name in enumerate(("foo", "bar", "baz", "foo")))], 1),
        ([*THREE, *spread({"n1": 1})], 0),
        # Masters that nobody tolerates.
        (
            [*THREE, *(node(name, taints=[{"key": "master", "effect": "NoSchedule"}])
                       for name in MASTERS),
             *spread(NINE, bears("k1"), bears("k2"))],
            2,
        ),
        # Masters that the affinity of all excludes.
        (
            [*THREE, *(node(name, labels={"master": ""}) for name in MASTERS),
             *spread(NINE, none_of("master", "k1"), none_of("master", "k2"))],
            2,
        ),
        # Half of the pods select nodes of which there is none; the others, three.
        (
            [*(node(name, labels={"worker": "k2"}) for name in ("n1", "n2", "n3")),
             *map(node, MASTERS), *spread(NINE, selects("k1"), selects("k2"))],
            2,
        ),
        ([*THREE, *map(node, MASTERS), *spread(NINE, selects("k1"), selects("k2"))], 0),
    ],
)  # fmt: skip
def test_duplicates_are_spread_evenly(bodies: list[Body], count: int) -> None:
    """Over the nodes that could have one of them."""
    assert len(evicted(bodies, policy({DUPLICATES: None}))) == count
