"""Kubernetes' descheduler's cases of whether a pod fits another node, and which nodes it sees.

Facts in tables. ``PodLifeTime`` wants every pod, and each goes where another node takes it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.descheduling import Body, evicted, node, play, pod, policy

WANTS_ALL = {"PodLifeTime": {"maxPodLifeTimeSeconds": 0}}
ONLY_P: Body = {"nodeFit": True, "labelSelector": {"matchLabels": {"moves": "yes"}}}
GPU = "example.com/custom-resource"
STORAGE = "ephemeral-storage"


def goes(bodies: list[Body], evictor: Body = ONLY_P) -> bool:
    """Whether pod ``p`` goes."""
    return evicted(bodies, policy(WANTS_ALL, evictor)) == ["p"]


def asks(cpu: str, memory: str, storage: str = "0", more: Body | None = None) -> Body:
    """A container that requests this."""
    amounts = {"cpu": cpu, "memory": memory, STORAGE: storage, **(more or {})}
    return {"name": "c", "image": "i", "resources": {"requests": amounts}}


def moving(spec: Body, labels: Body | None = None, **more: Any) -> Body:
    """Pod ``p`` on node ``old``."""
    return pod("p", "old", labels={"moves": "yes", **(labels or {})}, spec=spec, **more)


# One node that takes a pod, or does not.

BIG = node("big", "64", "128G", pods=2, labels={"region": "main-region"})
OLD = node("old", "64", "128G", pods=20)


def shuns(value: str) -> Body:
    """What keeps a pod away from others of a label."""
    rule = {"labelSelector": {"matchLabels": {"foo": value}}, "topologyKey": "region"}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    return {"affinity": {"podAntiAffinity": rules}}


def sidecar(cpu: str, memory: str) -> Body:
    """A pod with a small container and a sidecar."""
    beside = {**asks(cpu, memory), "name": "s", "restartPolicy": "Always"}
    return {"containers": [asks("1m", "100")], "initContainers": [beside]}


def one(cpu: str, memory: str = "2G") -> Body:
    """A pod with one container."""
    return {"containers": [asks(cpu, memory)]}


SHY: Body = {**one("1", "1000"), **shuns("bar")}
BAR = {"foo": "bar"}


@pytest.mark.parametrize(
    ("body", "others", "fits"),
    [
        (moving(one("10")), [pod("a", "big", "60", "60G")], False),
        (moving(one("1")), [pod("a", "big", "1", "2G"), pod("b", "big", "1", "2G")], False),
        (moving(SHY, BAR), [pod("a", "big", labels=BAR, spec=SHY)], False),
        (moving(SHY, BAR), [pod("a", "big", labels=BAR, namespace="test", spec=SHY)], True),
        (moving(SHY, BAR), [pod("a", "big", labels={"foo": "no"}, spec=shuns("no"))], True),
        (moving(one("1", "1000")), [], True),
        (moving(sidecar("100", "100M")), [], False),
        (moving(sidecar("100m", "1000G")), [], False),
        (moving(sidecar("100m", "100M")), [], True),
        (moving({**one("1m", "100"), "overhead": {"cpu": "100", "memory": "100M"}}), [], False),
        (moving({**one("1m", "100"), "overhead": {"cpu": "1m", "memory": "1M"}}), [], True),
    ],
)  # fmt: skip
def test_a_node_takes_a_pod(body: Body, others: list[Body], *, fits: bool) -> None:
    """CPU, number of pods, anti-affinity of the pod itself, sidecars, overhead."""
    assert goes([OLD, BIG, body, *others]) is fits


def test_anti_affinity_over_a_label_that_the_node_lacks() -> None:
    """It is in no domain."""
    plain = node("plain", "64", "128G", pods=2)
    bodies = [OLD, plain, moving(SHY, BAR), pod("a", "plain", labels=BAR, spec=SHY)]
    assert goes(bodies)


# Several nodes. The first matches and is tainted, or cordoned, or has another label.

WANTED: Body = {"labels": {"desired": "yes"}}
TAINT: Body = {"taints": [{"key": "hardware", "value": "gpu", "effect": "NoSchedule"}]}
NOWHERE = node("old", "0", "0", pods=0)


def room(name: str, cpu: str = "64", memory: str = "128G", pods: int = 200, storage: str = "1T",
         **more: Any) -> Body:  # fmt: skip
    """A node with storage, and devices where it is said."""
    return node(
        name, cpu, memory, pods, **{**more, "room": {STORAGE: storage, **more.get("room", {})}}
    )


def chooses(cpu: str, memory: str, more: Body | None = None, storage: str = "10G") -> Body:
    """Pod ``p``, which selects nodes with the label."""
    return moving(
        {"nodeSelector": {"desired": "yes"}, "containers": [asks(cpu, memory, storage, more)]}
    )


def uses(cpu: str, memory: str, storage: str = "10G", overhead: str = "", **more: str) -> Body:
    """A pod on the second node."""
    spec: Body = {"containers": [asks(cpu, memory, storage, more)]}
    if overhead:
        spec["overhead"] = {"cpu": overhead, "memory": "1G", STORAGE: "1G"}
    return pod("a", "n2", namespace="test", spec=spec)


NOTHING = moving({"nodeSelector": {"desired": "yes"}})
NO: Body = {"labels": {"desired": "no"}}
TAINTED = room("n1", **WANTED, **TAINT)
DEVICES: Body = {"room": {GPU: "15"}}


@pytest.mark.parametrize(
    ("bodies", "fits"),
    [
        ([room("n1", **WANTED), room("n2", **NO), NOTHING], True),
        ([room("n1", **NO), room("n2", **WANTED), NOTHING], True),
        ([room("n1", **NO), room("n2", **NO), NOTHING], False),
        ([room("n1", unschedulable=True, **WANTED), room("n2", **NO), NOTHING], False),
        ([TAINTED, room("n2", **WANTED, **TAINT), chooses("2", "2G")], False),
        ([TAINTED, room("n2", **WANTED), chooses("2", "2G"), uses("12", "20G", "40G")], True),
        ([TAINTED, room("n2", "4", "8G", 12, "200G", **WANTED), chooses("2", "2G"),
          uses("3", "4G")], False),
        ([TAINTED, room("n2", "10", "8G", 12, "200G", **WANTED), chooses("2", "5G"),
          uses("2", "4G")], False),
        ([TAINTED, room("n2", "10", "8G", 12, "20G", **WANTED), chooses("2", "4G"),
          uses("2", "4G", "11G")], False),
        ([room("n1", **WANTED, **TAINT, **DEVICES),
          room("n2", "10", "8G", 12, "200G", **WANTED, **DEVICES),
          chooses("2", "2G", {GPU: "10"}), uses("0", "0", "0", **{GPU: "10"})], False),
        ([TAINTED, room("n2", "5", "8G", 12, "200G", **WANTED), chooses("1", "2G"),
          uses("2", "4G", overhead="1")], True),
        ([TAINTED, room("n2", "5", "8G", 12, "200G", **WANTED), chooses("2", "2G"),
          uses("2", "4G", overhead="2")], False),
        ([TAINTED, room("n2", "3", "8G", 12, "200G", **WANTED), room("n3", "3", "8G", 12),
          chooses("1", "2G"), uses("2", "4G", overhead="1")], False),
        ([TAINTED, room("n2", "8", "8G", 12, "200G"), room("n3", "1", "8G", 12),
          room("n4", "8", "8G", 12, **WANTED), chooses("1", "2G"),
          uses("2", "4G", overhead="1")], True),
        # What would take it is its own node.
        ([TAINTED, room("n2", "8", "8G", 12, "200G"), room("n3", "1", "8G", 12),
          chooses("1", "2G"), uses("2", "4G", overhead="1")], False),
    ],
)  # fmt: skip
def test_another_node_takes_a_pod(bodies: list[Body], *, fits: bool) -> None:
    """By label, taint, cordon, CPU, memory, storage, devices, overhead."""
    assert goes([NOWHERE, *bodies]) is fits


# Which nodes are looked at.


def test_nodes_that_are_not_ready_are_not_looked_at() -> None:
    """A node says so by its condition; without one it is ready, cordoned or not."""
    bodies = [node("ready"), node("not", ready=False), node("cordoned", unschedulable=True)]
    for name, condition in (("memory", "MemoryPressure"), ("network", "NetworkUnavailable")):
        body = node(name)
        body["status"]["conditions"] = [{"type": condition, "status": "True"}]
        bodies.append(body)
    pods = [pod(body["metadata"]["name"], body["metadata"]["name"]) for body in bodies]
    names = evicted([*bodies, *pods], policy(WANTS_ALL))
    assert sorted(names) == ["cordoned", "memory", "network", "ready"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("type=compute", "13"),
        ("type=infra", "2"),
        ("zone=us-west-1", "23"),
        ("zone in (us-west-1)", "23"),
        ("type=compute,zone=us-east-1", "1"),
        ("type=storage", ""),
        ("zone in (us-east-1, us-west-1), type notin (infra)", "13"),
        ("", "123"),
    ],
)
def test_the_selector_of_a_policy(selector: str, names: str) -> None:
    """A text; of fewer than two nodes nothing is done, as the peer does it."""
    nodes = [
        node("n1", labels={"type": "compute", "zone": "us-east-1"}),
        node("n2", labels={"type": "infra", "zone": "us-west-1"}),
        node("n3", labels={"type": "compute", "zone": "us-west-1"}),
    ]
    pods = [pod(f"p{place}", f"n{place}") for place in (1, 2, 3)]
    result = play([*nodes, *pods], policy(WANTS_ALL, nodeSelector=selector))
    chosen = [proposal.resident.pod.name for proposal in result.evicted]
    assert chosen == ([f"p{name}" for name in names] if len(names) > 1 else [])
    assert bool(result.notes) is (len(names) < 2)
