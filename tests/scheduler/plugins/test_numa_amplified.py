"""Nodes whose CPUs count more than once, in the peer's edge cases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit import clusters, reservations
from tests.kit.clusters import pod
from tests.kit.numa import bound, topology

Body = dict[str, Any]


def doubled(ratio: str = json.dumps({"cpu": 2.0})) -> list[Body]:
    """Eight CPUs that count as sixteen."""
    machine = clusters.node("n", cpu="16", allocatable={"memory": "32Gi"})
    notes = {"node.koordinator.sh/resource-amplification-ratio": ratio}
    machine["metadata"]["annotations"] = notes
    return [machine, topology("n")]


@pytest.mark.parametrize(
    ("there", "cpu", "refused"),
    [
        ([], "16", False),
        ([pod("x", cpu="8")], "8", False),
        ([bound("x", "4")], "8", False),
        ([bound("x", "4")], "9", True),
    ],
)
def test_bound_cpus_leave_less_to_pods_that_count_once(
    there: list[Body], cpu: str, refused: bool
) -> None:
    """Four CPUs of a bound pod are eight of the sixteen."""
    bodies = (*doubled(), *there, pod("y", cpu=cpu))
    assert ("y" not in clusters.places(*bodies)) == refused
    if refused:
        assert "1 Insufficient amplified cpu" in clusters.message("y", *bodies)


def test_a_ratio_that_cannot_be_read_refuses_all_who_ask_for_cpu() -> None:
    """Nobody knows how much is left."""
    bodies = doubled("{cpu}")
    refusal = clusters.message("y", *bodies, pod("y", cpu="1"))
    assert "1 node(s) invalid CPU amplification ratio" in refusal
    assert clusters.places(*bodies, pod("z", memory="1Gi")) == {"z": "n"}


def test_an_owner_has_the_room_of_its_reservation() -> None:
    """Bound CPUs and the reservation fill the node; its owner draws on it, nobody else may."""
    held = reservations.reservation("r", cpu="8", on="n")
    bodies = (*doubled(), held, bound("x", "4"))
    owner = pod("y", cpu="8", labels={"app": "web"})
    assert reservations.drew(*bodies, owner)["y"] == ("n", "r")
    assert "y" not in clusters.places(*bodies, pod("y", cpu="1"))
