"""What would let a gang run that waits."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import simulation
from tests.kit import clusters, gangs
from tests.kit.clusters import node

Body = dict[str, Any]
GPU = "example.com/gpu"


def explained(name: str, *bodies: Body) -> Body:
    """What a simulation says of one gang."""
    result = simulation.Simulation(inventory.load(bodies), explain=name).run()
    assert result.explanation is not None
    return result.explanation


def members(count: int, minimum: int, **more: Any) -> list[Body]:
    """Pods of a gang without an object."""
    return [gangs.member(f"m{number}", "g", minimum, **more) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "remedy"),
    [
        (3, "with 1 more node like n"),
        (6, "with 2 more nodes like n"),
        (64, "with at most 33 more nodes like n"),
    ],
)
def test_a_gang_without_room_names_how_many_nodes_it_lacks(count: int, remedy: str) -> None:
    """Two members fit on each node; beyond sixteen nodes the number is an upper bound."""
    gang = explained("d/g", node("n", cpu="4"), *members(count, count, cpu="2"))

    assert gang["remedy"] == remedy
    assert gang["placed"] == 0
    assert len(gang["members"]) == count


def test_other_pods_that_wait_do_not_take_the_room_that_is_added() -> None:
    """A more important pod, and another gang, are as large as a node."""
    others = [clusters.pod("large", cpu="4", priority=10, meta={"uid": "large"})]
    others += [gangs.member(f"o{number}", "other", 2, cpu="4") for number in range(2)]
    gang = explained("d/g", node("n", cpu="4"), *others, *members(2, 2, cpu="3"))

    assert gang["remedy"] == "with 2 more nodes like n"


def test_the_kind_of_node_that_helps_is_named_though_others_are_more_frequent() -> None:
    """Nodes without devices do not help; of those with devices one is named."""
    several = [node(f"n{number}") for number in range(3)]
    several.append(node("fast", allocatable={GPU: "1"}))
    gang = explained("d/g", *several, *members(2, 2, requests={GPU: "1"}))

    assert gang["remedy"] == "with 1 more node like fast"


def test_a_gang_that_no_node_would_take_says_that_more_of_them_do_not_help() -> None:
    """Its nodes are tried, one for each member."""
    several = members(2, 2, nodeSelector={"zone": "nowhere"})
    gang = explained("d/g", node("n"), *several)

    assert gang["remedy"] == "not with 2 more nodes like n"
    assert "didn't match" in gang["message"]


@pytest.mark.parametrize(
    ("bodies", "remedy"),
    [
        (members(1, 3), "with 2 more pods of d/g"),
        ([gangs.member("m", "g")], "with a minimum of d/g that can be read"),
        ([gangs.labelled("m", "g")], "with a PodGroup d/g, or pods that configure it"),
    ],
)
def test_a_gang_that_lacks_pods_or_an_object_needs_those_and_no_node(
    bodies: list[Body], remedy: str
) -> None:
    """Whatever the nodes have."""
    assert explained("d/g", node("n", cpu="1"), *bodies)["remedy"] == remedy


def test_a_gang_that_runs_needs_nothing() -> None:
    """And what is neither a pod nor a gang is not explained."""
    bodies = (node("n", cpu="4"), *members(2, 2, cpu="1"))
    assert explained("d/g", *bodies)["remedy"] is None
    assert simulation.Simulation(inventory.load(bodies), explain="d/x").run().explanation is None
