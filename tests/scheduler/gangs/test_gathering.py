"""Members of a gang are gathered in the tree of the cluster's network."""

from __future__ import annotations

from collections import Counter
from typing import Any

from koordlet.kubeapi import pod_groups
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


def test_a_layer_is_preferred_and_nothing_is_refused() -> None:
    """Where no block holds all, the cluster does; a multiple says how many go together."""
    cluster = nodes("s1/b1: 3 3, s2/b2: 2")
    scene = Scene(NETWORK, *cluster, group(8, block="Prefer"), *members(8))
    assert counts(scene.decided()) == {"s1b1n0": 3, "s1b1n1": 3, "s2b2n0": 2}
    pairs = group(4, NodeTopologyLayer="Prefer*2")
    scene = Scene(NETWORK, *cluster, pairs, *members(4))
    assert counts(scene.decided()) == {"s1b1n0": 2, "s1b1n1": 2}
    few = group(8, block="Prefer*4")
    scene = Scene(NETWORK, *cluster, few, *members(8))
    assert set(scene.decided().values()) == {""}
    assert scene.messages["g0"].count("; podCountMultiple constraints: block=4") == 1
    assert "ClusterTopologyLayer/: 4" in scene.messages["g0"]


def test_more_members_than_the_minimum_go_as_far_as_one_place_holds_them() -> None:
    """All where they fit, else as many as the largest place has; the others hear why."""
    cluster = nodes("s1/b1: 2 1, s2/b2: 2 2")
    scene = Scene(NETWORK, *cluster, group(3, block="Must"), *members(5))
    places = scene.decided()
    assert {name: node for name, node in places.items() if node} == {
        "g0": "s2b2n0",
        "g1": "s2b2n0",
        "g2": "s2b2n1",
        "g3": "s2b2n1",
    }
    # Tried once more, alone: its siblings say which block it is.
    assert "desiredOfferSlot: 1, topology topologyNode block/b2: 0, 0/4" in scene.messages["g4"]
    scene = Scene(NETWORK, *cluster, group(5, block="Must"), *members(6))
    assert set(scene.decided().values()) == {""}


def test_the_minimum_of_each_gang_goes_first_where_not_all_fit() -> None:
    """Two gangs that are gathered together: the extra member of the first has no place."""
    both = {"groups": ["d/a", "d/b"], "gather": gangs.gather(block="Must")}
    pair = [gangs.pod_group("a", 1, **both), gangs.pod_group("b", 2, **both)]
    pods = [*members(3, "a", priority=5), *members(2, "b")]
    scene = Scene(NETWORK, *nodes("s1/b1: 2 2"), *pair, *pods)
    places = scene.decided()
    assert sorted(name for name, node in places.items() if node) == ["a0", "a1", "b0", "b1"]


def test_gangs_of_a_group_that_ask_for_different_things_are_gathered_apart() -> None:
    """Each has its place, what asks for nothing takes what is left, and none is bound alone."""
    names = {"groups": ["d/a", "d/b", "d/c"]}
    groups = [
        gangs.pod_group("a", 2, **names, gather=gangs.gather(block="Must")),
        gangs.pod_group("b", 2, **names, gather=gangs.gather(NodeTopologyLayer="Must")),
        gangs.pod_group("c", 1, **names),
    ]
    pods = [*members(2, "a"), *members(2, "b"), *members(1, "c", priority=9)]
    scene = Scene(NETWORK, *nodes("s1/b1: 1 1, s2/b2: 2 1"), *groups, *pods)
    places = scene.decided()
    assert {places[name] for name in ("a0", "a1")} == {"s1b1n0", "s1b1n1"}
    assert [places[name] for name in ("b0", "b1", "c0")] == ["s2b2n0", "s2b2n0", "s2b2n1"]
    scene = Scene(NETWORK, *nodes("s1/b1: 1 1, s2/b2: 1 1 1"), *groups, *pods)
    assert set(scene.decided().values()) == {""}
    assert scene.requested() == 0


