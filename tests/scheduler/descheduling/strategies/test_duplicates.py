"""Replicas of one owner that share a node."""

from __future__ import annotations

from typing import Any

from tests.kit.descheduling import Body, evicted, node, pod, policy

NAME = "RemoveDuplicates"
NODES = [node("n1"), node("n2")]


def names(bodies: list[Body], evictor: dict[str, Any] | None = None, **args: Any) -> list[str]:
    """The duplicates that go."""
    return evicted(bodies, policy({NAME: args}, evictor))


def three(**more: Any) -> list[Body]:
    """Three replicas on one node."""
    return [pod(f"p{place}", "n1", **more) for place in range(3)]


def test_of_three_replicas_on_one_of_two_nodes_one_goes() -> None:
    """Two are its share; an owner of an excluded kind, or another image, is none of ours."""
    assert names([*NODES, *three()]) == ["p2"]
    assert names([*NODES, *three()], excludeOwnerKinds=["ReplicaSet"]) == []
    others = [pod(f"p{place}", "n1", image=f"i{place}") for place in range(3)]
    assert names([*NODES, *others]) == []
    assert names([*NODES, *three()], namespaces={"exclude": ["default"]}) == []


def test_replicas_are_spread_evenly() -> None:
    """Upstream's table: 5, 3 and 1 become 3, 3 and 1 of three nodes' share."""
    pods = [pod(f"p{place}", on, cpu="10m") for place, on in enumerate("aaaaabbbc")]
    nodes = [node(name, pods=20) for name in "abc"]
    assert names([*nodes, *pods]) == ["p3", "p4"]


def test_fewer_than_two_nodes_that_could_have_one_are_no_choice() -> None:
    """A taint, a cordon or the pod's own selector leave one node."""
    tainted = node("n2", taints=[{"key": "k", "effect": "NoSchedule"}])
    assert names([node("n1"), tainted, *three()]) == []
    # The peer counts a cordoned node.
    assert names([node("n1"), node("n2", unschedulable=True), *three()]) == []
    chooses = three(spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}})
    assert names([*NODES, *chooses]) == []


def test_a_pod_of_two_owners_goes_once() -> None:
    """It is entered under each of them, and evicted once."""
    pods = three()
    for body in pods:
        second = {**body["metadata"]["ownerReferences"][0], "name": "two", "controller": False}
        body["metadata"]["ownerReferences"].append(second)
    assert names([*NODES, *pods]) == ["p2"]


def test_with_node_fit_nobody_goes_where_the_other_node_is_full() -> None:
    """The evictor's own question."""
    full = node("n2", cpu="50m")
    assert names([node("n1"), full, *three()], {"nodeFit": True}) == []
    assert names([*NODES, *three()], {"nodeFit": True}) == ["p2"]
