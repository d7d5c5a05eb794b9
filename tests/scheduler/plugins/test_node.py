"""Plugins that look at the node object: verdicts and scores from the tables of their semantics."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import Plugin
from koordlet.scheduler.objects import nodes, terms
from koordlet.scheduler.plugins import node as plugins
from tests.kit import clusters
from tests.kit.clusters import node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def required(*several: dict[str, Any]) -> dict[str, Any]:
    """Node affinity that must hold."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(several)}}}


@pytest.mark.parametrize(
    ("key", "operator", "values", "nodes"),
    [
        ("zone", "In", ["a", "b"], {"a", "b"}),
        ("zone", "NotIn", ["a"], {"b", "none"}),
        ("zone", "Exists", [], {"a", "b"}),
        ("zone", "DoesNotExist", [], {"none"}),
        ("cores", "Gt", ["7"], {"b"}),
        ("cores", "Lt", ["8"], {"a"}),
        ("cores", "Gt", ["x"], set()),
        ("zone", "Gt", ["1"], set()),
        ("zone", "Like", ["a"], set()),
        ("zone", "NotIn", ["no value!"], set()),
        ("no/key/", "NotIn", ["a"], set()),
    ],
)
def test_operators_of_node_affinity(
    key: str, operator: str, values: list[str], nodes: set[str]
) -> None:
    """Each operator accepts what the API says; a term that cannot be read matches nothing."""
    cluster = [
        clusters.stored(node("a", labels={"zone": "a", "cores": "-3"})),
        node("b", labels={"zone": "b", "cores": "8"}),
        node("none", labels={"cores": "many"}),
    ]
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    taken = clusters.stored(pod("p", affinity=required(term)))
    document = clusters.tried(*cluster, taken)
    scored = {name for placement in document["placements"] for name in placement["scores"]}

    assert nodes == scored


def test_fields_narrow_the_nodes() -> None:
    """Nodes that matchFields exclude have the message of the narrowing."""
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    nodes = [node("a"), node("b", cpu="1")]
    wanted = required({"matchFields": [field]})

    assert clusters.places(*nodes, pod("p", affinity=wanted)) == {"p": "b"}
    assert (
        clusters.message("p", *nodes, pod("p", cpu="2", affinity=wanted))
        == "0/2 nodes are available: 1 Insufficient cpu,"
        " 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_fields_that_name_no_node() -> None:
    """A node that does not exist narrows to none: every node says so, the pod is not refused."""
    field = {"key": "metadata.name", "operator": "In", "values": ["gone"]}

    assert (
        clusters.message("p", node("a"), pod("p", affinity=required({"matchFields": [field]})))
        == "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_an_empty_term_matches_nothing() -> None:
    """Neither an empty term nor an empty list matches a node."""
    refusal = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."

    for wanted in (required({}), required()):
        taken = clusters.stored(pod("p", affinity=wanted))
        assert clusters.message("p", node("a"), taken) == refusal


def test_cordoned() -> None:
    """A cordoned node takes only who tolerates it."""
    cordoned = node("a", spec={"unschedulable": True})
    bears = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]

    assert (
        clusters.message("p", cordoned, pod("p"))
        == "0/1 nodes are available: 1 node(s) were unschedulable."
    )
    assert clusters.places(cordoned, pod("p", tolerations=bears)) == {"p": "a"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "k", "value": "5"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "value": "6"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "operator": "Gt", "value": "4"}, True),
        ({"key": "k", "operator": "Lt", "value": "4"}, False),
        ({"key": "k", "operator": "Gt", "value": "04"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], *, tolerated: bool) -> None:
    """Key, value and effect, each empty one matching all; comparisons of canonical integers."""
    taint = terms.Taint("k", "5", "NoSchedule")

    assert tolerated is terms.tolerates(terms.toleration(toleration), taint)


def test_soft_taints_are_normalised_in_reverse() -> None:
    """Most soft taints score 0, none 100, times 3."""
    soft = [{"key": f"k{i}", "effect": "PreferNoSchedule"} for i in range(2)]
    scores = clusters.scores(
        "p",
        node("a", spec={"taints": soft}),
        node("b", spec={"taints": soft[:1]}),
        node("c"),
        pod("p"),
    )

    assert (scores["c"] - scores["a"], scores["c"] - scores["b"]) == (300, 150)


