"""Sums refuse nothing that could fit."""

from __future__ import annotations

from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene


def test_the_gap_names_each_resource_that_is_short_and_the_member_that_is_left_out() -> None:
    """Of three members the third has no CPU left anywhere, whatever the nodes."""
    pods = [gangs.member(f"g{place}", "g", 3, cpu="3", memory="1Gi") for place in range(3)]
    scene = Scene(clusters.node("a"), clusters.node("b"), *pods)
    scene.decided()
    assert 'member Pod "d/g2"' in scene.messages["g0"]
    assert "resource gap: {cpu: 1000m}" in scene.messages["g0"]


def test_the_sums_count_the_smallest_members_that_suffice() -> None:
    """Two of three are needed, and the two small ones fit: the large one does not matter."""
    sizes = ("9", "2", "2")
    pods = [gangs.member(f"g{place}", "g", 2, cpu=size) for place, size in enumerate(sizes)]
    scene = Scene(clusters.node("a"), *pods)
    assert {name for name, node in scene.decided().items() if node} == {"g1", "g2"}


def test_an_overcommitted_node_takes_nothing_from_the_others() -> None:
    """What a node lacks is no gap of its neighbours."""
    pods = [gangs.member(f"g{place}", "g", 2, cpu="2") for place in range(2)]
    scene = Scene(clusters.node("a"), clusters.node("b"))
    scene.put(clusters.pod("huge", on="a", cpu="100", meta={"uid": "huge"}), *pods)
    assert set(scene.decided().values()) == {"b"}
