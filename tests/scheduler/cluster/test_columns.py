"""The columns themselves: more kinds of resources than there is room for at first."""

from __future__ import annotations

from tests.kit import clusters
from tests.kit.clusters import node, pod


def test_a_node_may_bring_any_number_of_resources() -> None:
    """The table of amounts grows while a node is entered, and every amount is in it."""
    room = {f"example.com/r{number}": str(number + 1) for number in range(20)}
    bodies = (node("n", allocatable=room),)

    for number in (0, 4, 5, 12, 19):
        name = f"example.com/r{number}"
        assert clusters.places(*bodies, pod("p", requests={name: str(number + 1)})) == {"p": "n"}
        message = clusters.message("p", *bodies, pod("p", requests={name: str(number + 2)}))
        assert message == f"0/1 nodes are available: 1 Insufficient {name}."