def test_bound_members_say_which_place_of_the_layer_it_is() -> None:
    """Later members join them, the nearest node first, though another block is a better fit."""
    cluster = nodes("s1/b1: 4 4, s1/b2: 1")
    there = gangs.labelled("there", "g", on="s1b1n1", cpu="1")
    scene = Scene(NETWORK, *cluster, group(1, block="Must"), there, *members(1))
    assert scene.decided() == {"g0": "s1b1n1"}
    other = gangs.labelled("other", "g", on="s1b2n0", cpu="1")
    scene = Scene(NETWORK, *cluster, group(1, block="Must"), there, other, *members(1))
    assert scene.decided() == {"g0": ""}
    words = "more than 1 domain found for pod group: block/b1, block/b2"
    assert words in scene.messages["g0"]
    outside = clusters.node("x")
    stray = gangs.labelled("stray", "g", on="x", cpu="1")
    scene = Scene(NETWORK, *cluster, outside, group(1, block="Must"), stray, *members(1))
    assert scene.decided() == {"g0": ""}
    assert "no topology domain found for pod d/stray" in scene.messages["g0"]
    scene = Scene(NETWORK, *cluster, outside, group(1, block="Prefer"), stray, *members(1))
    assert scene.decided() == {"g0": "s1b2n0"}


def test_members_with_an_equal_selector_attract_each_other_across_gangs() -> None:
    """The other job's block comes before the better fit; another text attracts nobody."""
    for text, node in (("job", "s1b1n0"), ("else", "s2b2n0")):
        notes = {pod_groups.TOPOLOGY_SELECTOR: text}
        near = gangs.member(
            "near", "h", 1, on="s1b1n0", notes={pod_groups.TOPOLOGY_SELECTOR: "job"}
        )
        pods = [
            {**pod, "metadata": {**pod["metadata"], "annotations": notes}} for pod in members(2)
        ]
        scene = Scene(NETWORK, *nodes("s1/b1: 4 4, s2/b2: 2"), near, group(2, block="Must"), *pods)
        assert counts(scene.decided()) == {node: 2}


def test_members_fill_nodes_in_the_order_of_their_index() -> None:
    """Neighbours by rank are neighbours in the network, whatever their names."""
    ranks = {"c": 0, "a": 1, "d": 2, "b": 3}
    pods = []
    for name, index in ranks.items():
        pod = gangs.labelled(name, "g", cpu="1")
        pod["metadata"]["annotations"] = {pod_groups.TOPOLOGY_INDEX: str(index)}
        pods.append(pod)
    scene = Scene(NETWORK, *nodes("s1/b1: 2 1 1"), group(4, block="Must"), *pods)
    assert scene.decided() == {"c": "s1b1n0", "a": "s1b1n0", "d": "s1b1n1", "b": "s1b1n2"}


def test_a_candidate_in_which_a_member_does_not_fit_after_all_is_given_up_for_the_next() -> None:
    """A launcher and workers: the smallest block has the slots of the first, not of the others."""
    pods = [*members(1, cpu="1", priority=9), *members(3, "w", cpu="3")]
    for pod in pods:
        pod["metadata"]["labels"][pod_groups.POD_GROUP] = "g"
    cluster = nodes("s1/b1: 4 4, s2/b2: 4 4 4 4")
    scene = Scene(NETWORK, *cluster, group(4, block="Must"), *pods)
    places = scene.decided()
    assert {node[:4] for node in places.values()} == {"s2b2"}
    assert len(places) == 4


def test_victims_leave_where_the_whole_gang_then_fits_in_one_place() -> None:
    """The block that needs one victim less is chosen; nobody leaves where none can hold it."""
    low = [
        clusters.pod(f"low-{name}", on=name, cpu="2", meta={"uid": f"low-{name}"})
        for name in ("s1b1n0", "s1b1n1", "s2b2n0")
    ]
    cluster = nodes("s1/b1: 2 2, s2/b2: 2 1")
    scene = Scene(NETWORK, *cluster, *low, group(3, block="Must"), *members(3, priority=9))
    outcome = scene.core.step(400.0)
    assert [victim.name for victim in getattr(outcome, "victims", ())] == ["low-s2b2n0"]
    scene.drop("low-s2b2n0")
    assert counts(scene.decided()) == {"s2b2n0": 2, "s2b2n1": 1}
    scene = Scene(NETWORK, *cluster, *low, group(5, block="Must"), *members(5, priority=9))
    outcome = scene.core.step(400.0)
    assert getattr(outcome, "victims", None) == ()


def test_a_gang_is_bound_again_at_once_when_the_scheduler_starts_anew() -> None:
    """Half of it was bound before: the rest joins it in its block."""
    cluster = nodes("s1/b1: 2 2, s1/b2: 2")
    pods = members(4)
    bound = [{**pod, "spec": {**pod["spec"], "nodeName": "s1b1n1"}} for pod in pods[:2]]
    scene = Scene(NETWORK, *cluster, group(4, block="Must"), *bound, *pods[2:])
    assert counts(scene.decided()) == {"s1b1n0": 2}
