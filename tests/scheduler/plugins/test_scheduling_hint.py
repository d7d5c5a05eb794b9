"""SchedulingHint: nodes named by the pod are the only ones, or are tried before all others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit import clusters

Body = dict[str, Any]
KEY = "scheduling.koordinator.sh/scheduling-hint"
#: The emptier a node, the more points it has.
NODES = (clusters.node("a", cpu="4"), clusters.node("b", cpu="8"), clusters.node("c", cpu="16"))


def hinted(key: str = KEY, **hint: object) -> Body:
    """A pod with a hint."""
    return clusters.pod("p", cpu="2", meta={"annotations": {key: json.dumps(hint)}})


def test_without_a_hint_the_scores_decide() -> None:
    """Also with one that names nobody."""
    assert clusters.places(*NODES, clusters.pod("p", cpu="2")) == {"p": "c"}
    assert clusters.places(*NODES, hinted(nodeNames=[], preferredNodeNames=None)) == {"p": "c"}


@pytest.mark.parametrize("key", [KEY, f"internal.{KEY}"])
def test_named_nodes_are_the_only_ones(key: str) -> None:
    """Among them the scores decide."""
    assert clusters.places(*NODES, hinted(key, nodeNames=["a", "b", "gone"])) == {"p": "b"}


def test_newer_spelling_of_the_key_counts_alone() -> None:
    """Who writes it knows better than who wrote the older one."""
    asked = hinted(nodeNames=["a"])
    asked["metadata"]["annotations"][f"internal.{KEY}"] = '{"nodeNames": ["b"]}'
    assert clusters.places(*NODES, asked) == {"p": "b"}


def test_other_nodes_are_refused_in_the_words_of_the_framework() -> None:
    """Whoever reads the event learns which plugin narrowed the choice."""
    full = clusters.pod("full", on="a", cpu="3")
    message = clusters.message("p", *NODES, full, hinted(nodeNames=["a"]))
    assert "1 Insufficient cpu" in message
    assert "2 node(s) didn't satisfy plugin(s) [SchedulingHint]" in message


@pytest.mark.parametrize(
    ("preferred", "node"),
    [
        (["a", "b"], "a"),
        (["b", "a"], "b"),
        (["gone", "full", "b"], "b"),
        (["gone", "full"], "c"),
        ([f"gone-{at}" for at in range(99)] + ["a"], "a"),
        ([f"gone-{at}" for at in range(100)] + ["a"], "c"),
    ],
)
def test_preferred_nodes_are_tried_in_their_order_whatever_the_scores_say(
    preferred: list[str], node: str
) -> None:
    """The first that takes the pod; where none of a hundred does, the scores decide."""
    there = (*NODES, clusters.node("full", cpu="1"))
    assert clusters.places(*there, hinted(preferredNodeNames=preferred)) == {"p": node}


def test_preferred_node_outside_of_the_named_ones_is_none() -> None:
    """The hard list bounds the soft one."""
    assert clusters.places(*NODES, hinted(nodeNames=["b", "c"], preferredNodeNames=["a", "b"])) == {
        "p": "b"
    }


@pytest.mark.parametrize("hint", ["{nonsense", "[]", '{"nodeNames": "a"}'])
def test_hint_that_cannot_be_read_refuses_its_pod(hint: str) -> None:
    """It may be a hard one; the message names the annotation."""
    asked = clusters.pod("p", meta={"annotations": {KEY: hint}})
    message = clusters.message("p", *NODES, asked)
    assert "a scheduling hint cannot be read" in message
    assert clusters.places(*NODES, asked, clusters.pod("q", cpu="1")) == {"q": "c"}


def test_profile_without_the_plugin_passes_the_hint_over() -> None:
    """As the peer does."""
    off = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "SchedulingHint"}]}}}],
    }
    assert clusters.places(*NODES, hinted(nodeNames=["a"]), config=off) == {"p": "c"}


@pytest.mark.parametrize(("most", "node"), [(1, "c"), (2, "a")])
def test_the_configuration_says_how_many_preferred_nodes_are_tried(most: int, node: str) -> None:
    """What comes later is not tried."""
    plugin = {"name": "SchedulingHint", "args": {"maxHintNodes": most}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [plugin]}],
    }
    asked = hinted(preferredNodeNames=["gone", "a"])
    assert clusters.places(*NODES, asked, config=config) == {"p": node}
