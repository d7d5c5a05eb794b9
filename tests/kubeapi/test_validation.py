"""What an API server would refuse is named by its path; what it takes is not."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import validation
from tests.kit import clusters

Body = dict[str, Any]
NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"


def _ports(*ports: Body, **spec: Any) -> Body:
    """A pod with a container of its own for each port."""
    containers = [{"name": f"c{place}", "ports": [port]} for place, port in enumerate(ports)]
    return {"containers": containers, **spec}


def _node_term(**wanted: Any) -> Body:
    term = {"matchExpressions": [wanted]}
    return {"affinity": {"nodeAffinity": {NEEDS: {"nodeSelectorTerms": [term]}}}}


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b"}]},
        {"tolerations": [{"key": "a", "operator": "Gt", "value": "5", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "a", "operator": "Lt", "value": "0", "effect": "NoExecute"}]},
        _ports({"containerPort": 80, "hostPort": 80}, {"containerPort": 80, "hostPort": 81}),
        _ports(
            {"containerPort": 80, "hostPort": 80},
            {"containerPort": 80, "hostPort": 80, "protocol": "UDP"},
        ),
        {"preemptionPolicy": "Never"},
        _node_term(key="zone", operator="NotIn", values=["a"]),
        {"topologySpreadConstraints": [clusters.spread("zone", minDomains=2)]},
        {"affinity": clusters.affinity("podAffinity", "zone")},
        {"tolerations": 5, "affinity": "x", "containers": [None]},
    ],
)
def test_what_an_api_server_takes_has_no_faults(spec: Body) -> None:
    """Fields of another shape are named by who decodes them."""
    assert validation.faults({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}) == []


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"tolerations": [{"operator": "Exist"}]}, "spec.tolerations[0].operator: 'Exist' is none"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "must be empty"),
        *(
            (
                {
                    "tolerations": [
                        {"key": "a", "operator": "Lt", "effect": "NoExecute", "value": v}
                    ]
                },
                f"spec.tolerations[0].value: {v!r} is no integer",
            )
            for v in ("", "x", "05", "1.5", "1_0", str(1 << 63), "9" * 63)
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]},
            "spec.tolerations[0].effect: must be set with operator Gt",
        ),
        ({"tolerations": [{"value": "b"}]}, "must be Exists where there is no key"),
        ({"tolerations": [{"key": "a/b/c"}]}, "spec.tolerations[0]: the prefix of 'a/b/c'"),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, ".effect: 'Never' is none of"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "must be NoExecute"),
        (_ports({"containerPort": 0}), "spec.containers[0].ports[0].containerPort: 0 is not"),
        (_ports({"containerPort": 80, "hostPort": 70_000}), ".hostPort: 70000 is not from 1"),
        (_ports({"containerPort": 80, "hostPort": True}), ".hostPort: True is not from 1"),
        (_ports({"containerPort": 80, "protocol": "IP"}), ".protocol: 'IP' is none of TCP"),
        (
            _ports({"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}),
            "spec.containers[1].ports[0].hostPort: 80 is taken twice",
        ),
        (_ports({"containerPort": 80, "hostPort": 81}, hostNetwork=True), "must be the container"),
        ({"preemptionPolicy": "Maybe"}, "spec.preemptionPolicy: 'Maybe' is none of"),
        ({"nodeSelector": {"a": "b c"}}, "spec.nodeSelector: 'b c' is not a value"),
        (_node_term(key="zone", operator="NotIn", values=["!"]), "[0]: '!' is not a value"),
        (_node_term(key="zone", operator="Like"), "[0].operator: 'Like' is none of In"),
        (_node_term(key="zone", operator="Exists", values=["a"]), "1 values with operator Exists"),
        ({"affinity": {"nodeAffinity": {NEEDS: {}}}}, "needs at least one term"),
        ({"affinity": clusters.affinity("podAffinity", "")}, "podAffinity.requiredDuring"),
        (
            {"affinity": clusters.affinity("podAntiAffinity", "zone", app="-", weight=1)},
            "podAffinityTerm.labelSelector: not a requirement of a label selector: '-'",
        ),
        (
            {"topologySpreadConstraints": [clusters.spread("z", "ScheduleAnyway", minDomains=2)]},
            "spec.topologySpreadConstraints[0].minDomains: only with",
        ),
    ],
)
def test_each_fault_of_a_pod_is_named_by_its_path(spec: Body, fault: str) -> None:
    """One sentence for each, which says what would be right."""
    [problem] = validation.faults({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec})

    assert fault in problem


def test_other_kinds_have_their_own_rules() -> None:
    """Labels and annotations, taints of nodes, policies of classes; a stored object has passed."""
    taints = [{"key": "k", "effect": "Perhaps"}]
    bodies: list[Body] = [
        {"kind": "Service", "metadata": {"labels": {"-": "x"}}},
        {"kind": "Service", "metadata": {"annotations": {"a b": "x", "A.b/C": "any thing"}}},
        {"kind": "Service", "metadata": {"annotations": {"a": "é" * (128 << 10)}}},
        {"kind": "Node", "metadata": {}, "spec": {"taints": taints}},
        {"kind": "PriorityClass", "metadata": {}, "preemptionPolicy": "Perhaps"},
    ]

    assert [len(validation.faults(body)) for body in bodies] == [1] * 5
    taken = [{**body, "metadata": {**body["metadata"], "uid": "u"}} for body in bodies]
    assert [validation.faults(body) for body in taken] == [[]] * 5
