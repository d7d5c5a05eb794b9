"""Kubernetes' descheduler's cases of whole rounds: limits, counts that begin anew, selectors.

Facts in tables. ``RemovePodsViolatingNodeTaints`` wants every pod of a node with a taint.
"""

from __future__ import annotations

import pytest

from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.disruption.answers import Deny
from tests.kit.descheduling import Body, ago, evicted, node, play, pod, policy

TAINTS: dict[str, Body | None] = {"RemovePodsViolatingNodeTaints": None}
TAINT: Body = {"taints": [{"key": "key", "value": "value", "effect": "NoSchedule"}]}
NODE, SPACE, TOTAL = (
    f"maxNoOfPodsToEvict{each}" for each in ("PerNode", "PerNamespace", "Total")
)  # fmt: skip
FIVE = [pod(f"p{place}", "n1", namespace="dev") for place in range(5)]


@pytest.mark.parametrize("limit", [NODE, SPACE, TOTAL])
def test_limits_bound_a_round_and_begin_anew_with_the_next(limit: str) -> None:
    """Four of five, each time."""
    four: Body = {limit: 4}
    for _ in range(2):
        bodies = [node("n1", **TAINT), node("n2"), *FIVE]
        assert len(evicted(bodies, policy(TAINTS, **four))) == 4


ONE_EACH = {NODE: 1, SPACE: 1, TOTAL: 1}


@pytest.mark.parametrize(
    ("limits", "error", "answers"),
    [
        (ONE_EACH, "", [EvictionAnswer.EVICTED]),
        ({**ONE_EACH, TOTAL: 0}, "", [EvictionAnswer.TOTAL_LIMIT]),
        ({**ONE_EACH, NODE: 0}, "", [EvictionAnswer.NODE_LIMIT]),
        ({**ONE_EACH, SPACE: 0}, "", [EvictionAnswer.NAMESPACE_LIMIT]),
        (ONE_EACH, "eviction error", [EvictionAnswer.REFUSED]),
    ],
)  # fmt: skip
def test_one_pod_meets_a_limit_or_an_error(
    limits: Body, error: str, answers: list[EvictionAnswer]
) -> None:
    """What is refused is told by its reason."""
    bodies = [node("n1", **TAINT), node("n2"), pod("p", "n1")]
    refusal = Deny("Error", error) if error else None
    result = play(bodies, policy(TAINTS, **limits), lambda _proposal: refusal)
    assert [decision.answer for decision in result.decisions] == answers
    assert [decision.why for decision in result.decisions if decision.refusal] == (
        [f"Error: {error}"] if error else []
    )


NODES = [
    node("n1", **TAINT, labels={"zone": "us-east-1a", "environment": "production"}),
    node("n2", **TAINT, labels={"zone": "us-east-1b", "environment": "production"}),
    node("n3", **TAINT, labels={"zone": "us-west-1a", "environment": "staging"}),
    node("n4", **TAINT, labels={"zone": "us-west-1b", "environment": "staging"}),
]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("environment=production", "12"),
        ("environment=staging", "34"),
        ("zone in (us-east-1a, us-west-1b)", "14"),
        ("zone in (us-east-1b, us-west-1a)", "23"),
        ("", "1234"),
    ],
)
def test_a_round_looks_at_the_nodes_of_its_selector(selector: str, names: str) -> None:
    """Each of them has a pod that must go."""
    pods = [pod(f"p{place}", f"n{place}") for place in (1, 2, 3, 4)]
    body = policy(TAINTS, nodeSelector=selector)
    assert evicted([*NODES, *pods], body) == [f"p{name}" for name in names]


def test_a_taint_that_came_later_is_seen() -> None:
    """Before, nobody goes."""
    bodies = [node("n1"), node("n2"), pod("p", "n1")]
    assert evicted(bodies, policy(TAINTS)) == []
    assert evicted([node("n1", **TAINT), *bodies[1:]], policy(TAINTS)) == ["p"]


def metric(name: str, cpu: str, *pods: str) -> Body:
    """What a node's agent reports."""
    use = {"resources": {"cpu": "400m", "memory": "0"}}
    return {
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "status": {
            "updateTime": ago(10),
            "nodeMetric": {"nodeUsage": {"resources": {"cpu": cpu, "memory": "0"}}},
            "podsMetric": [{"namespace": "default", "name": pod, "podUsage": use} for pod in pods],
        },
    }


def test_a_round_by_what_is_used() -> None:
    """A node at 120 %, another at 20: two pods of 20 % fill that to half and more."""
    args = {
        "thresholds": {"cpu": 30, "pods": 30}, "targetThresholds": {"cpu": 50, "pods": 50},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    }  # fmt: skip
    pods = [f"p{place}" for place in range(5)]
    bodies = [
        *(node("n1", **TAINT), node("n2"), metric("n1", "2400m", *pods), metric("n2", "400m")),
        *(pod(name, "n1", "300m") for name in pods),
    ]
    body = policy({"LowNodeUtilization": args}, metricsProviders=[{"source": "KubernetesMetrics"}])
    assert evicted(bodies, body) == ["p0", "p1"]
