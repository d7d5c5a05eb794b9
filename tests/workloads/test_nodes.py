"""A Node is names, amounts and conditions."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from koordlet.kubeapi import node_annotations
from koordlet.model import snapshot
from koordlet.workloads import nodes
from tests.kit import pods

OBJECT: dict[str, Any] = {
    "metadata": {"name": "n1", "labels": {"a": "b"}, "annotations": {"c": "d", "e": 1}},
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "kubernetes.io/batch-cpu": "1500"},
        "allocatable": {"cpu": "3500m", "memory": "many"},
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "MemoryPressure"}],
    },
}


def test_what_it_says() -> None:
    """What does not fit is left out and said."""
    node = nodes.decode(OBJECT)

    assert (node.name, node.labels, node.annotations) == ("n1", {"a": "b"}, {"c": "d", "e": "1"})
    assert node.capacity == {"cpu": 4000, "memory": 8 << 30, "kubernetes.io/batch-cpu": 1500}
    assert node.allocatable == {"cpu": 3500}
    assert node.conditions == {"Ready": True, "MemoryPressure": False}
    assert len(node.problems) == 2


def test_what_was_amplified() -> None:
    """The peer's manager keeps what was allocatable before; what is no list of amounts is said."""
    name = node_annotations.RAW_ALLOCATABLE

    def decode(text: str) -> snapshot.NodeInfo:
        return nodes.decode({"metadata": {"annotations": {name: text}}})

    assert decode('{"cpu":"4","memory":"8Gi"}').raw_allocatable == {"cpu": 4000, "memory": 8 << 30}
    assert (
        (node := decode('{"cpu":"4","memory":"x"}')).raw_allocatable,
        len(node.problems),
    ) == ({"cpu": 4000}, 1)
    assert ((node := decode("{")).raw_allocatable, len(node.problems)) == ({}, 1)
    assert nodes.decode(OBJECT).raw_allocatable == {}


@given(body=pods.broken(OBJECT))
def test_no_object_raises(body: Any) -> None:
    """However it is broken."""
    assert isinstance(nodes.decode(body).name, str)
