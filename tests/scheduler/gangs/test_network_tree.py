"""The tree of the cluster's network, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from koordlet.kubeapi.network_topology import network_topology
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.gangs import network_tree
from koordlet.scheduler.gangs.network_tree import ClusterNetwork, NetworkTree, TreeOffers
from koordlet.scheduler.objects import nodes
from tests.kit import clusters, gangs


def columns(**places: str) -> Columns:
    """Nodes by name, each with the names of its layers ``spine/block``."""
    result = Columns()
    for name, place in places.items():
        spine, _, block = place.partition("/")
        labels = {"net/spine": spine, "net/block": block}
        result.put(nodes.decode(clusters.node(name, labels=labels)))
    return result


def tree(**places: str) -> NetworkTree:
    """The tree of these nodes."""
    topology = network_topology(gangs.network("spine", "block"))
    return network_tree.build(topology, columns(**places))


def offers(a_tree: NetworkTree, slots: dict[str, int], **more: Any) -> TreeOffers:
    """What these nodes have; members and scores by name, multiples by level."""

    def leaves(key: str) -> Any:
        values = slots if key == "slots" else more.get(key, {})
        names = a_tree.levels[-1].names
        return np.array([values.get(name, 0) for name in names], np.int64)

    multiples = more.get("multiples", {})
    own = a_tree.sums(leaves("members"))
    rounded = a_tree.rounded(leaves("slots"), own, multiples)
    return TreeOffers(a_tree, rounded, own, a_tree.sums(leaves("scores")), own, multiples)


def spelled(a_tree: NetworkTree, places: list[tuple[int, int]]) -> list[str]:
    """Places by their names."""
    return [a_tree.spell(*place).partition("/")[2] for place in places]


def shares(an_offer: TreeOffers, place: tuple[int, int], number: int) -> list[tuple[int, int]]:
    """The distribution within a place, by the rows of its nodes."""
    return an_offer.distribution(place, number)


def test_equal_names_below_different_parents_are_different_places() -> None:
    """A node that lacks a label is in no place; the last node of all is known by its row."""
    a_tree = tree(n0="s1/b1", n1="s2/b1", n2="s1/b1", n3="s1/", n4="/b1")
    assert [level.names for level in a_tree.levels] == [
        ("",),
        ("s1", "s2"),
        ("b1", "b1"),
        ("n0", "n2", "n1"),
    ]
    assert a_tree.rows.tolist() == [0, 2, 1]
    assert [each.tolist() for each in a_tree.sums(np.array([1, 2, 4]))] == [
        [7],
        [3, 4],
        [3, 4],
        [1, 2, 4],
    ]
    assert a_tree.shared([0, 2]) == "block/b1"
    assert a_tree.shared([0, 1]) == "ClusterTopologyLayer/"
    assert (a_tree.shared([0, 3]), a_tree.shared([])) == ("", "")


def test_multiples_round_down_from_the_nodes_up_and_count_who_is_there() -> None:
    """Five slots of a node are four; with a member there they complete it to six."""
    a_tree = tree(n0="s/a", n1="s/a", n2="s/b")
    slots = {"n0": 5, "n1": 3, "n2": 5}
    plain = offers(a_tree, slots, multiples={3: 2})
    assert [each.tolist() for each in plain.slots] == [[10], [10], [6, 4], [4, 2, 4]]
    with_member = offers(a_tree, slots, members={"n0": 1}, multiples={3: 2, 2: 4})
    assert [each.tolist() for each in with_member.slots] == [[11], [11], [7, 4], [5, 2, 4]]


def test_candidates_are_as_deep_as_there_are_any_in_their_order() -> None:
    """Members there come first, then fewer slots up to the root, then the score, then the name."""
    a_tree = tree(a="s1/x", b="s1/x", c="s2/x", d="s2/y", e="s2/z")
    slots = {"a": 3, "b": 2, "c": 3, "d": 3, "e": 4}
    plain = offers(a_tree, slots)
    root = np.array([0])
    assert spelled(a_tree, plain.candidates(root, 0, 3)) == ["c", "d", "a", "e"]
    assert spelled(a_tree, plain.candidates(root, 0, 5)) == ["x"]
    assert spelled(a_tree, plain.candidates(root, 0, 11)) == [""]
    assert spelled(a_tree, plain.candidates(root, 0, 16)) == []
    scored = offers(a_tree, slots, scores={"d": 9}, members={"e": 1})
    assert spelled(a_tree, scored.candidates(root, 0, 3)) == ["e", "d", "c", "a"]
    spines = np.array([1])
    assert spelled(a_tree, plain.candidates(spines, 1, 3)) == ["c", "d", "e"]


def test_members_fill_the_place_with_most_members_then_most_slots() -> None:
    """The last child takes only what is left."""
    a_tree = tree(a="s/x", b="s/x", c="s/y", d="s/y")
    slots = {"a": 2, "b": 3, "c": 4, "d": 4}
    plain = offers(a_tree, slots)
    assert shares(plain, (1, 0), 10) == [(2, 4), (3, 4), (1, 2)]
    near = offers(a_tree, slots, members={"a": 1})
    assert shares(near, (1, 0), 4) == [(0, 2), (1, 2)]
    assert shares(plain, (3, 0), 9) == [(0, 2)]


def test_a_place_never_takes_what_is_no_multiple_of_its_layer() -> None:
    """Nodes by threes below a block by fours: none fits, and twelve fit."""
    a_tree = tree(a="s/x", b="s/x")
    few = offers(a_tree, {"a": 3, "b": 3}, multiples={3: 3, 2: 4})
    assert shares(few, (1, 0), 6) == []
    many = offers(a_tree, {"a": 7, "b": 8}, multiples={3: 3, 2: 4})
    assert shares(many, (1, 0), 12) == [(0, 6), (1, 6)]


def test_the_tree_is_built_anew_when_nodes_or_the_object_have_changed() -> None:
    """Without an object, or with an unreadable one, there is none, and it says why."""
    known, network = columns(n0="s/a"), ClusterNetwork()
    assert network.tree(known) is None
    assert network.problem == 'there is no ClusterNetworkTopology "default"'
    network.put(network_topology(gangs.network("spine")))
    first = network.tree(known)
    assert first is not None
    assert network.tree(known) is first
    known.put(nodes.decode(clusters.node("n1", labels={"net/spine": "t"})))
    second = network.tree(known)
    assert second is not None
    assert second.levels[1].names == ("s", "t")
    network.put(network_topology({"metadata": {"name": "default"}}))
    assert network.tree(known) is None
    assert network.layers == ()
    assert network.problem.endswith("layer NodeTopologyLayer is missing")
