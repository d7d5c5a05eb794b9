"""NodeAvoidance: a preference above all others, never a refusal, that ends at its moment."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.kubeapi import node_avoidances
from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.model import moment
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.sim import simulation
from tests.kit import clusters, reservations

START = 1767225600.0
Body = dict[str, Any]
OWNER = {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]}
REPLICA_SET: Body = {
    "kind": "ReplicaSet",
    "metadata": {
        "name": "web-1",
        "namespace": "d",
        "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}],
    },
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
}


def avoids(node: str, *, weight: int = 100, seconds: float = 3600.0) -> Body:
    """The avoid list of a node: Deployment d/web, from the start on."""
    entry = Avoidance(
        workload=("d", "Deployment", "web"),
        reason="Interference",
        since=START,
        until=START + seconds,
        weight=weight,
    )
    spec = node_avoidances.spec([entry])
    return {"kind": "NodeAvoidance", "metadata": {"name": node}, "spec": spec}


def chosen(*bodies: Body, at: float = 0.0) -> str:
    """The node of a pod of the Deployment, some seconds after the start; empty: none."""
    pod = clusters.pod("p", cpu="1", meta=OWNER)
    loaded = inventory.load([REPLICA_SET, pod, *bodies])
    result = simulation.Simulation(loaded, now=START + at).run()
    return str(result.placements[0]["node"]) if result.placements else ""


#: The emptier node is the better one, unless somebody says otherwise.
NODES = (clusters.node("empty", cpu="16"), clusters.node("full", cpu="2"))


@pytest.mark.parametrize(
    ("at", "node"), [(0.0, "full"), (3599.9, "full"), (3600.0, "empty"), (9999.0, "empty")]
)
def test_a_workload_stays_away_until_the_very_moment(at: float, node: str) -> None:
    """The ReplicaSet of a Deployment bears its Deployment's entry: a rollout does not forget."""
    assert chosen(*NODES) == "empty"
    assert chosen(*NODES, avoids("empty"), at=at) == node


def test_the_only_node_is_taken_although_it_is_avoided() -> None:
    """It is a preference, and no filter."""
    assert chosen(clusters.node("empty", cpu="16"), avoids("empty")) == "empty"


@pytest.mark.parametrize(
    ("owners", "node"),
    [
        ([{"controller": {"kind": "ReplicaSet", "name": "web-1"}}], "full"),
        ([{"controller": {"kind": "ReplicaSet", "name": "web-2"}}], "empty"),
        ([{"controller": {"kind": "ReplicaSet", "name": "web-1"}}, {"object": {}}], "empty"),
        ([{"labelSelector": {"matchLabels": {"app": "web"}}}], "empty"),
    ],
)
def test_room_for_a_workload_is_held_where_its_pods_will_go(owners: list[Body], node: str) -> None:
    """Elsewhere nobody would use it. Room that others may take avoids nothing."""
    room = reservations.reservation(
        "room", owners=owners, cpu="1", template_meta={"namespace": "d"}
    )
    loaded = inventory.load([REPLICA_SET, *NODES, avoids("empty"), room])
    (held,) = simulation.Simulation(loaded, now=START).run().reservations
    assert held["node"] == node


@pytest.mark.parametrize(("namespace", "node"), [("d", "full"), ("e", "empty")])
def test_the_namespace_of_the_owner_says_whose_room_it_is(namespace: str, node: str) -> None:
    """Its template may name another, or none."""
    owner = {"controller": {"kind": "ReplicaSet", "name": "web-1", "namespace": namespace}}
    others = {"namespace": "e" if namespace == "d" else "d"}
    room = reservations.reservation("room", owners=[owner], cpu="1", template_meta=others)
    loaded = inventory.load([REPLICA_SET, *NODES, avoids("empty"), room])
    (held,) = simulation.Simulation(loaded, now=START).run().reservations
    assert held["node"] == node


def test_of_two_avoided_nodes_the_one_with_less_weight_is_taken() -> None:
    """Whatever all other scores say."""
    lists = avoids("empty", weight=60), avoids("full", weight=59)
    assert chosen(*NODES, *lists) == "full"


def test_annotation_of_an_older_kubernetes_is_warned_of() -> None:
    """The warning names the node and what has come in its place."""
    marked = clusters.node("n")
    key = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    marked["metadata"]["annotations"] = {key: '{"preferAvoidPods": []}'}
    [warning] = inventory.load([marked]).warnings
    assert warning.startswith(f"Node n: annotation {key} is ignored")
    assert "NodeAvoidance" in warning


def test_other_workloads_do_not_hear_of_it() -> None:
    """Neither do they pay for a score."""
    loaded = inventory.load([*NODES, REPLICA_SET, avoids("empty"), clusters.pod("q", cpu="1")])
    served = profile.default()
    loaded.equip(served, START)
    view = Cycle(loaded.columns, served).view(loaded.pending[0].pod_class)
    assert "NodeAvoidance" not in [name for name, _, _ in view.scores]


def test_a_sample_of_the_nodes_begins_with_those_that_are_not_avoided() -> None:
    """Those come last in the order, so that a sample does not consist of them."""
    names = [f"n{number:03}" for number in range(250)]
    pod = clusters.pod("p", cpu="1", meta=OWNER)
    lists = [avoids(name) for name in names[:149]]
    loaded = inventory.load([*map(clusters.node, names), REPLICA_SET, pod, *lists])
    served = dataclasses.replace(profile.default(), share=1)
    loaded.equip(served, START)

    row = Cycle(loaded.columns, served).choose(loaded.pending[0])
    assert row == 149


def test_an_explanation_says_who_avoids_a_node_and_until_when() -> None:
    """In the words for people."""
    pod = clusters.pod("p", cpu="1", meta=OWNER)
    loaded = inventory.load([*NODES, REPLICA_SET, pod, avoids("empty", weight=40)])
    result = simulation.Simulation(loaded, now=START, explain="d/p").run()
    assert result.explanation is not None
    shown = result.explanation["nodes"]

    assert shown["empty"]["scores"]["NodeAvoidance"] == {"score": 60, "weight": 10_000}
    assert shown["empty"]["gets"]["NodeAvoidance"] == (
        f"empty is avoided by Deployment d/web until {moment.spell(START + 3600)}"
        " (Interference, weight 40)"
    )
    assert "gets" not in shown["full"]
