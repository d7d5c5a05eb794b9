"""Affinity to nodes and taints that came to be violated."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.descheduling.strategies import node_rules
from tests.kit.descheduling import Body, evicted, node, play, pod, policy

AFFINITY, TAINTS = "RemovePodsViolatingNodeAffinity", "RemovePodsViolatingNodeTaints"
REQUIRED, PREFERRED = node_rules.REQUIRED, node_rules.PREFERRED


def required(value: str) -> Body:
    """Only nodes of a pool."""
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": [value]}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def preferred(value: str, weight: int = 10) -> Body:
    """Rather nodes of a pool."""
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": [value]}]}
    wish = {"weight": weight, "preference": term}
    return {"affinity": {"nodeAffinity": {PREFERRED: [wish]}}}


def test_a_pod_leaves_a_node_that_it_must_not_be_on_where_another_takes_it() -> None:
    """Not where no node matches, and not for a node without room."""
    nodes = [
        node("n1"),
        node("n2", labels={"pool": "a"}),
        node("n3", cpu="0", labels={"pool": "b"}),
    ]
    pods = [
        *(pod("goes", "n1", spec=required("a")), pod("stays", "n2", spec=required("a"))),
        *(pod("full", "n1", spec=required("b")), pod("nowhere", "n1", spec=required("c"))),
        pod("plain", "n1"),
    ]
    body = policy({AFFINITY: {"nodeAffinityType": [REQUIRED]}})
    result = play([*nodes, *pods], body)
    chosen = [(each.resident.pod.name, each.target) for each in result.evicted]
    assert chosen == [("goes", "n2")]


def test_a_preferred_node_must_be_one_that_the_pod_fits() -> None:
    """The peer evicts for a better node also where the pod cannot go there."""
    pods = [pod("a", "n1", spec=preferred("a")), pod("b", "n1", spec=preferred("b"))]
    nodes = [
        node("n1"),
        node("n2", labels={"pool": "a"}),
        node("n3", cpu="0", labels={"pool": "b"}),
    ]
    body = policy({AFFINITY: {"nodeAffinityType": [PREFERRED]}})
    (proposal,) = play([*nodes, *pods], body).evicted
    assert (proposal.resident.pod.name, proposal.target) == ("a", "n2")
    assert proposal.reason == ("its preferred node affinity weighs 0 on its node and 10 on node n2")


SOFT = {"key": "k", "value": "v", "effect": "PreferNoSchedule"}
HARD = {"key": "k", "value": "v", "effect": "NoSchedule"}
OTHER = {"key": "other", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taints", "args", "goes"),
    [
        ([HARD], {}, True),
        ([SOFT], {}, False),
        ([SOFT], {"includePreferNoSchedule": True}, True),
        ([{**HARD, "effect": "NoExecute"}], {}, False),
        ([HARD], {"excludedTaints": ["k"]}, False),
        ([HARD], {"excludedTaints": ["k=v"]}, False),
        ([HARD], {"excludedTaints": ["k=other"]}, True),
        ([HARD, OTHER], {"excludedTaints": ["k"]}, True),
        ([HARD], {"includedTaints": ["k=v"]}, True),
        ([HARD], {"includedTaints": ["other"]}, False),
        ([HARD], {"includedTaints": []}, True),
    ],
)
def test_a_pod_leaves_a_node_whose_taint_it_does_not_tolerate(
    taints: list[Body], args: dict[str, Any], goes: bool
) -> None:
    """By key, or by key and value; NoExecute is the taint manager's."""
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    bodies = [node("n1", taints=taints), node("n2"), pod("p", "n1"), pod("q", "n1", spec=tolerant)]
    assert evicted(bodies, policy({TAINTS: args})) == (["p"] if goes else [])
