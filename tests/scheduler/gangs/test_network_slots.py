"""How many members fit on each node, and why no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from koordlet.scheduler.gangs.network_slots import NodeSlots
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": clusters.HOST, "labelSelector": {"matchLabels": {"apart": "yes"}}}
        ]
    }
}
PORT = {"container": {"ports": [{"hostPort": 80, "containerPort": 80}]}}


def slots(scene: Scene, number: int, *others: dict[str, Any], **more: Any) -> NodeSlots:
    """The slots of all nodes for so many equal members, and others after them."""
    bodies = [gangs.labelled(f"g{at}", "g", **{"cpu": "1", **more}) for at in range(number)]
    pods = [scene.core.decoder.decode(body, at) for at, body in enumerate((*bodies, *others))]
    rows = np.arange(scene.core.pod_cache.columns.size)
    return NodeSlots(scene.core, pods, rows)


def test_slots_are_the_members_that_fit_one_after_another() -> None:
    """By processors, by pods, by what is taken already; never more than there are members."""
    cluster = [
        clusters.node("a", cpu="3500m"),
        clusters.node("b", cpu="9", allocatable={"pods": "2"}),
        clusters.node("c", cpu="4"),
        clusters.node("d", cpu="9"),
        clusters.node("e", cpu="9", labels={"no": "yes"}, taints=[]),
    ]
    scene = Scene(*cluster, clusters.pod("x", on="c", cpu="3500m"))
    slot_counts = slots(scene, 5)
    assert slot_counts.counts.tolist() == [3, 2, 0, 5, 5]
    message, by = slot_counts.shortage()
    assert message == "0/5 nodes are available: 1 Too many pods, 2 Insufficient cpu."
    assert by == {"NodeResourcesFit"}
    assert (slot_counts.scores > 0).tolist() == [True, True, False, True, True]


def test_a_node_that_lacks_what_members_do_not_ask_is_no_obstacle() -> None:
    """Its amounts were lowered below what its pods have; the member asks for nothing of it."""
    scene = Scene(clusters.node("a", cpu="4"), clusters.pod("x", on="a", cpu="3"))
    scene.put(clusters.node("a", cpu="1"))
    assert slots(scene, 2, cpu="0").counts.tolist() == [2]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (PORT, "didn't have free ports for the requested pod ports"),
        ({"affinity": APART, "labels": {"apart": "yes"}}, "didn't match pod anti-affinity rules"),
    ],
)
def test_where_more_than_amounts_decides_members_are_placed_and_taken_away_again(
    more: dict[str, Any], reason: str
) -> None:
    """A port of the node and a member that keeps away from its siblings: one each."""
    scene = Scene(clusters.node("a", cpu="8"), clusters.node("b", cpu="0"))
    slot_counts = slots(scene, 3, **more)
    assert slot_counts.counts.tolist() == [1, 0]
    assert scene.requested() == 0
    assert not scene.core.pod_cache.assumed
    assert reason in slot_counts.shortage()[0]
    assert "NodeResourcesFit" in slot_counts.shortage()[1]


def test_room_that_is_promised_to_others_before_them_is_none() -> None:
    """A nominated pod of the same or a higher priority keeps its place, a lower one does not."""
    for priority, expected in ((5, [1, 4]), (0, [4, 4])):
        scene = Scene(clusters.node("a"), clusters.node("b"))
        other = gangs.decoded(clusters.pod("o", cpu="3", priority=priority, meta={"uid": "o"}))
        scene.core.nominated.put(other, "a")
        assert slots(scene, 4, priority=3).counts.tolist() == expected


def test_of_members_of_several_classes_no_more_fit_than_the_smallest() -> None:
    """A node that refuses a class has no slot for its members, and says so."""
    scene = Scene(clusters.node("a", cpu="4"), clusters.node("b", cpu="4", labels={"zone": "z"}))
    large = gangs.labelled("large", "g", cpu="3", nodeSelector={"zone": "z"})
    slot_counts = slots(scene, 4, large)
    assert slot_counts.counts.tolist() == [4, 4]
    message, by = slot_counts.shortage()
    assert "1 Insufficient cpu" in message
    assert "1 node(s) didn't match Pod's node affinity/selector" in message
    assert by == {"NodeResourcesFit", "NodeAffinity"}
