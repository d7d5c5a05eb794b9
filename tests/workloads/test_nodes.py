"""A Node is names, amounts and conditions."""

from __future__ import annotations

from typing import Any

from hypothesis import given

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
    found = nodes.decode(OBJECT)

    assert ("n1", {"a": "b"}, {"c": "d"}) == (found.name, found.labels, found.annotations)
    assert {"cpu": 4000, "memory": 8 << 30, "kubernetes.io/batch-cpu": 1500} == found.capacity
    assert {"cpu": 3500} == found.allocatable
    assert {"Ready": True, "MemoryPressure": False} == found.conditions
    assert 2 == len(found.problems)


def test_what_was_amplified() -> None:
    """The peer's manager keeps what was allocatable before; what is no list of amounts is said."""
    name = nodes.RAW_ALLOCATABLE

    def said(text: str) -> snapshot.NodeInfo:
        return nodes.decode({"metadata": {"annotations": {name: text}}})

    assert {"cpu": 4000, "memory": 8 << 30} == said('{"cpu":"4","memory":"8Gi"}').raw_allocatable
    assert ({"cpu": 4000}, 1) == (
        (found := said('{"cpu":"4","memory":"x"}')).raw_allocatable,
        len(found.problems),
    )
    assert ({}, 1) == ((found := said("{")).raw_allocatable, len(found.problems))
    assert {} == nodes.decode(OBJECT).raw_allocatable


@given(body=pods.broken(OBJECT))
def test_no_object_raises(body: Any) -> None:
    """However it is broken."""
    assert isinstance(nodes.decode(body).name, str)