def test_wishes_are_normalised_over_feasible_nodes() -> None:
    """A better node that is not feasible does not count."""
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("x", 80), ("y", 40), ("z", 10))
    ]
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    full = node("a", labels={"x": "1"}, cpu="1")
    nodes = [full, node("b", labels={"y": "1"}), node("c", labels={"z": "1"})]
    scores = clusters.scores("p", *nodes, pod("p", cpu="2", affinity=wish))

    assert scores["b"] - scores["c"] == 2 * (100 - 100 * 10 // 40)


def test_image_locality() -> None:
    """The size, times the share of nodes that have it, between 23 MiB and 1000 MiB."""
    images = [{"names": ["app:1"], "sizeBytes": 1000 << 20}]
    scores = clusters.scores("p", node("a", images=images), node("b"), pod("p"))

    assert scores["a"] - scores["b"] == 100 * ((500 << 20) - (23 << 20)) // (
        (1000 << 20) - (23 << 20)
    )


def test_declared_features() -> None:
    """A pod that needs a feature goes where the kubelet declares it."""
    wanted = pod("p", hostNetwork=True, hostUsers=False)
    able = node("b", declaredFeatures=["UserNamespacesHostNetworkSupport"])

    assert clusters.places(node("a"), able, wanted) == {"p": "b"}
    assert "1 node(s) didn't match Pod's required features" in clusters.message(
        "p", node("a"), wanted
    )


def test_names_are_those_of_the_registry() -> None:
    """A plugin is configured by the peer's name."""
    assert plugins.TaintToleration.name == "TaintToleration"


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
BEARS = {"tolerations": [{"key": "k", "operator": "Exists"}]}
CORDONED = {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
ZONE = {"affinity": required({"matchExpressions": [{"key": "z", "operator": "Exists"}]})}
ADDED = {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": ZONE["affinity"]["nodeAffinity"]
         [REQUIRED]["nodeSelectorTerms"]}}}  # fmt: skip


@pytest.mark.parametrize(
    ("plugin", "asked", "changed", "helps"),
    [
        (plugins.NodeUnschedulable({}), {}, {"spec": {"unschedulable": True}}, False),
        (plugins.NodeUnschedulable({}), {}, {}, True),
        (plugins.NodeUnschedulable({}), CORDONED, {"spec": {"unschedulable": True}}, True),
        (plugins.NodeName({}), {"nodeName": ""}, {}, False),
        (plugins.TaintToleration({}), {}, {"spec": {"taints": [TAINT]}}, False),
        (plugins.TaintToleration({}), BEARS, {"spec": {"taints": [TAINT]}}, True),
        (plugins.TaintToleration({}), {},
         {"spec": {"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}}, True),
        (plugins.NodeAffinity({}), ZONE, {}, False),
        (plugins.NodeAffinity({}), ZONE, {"labels": {"z": ""}}, True),
        (plugins.NodeAffinity(ADDED), {}, {}, False),
        (plugins.NodeAffinity(ADDED), {}, {"labels": {"z": ""}}, True),
        (plugins.NodeAffinity({}), {"nodeSelector": {"z": "a"}}, {"labels": {"z": "b"}}, False),
        (plugins.NodeAffinity({}), {"nodeSelector": {"z": "a"}}, {"labels": {"z": "a"}}, True),
    ],
)  # fmt: skip
def test_a_node_helps_those_whom_the_plugin_does_not_refuse_there(
    plugin: Plugin, asked: dict[str, Any], changed: dict[str, Any], *, helps: bool
) -> None:
    """As kube-scheduler's hints say; what is no node may always help."""
    [pending] = inventory.load([node("a"), pod("p", **asked)]).pending
    event = ClusterEvent(ActionType.NODE_NEW, node=nodes.decode(node("n", **changed)))

    assert plugin.helps(event, pending.pod_class) is helps
    assert plugin.helps(ClusterEvent(ActionType.NODE_NEW), pending.pod_class) is True
