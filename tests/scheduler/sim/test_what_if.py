"""Two simulations of one cluster."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.sim import simulation, what_if
from tests.kit.clusters import HOST, Body, node, pod
from tests.kit.quotas import quota


def test_an_object_takes_the_place_of_that_of_its_kind_and_name() -> None:
    """Others stay, and one that was not there is added."""
    old, new = quota("q", {}, {"cpu": 1}), quota("q", {}, {"cpu": 2})
    pod = {"kind": "Pod", "metadata": {"name": "q", "namespace": "default"}}
    more = quota("r")
    assert what_if.replaced([old, pod], [new, more]) == [pod, new, more]


def test_pods_that_are_elsewhere_are_listed_and_those_that_stay_are_not() -> None:
    """A pod that waits has no node."""
    before, after = simulation.Result(), simulation.Result()
    before.placements += [{"pod": "d/a", "node": "n1"}, {"pod": "d/b", "node": "n1"}]
    after.placements += [{"pod": "d/a", "node": "n1"}]
    after.pending += [{"pod": "d/b", "message": "no"}]
    after.quotas = [{"quota": "q"}]
    assert what_if.document(before, after) == {
        "pods": [{"pod": "d/b", "before": "n1", "after": None}],
        "before": [],
        "after": [{"quota": "q"}],
    }


def owned(name: str, owner: str, kind: str = "ReplicaSet", **more: Any) -> Body:
    """A pod of a controller."""
    controller = {"kind": kind, "name": owner, "controller": True}
    return pod(name, meta={"namespace": "d", "ownerReferences": [controller]}, **more)


def test_more_nodes_are_like_most_or_like_the_named_one() -> None:
    """With a name and a host name of their own."""
    bodies = [node("a", cpu="2"), node("b", cpu="8"), node("c", cpu="8")]
    added = what_if.with_nodes(bodies, 2)[3:]
    (like,) = what_if.with_nodes(bodies, 1, "a")[3:]

    assert [body["metadata"]["name"] for body in added] == ["b-new-1", "b-new-2"]
    assert added[0]["metadata"]["labels"][HOST] == "b-new-1"
    assert like["status"]["allocatable"]["cpu"] == "2"
    with pytest.raises(errors.ConfigError, match="there is no node to copy"):
        what_if.with_nodes(bodies, 1, "z")


def test_pods_of_a_node_that_goes_are_placed_anew() -> None:
    """But for those that belong to the node, and those that have ended."""
    bodies = [
        node("a"),
        owned("web", "web-1", on="a", status={"phase": "Running"}),
        owned("agent", "agent", "DaemonSet", on="a"),
        pod("done", on="a", status={"phase": "Succeeded"}),
        pod("far", on="b"),
    ]
    left = what_if.without(bodies, "a")

    assert [body["metadata"]["name"] for body in left] == ["web", "far"]
    assert ("nodeName" in left[0]["spec"], left[0]["status"]) == (False, {})
    with pytest.raises(errors.ConfigError, match="there is no such node"):
        what_if.without(bodies, "z")


def test_replicas_come_and_those_that_wait_go_first() -> None:
    """Pods of a ReplicaSet are of the Deployment that its name begins with."""
    bodies = [
        owned("one", "web-7f9"), owned("two", "web-7f9", on="a"), owned("other", "web-api-7f9"),
    ]  # fmt: skip
    fewer, more = (what_if.scaled(bodies, "d", "web", replicas) for replicas in (1, 4))

    assert [body["metadata"]["name"] for body in fewer] == ["two", "other"]
    assert [body["metadata"]["name"] for body in more[3:]] == ["web-new-1", "web-new-2"]
    with pytest.raises(errors.ConfigError, match="no pod of such a workload"):
        what_if.scaled(bodies, "d", "nobody", 3)


def test_a_deployment_without_its_pods_is_scaled_itself() -> None:
    """Its pods are made from its template later."""
    meta = {"name": "web", "namespace": "d"}
    deployment = {"kind": "Deployment", "metadata": meta, "spec": {"replicas": 1}}
    (made,) = what_if.scaled([deployment], "d", "web", 7)

    assert made["spec"]["replicas"] == 7
    assert deployment["spec"] == {"replicas": 1}
