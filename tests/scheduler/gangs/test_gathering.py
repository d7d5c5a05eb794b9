"""Members of a gang are gathered in the tree of the cluster's network."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene

Body = dict[str, Any]
NETWORK = gangs.network("spine", "block")


def nodes(text: str, **more: Any) -> list[Body]:
    """Nodes of four CPUs: ``s1/b1: 2 2`` has two nodes with two CPUs free."""
    bodies = []
    for line in text.split(","):
        place, _, sizes = line.partition(":")
        spine, block = place.strip().split("/")
        for number, cpu in enumerate(sizes.split()):
            labels = {"net/spine": spine, "net/block": block}
            name = f"{spine}{block}n{number}"
            bodies.append(clusters.node(name, cpu=cpu, labels=labels, **more))
    return bodies


def members(number: int, gang: str = "g", **more: Any) -> list[Body]:
    """Members of one CPU."""
    return [gangs.labelled(f"{gang}{at}", gang, **{"cpu": "1", **more}) for at in range(number)]


def group(minimum: int, name: str = "g", **layers: str) -> Body:
    """A PodGroup that is gathered."""
    return gangs.pod_group(name, minimum, gather=gangs.gather(**layers))


def counts(places: dict[str, str]) -> dict[str, int]:
    """How many members each node has."""
    return dict(Counter(places.values()))


def test_all_members_go_to_the_smallest_place_of_the_layer_that_holds_them() -> None:
    """Best fit among blocks; within the block the node with the most slots is filled first."""
    cluster = nodes("s1/b1: 4 4 4, s1/b2: 2 3, s2/b3: 2 2")
    scene = Scene(NETWORK, *cluster, group(5, block="Must"), *members(5))
    assert counts(scene.decided()) == {"s1b2n1": 3, "s1b2n0": 2}


def test_the_candidate_is_as_deep_as_one_holds_all_members() -> None:
    """A gang that must share a spine goes into one node where one holds it."""
    cluster = nodes("s1/b1: 2 2, s2/b1: 1 3 1")
    scene = Scene(NETWORK, *cluster, group(3, spine="Must"), *members(3))
    assert counts(scene.decided()) == {"s2b1n1": 3}


def test_no_place_of_the_layer_is_large_enough() -> None:
    """Nothing is bound or held; the message lists the places with their slots, and the nodes."""
    cluster = nodes("s1/b1: 1 1 1, s2/b2: 2")
    scene = Scene(NETWORK, *cluster, group(4, spine="Must"), *members(4))
    assert set(scene.decided().values()) == {""}
    assert scene.messages["g3"] == (
        'GangGroup "d/g" gets rejected due to member Pod "d/g0" is unschedulable with reason "no'
        " candidate topology nodes can accommodate job, desiredOfferSlot: 4, topology topologyNode"
        " spine/s1: 3;topology topologyNode spine/s2: 2, 0/4 nodes are available: 4 Insufficient"
        ' cpu.", alreadyWaitForBound: 0'
    )
    assert scene.requested() == 0
    scene.put(*nodes("s1/b9: 1"))
    assert counts(scene.decided()) == {"s1b1n0": 1, "s1b1n1": 1, "s1b1n2": 1, "s1b9n0": 1}
