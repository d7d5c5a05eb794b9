"""The state of a cluster from objects in a file."""

from __future__ import annotations

from koordlet.scheduler.descheduling import dump
from tests.kit import descheduling
from tests.kit.descheduling import node, pod


def test_a_dump_has_living_and_ended_pods_owners_and_what_describes_them() -> None:
    """Pods that have ended hold no room and are still there; unreadable ones are named."""
    broken = pod("broken", "n1", status={"phase": "Failed"})
    broken["spec"]["containers"] = "none"
    state, warnings = dump.state(
        [
            *(node("n1"), node("n2", ready=False), pod("p", "n1", cpu="1")),
            *(pod("over", "n1", status={"phase": "Failed"}), broken),
            {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7},
            {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "c", "namespace": "d"},
                "spec": {"storageClassName": "gold"},
            },
            {
                "kind": "ReplicaSet",
                "metadata": {"name": "rs", "namespace": "default"},
                "spec": {"replicas": 4, "selector": {"matchLabels": {"a": "b"}}},
            },
        ],
        descheduling.NOW,
    )
    assert state.rows() == [0]
    assert [each.pod.name for each in state.residents(0)] == ["p"]
    assert [each.pod.name for each in state.residents(0, ended=True)] == ["p", "over"]
    assert state.columns.requested[0, 0] == 1000
    assert state.priorities == {"high": 7}
    assert state.claim_classes == {"d/c": "gold"}
    signature = state.workloads.signature(state.residents(0)[0].pod.pod_class)
    assert signature is not None
    assert state.workloads.expected(state.workloads.members(signature)) == 4
    assert any("broken" in warning for warning in warnings)


def test_what_cannot_be_read_costs_itself_alone() -> None:
    """A class or a claim that is nonsense beside a pod that is none."""
    bad = (
        {"kind": "PriorityClass", "metadata": {"name": "odd"}, "value": "much"},
        {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": "large"},
    )
    state, warnings = dump.state([node("n1"), pod("p", "n1"), *bad], descheduling.NOW)
    assert [each.pod.name for each in state.residents(0)] == ["p"]
    assert (state.priorities, state.claim_classes) == ({}, {})
    assert warnings == (
        "PriorityClass odd is ignored: value is not an integer: 'much'",
        "PersistentVolumeClaim c is ignored: spec is not an object: 'large'",
    )
