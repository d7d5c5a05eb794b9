"""FragmentationAware: the pod whose leaving evens out a node most, and what its target suffers."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from tests.kit.descheduling import evicted, node, play, pod, policy


def strategy(**more: Any) -> dict[str, Any]:
    """The configuration."""
    return policy({"FragmentationAware": more})


def cluster(memory_node: str = "0") -> list[dict[str, Any]]:
    """On node a CPU is scarce and memory free; on node b it may be the other way round."""
    return [
        node("a", cpu="4", memory="4Gi"), node("b", cpu="4", memory="4Gi"),
        pod("hungry", "a", cpu="2", memory="128Mi"), pod("small", "a", cpu="1", memory="512Mi"),
        pod("large", "b", cpu="100m", memory=memory_node),
    ]  # fmt: skip


def test_the_pod_that_helps_most_goes_and_the_reason_has_the_numbers() -> None:
    """One of a node in a round."""
    result = play(cluster("2Gi"), strategy())
    (move,) = (each for each in result.evicted if each.node == "a")
    assert (move.resident.pod.name, move.target) == ("hungry", "b")
    # (0.75, 0.15625) before, (0.25, 0.125) after.
    assert move.reason == "fragmentation reduction: stdBefore=0.2969 stdAfter=0.0625 gain=0.2344"


def test_a_target_that_would_suffer_more_than_the_source_gains_is_none() -> None:
    """The peer moves the pod all the same, and back in the next round."""
    bodies = [
        node("a", cpu="4", memory="4Gi"), node("b", cpu="2", memory="4Gi"),
        pod("hungry", "a", cpu="1600m", memory="64Mi"),
    ]  # fmt: skip
    assert evicted(bodies, strategy()) == []
    assert evicted(bodies, strategy(nodeFit=False)) == ["hungry"]


def test_a_balanced_node_and_a_small_gain_are_left_alone() -> None:
    """Thresholds of 0.15 and 0.02 where nothing else is said."""
    even = [
        node("a", cpu="4", memory="4Gi"), node("b", cpu="4", memory="4Gi"),
        pod("p", "a", cpu="1", memory="1Gi"),
    ]  # fmt: skip
    result = play(even, strategy())
    assert [note[2] for note in result.notes] == ["no node has an imbalance above 0.15"]
    assert evicted(cluster("2Gi"), strategy(minImprovementThreshold=0.5)) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [({"resources": ["cpu"]}, "always balanced"), ({"imbalanceThreshold": 15}, "from 0 to 1")],
)
def test_a_configuration_that_cannot_be_meant_is_refused(more: dict[str, Any], words: str) -> None:
    """With the path of what is wrong."""
    with pytest.raises(errors.ConfigError, match=words):
        play([], strategy(**more))
