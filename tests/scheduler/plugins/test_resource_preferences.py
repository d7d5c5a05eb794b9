"""NodeResourcesFitPlus and ScarceResourceAvoidance: points by hand, on small nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from koordlet.scheduler import framework
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import resource_preferences
from tests.kit import clusters

GPU = "example.com/gpu"
Body = dict[str, Any]
NODES = (
    clusters.node("empty", cpu="10"),
    clusters.node("used", cpu="10", allocatable={GPU: "4"}),
    clusters.pod("a", on="used", cpu="4", requests={GPU: "1"}),
)


def points(plugin: framework.Plugin, **asked: Any) -> list[int]:
    """The points of both nodes for a pod."""
    loaded = inventory.load([*NODES, clusters.pod("p", **asked)])
    score = plugin.score(loaded.pending[0].pod_class, loaded.columns)
    assert score is not None
    several = score.raw(np.arange(2))
    assert several.tolist() == [score.one(row) for row in range(2)]
    return [int(each) for each in several]


def fit_plus(**resources: tuple[str, int]) -> framework.Plugin:
    """With a kind and a weight for each resource."""
    named = {"gpu": GPU}
    args = {
        named.get(name, name): {"type": f"{kind}Allocated", "weight": weight}
        for name, (kind, weight) in resources.items()
    }
    return resource_preferences.NodeResourcesFitPlus({"resources": args})


@pytest.mark.parametrize(
    ("resources", "asked", "wanted"),
    [
        ({"cpu": ("Most", 1)}, {"cpu": "2"}, [20, 60]),
        ({"cpu": ("Least", 1)}, {"cpu": "2"}, [80, 40]),
        # More than there is: full, or nothing left; no such resource there: nothing.
        ({"cpu": ("Most", 1)}, {"cpu": "11"}, [100, 100]),
        ({"cpu": ("Least", 1)}, {"cpu": "11"}, [0, 0]),
        ({"gpu": ("Most", 1)}, {"requests": {GPU: "1"}}, [0, 50]),
        # Weighted, and cut: (80 + 2 * 0) // 3, (40 + 2 * 50) // 3.
        ({"cpu": ("Least", 1), "gpu": ("Most", 2)}, {"cpu": "2", "requests": {GPU: "1"}}, [26, 46]),
        # What the pod does not ask for has no say; without any, all nodes are alike.
        ({"cpu": ("Least", 1), "gpu": ("Most", 9)}, {"cpu": "2"}, [80, 40]),
        ({"gpu": ("Most", 1)}, {"cpu": "2"}, [100, 100]),
    ],
)
def test_each_resource_has_its_own_kind_and_weight(
    resources: Any, asked: Any, wanted: list[int]
) -> None:
    """With the pod added."""
    assert points(fit_plus(**resources), **asked) == wanted


@pytest.mark.parametrize(
    ("scarce", "asked", "wanted"),
    [
        # empty: nothing scarce; used: memory and the GPU are unasked, one of two is scarce.
        ([GPU], {"cpu": "1"}, [100, 50]),
        ([GPU], {"cpu": "1", "memory": "1Gi"}, [100, 0]),
        ([GPU], {"cpu": "1", "requests": {GPU: "1"}}, [100, 100]),
        ([], {"cpu": "1"}, [100, 100]),
    ],
)
def test_nodes_with_scarce_resources_are_kept_for_those_who_ask(
    scarce: list[str], asked: Any, wanted: list[int]
) -> None:
    """The share of what the pod does not ask for that is not scarce."""
    plugin = resource_preferences.ScarceResourceAvoidance({"resources": scarce})
    assert points(plugin, **asked) == wanted


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"cpu": 1}, "resources.cpu: an object of type and weight is needed"),
        ({"cpu": {"type": "Some"}}, "resources.cpu.type: 'Some' is none of"),
        ({"cpu": {"type": "MostAllocated", "weight": 0}}, "resources.cpu.weight: 0 is not from"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(resources: Any, words: str) -> None:
    """With the resource."""
    with pytest.raises(BadObjectError, match=words):
        resource_preferences.NodeResourcesFitPlus({"resources": resources})
