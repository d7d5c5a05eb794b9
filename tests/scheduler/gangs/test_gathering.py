"""Members of a gang are gathered in the tree of the cluster's network."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.gangs import summary
from koordlet.scheduler.gangs.decisions import GroupDecisions
from koordlet.scheduler.gangs.gathering import Gathering
from koordlet.scheduler.loop import reservation_events
from tests.kit import clusters, gangs, reservations
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


def reserving(name: str, **more: Any) -> Body:
    """A reservation as a member of the gang g."""
    notes = {pod_groups.GANG_NAME: "g", pod_groups.GANG_MINIMUM: "2"}
    notes[pod_groups.TOPOLOGY_SPEC] = json.dumps(gangs.gather(block="Must"))
    meta = {"namespace": "d", "annotations": notes}
    body = reservations.reservation(name, template_meta=meta, **more)
    body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    return body


def put_reservation(scene: Scene, body: Body, old: Body | None = None) -> None:
    """A reservation comes, or changes."""
    reservation_events.changed(scene.core, old, body, scene.now)


def test_reservations_as_members_are_gathered_with_the_others() -> None:
    """Neither block with room for one of the two is taken; both go to the node that has two."""
    cluster = nodes("s1/b1: 2, s1/b2: 2, s2/b3: 4 1")
    scene = Scene(NETWORK, *cluster)
    for name in "rs":
        put_reservation(scene, reserving(name, cpu="2"))
    assert counts(scene.decided()) == {"s2b3n0": 2}
    assert scene.requested() == 4000


def test_a_member_joins_the_reservations_of_its_gang() -> None:
    """The block of a reservation that has its node is the only one, though others are free."""
    scene = Scene(NETWORK, *nodes("s1/b1: 2 4 4, s2/b2: 4"))
    waiting, bound = (reserving("r", cpu="2", **more) for more in ({}, {"on": "s1b1n0"}))
    put_reservation(scene, waiting)
    put_reservation(scene, bound, waiting)
    scene.put(gangs.member("a", "g", 2, cpu="2"))
    assert scene.decided() == {"a": "s1b1n1"}
    rows = summary.summaries(scene.core, scene.core.gangs.book, scene.core.gangs.network)
    assert [row.place for row in rows] == ["block/b1"]


def test_members_that_wait_with_their_room_held_are_the_place_of_those_that_come_later() -> None:
    """What a gang that is not strict holds counts as its members' place, until all are bound."""
    together = {"mode": "NonStrict", "groups": ["d/g", "d/h"]}
    gathered = gangs.pod_group("g", 2, gather=gangs.gather(block="Must"), **together)
    scene = Scene(
        *(NETWORK, *nodes("s1/b1: 3, s2/b2: 4"), clusters.node("wide", cpu="9")),
        *(gathered, gangs.pod_group("h", 1, **together)),
        *(*members(2), gangs.labelled("h0", "h", nodeSelector={"zone": "x"})),
    )
    assert counts(scene.decided(0.0)) == {"": 3}
    held = scene.core.pod_cache.assumed
    assert {pod.node for pod in held.values()} == {"s2b2n0"}
    scene.put(gangs.labelled("late", "g", cpu="1"))
    scene.decided(20.0)
    assert held["d/late"].node == "s2b2n0"
    scene.put(clusters.node("z", labels={"zone": "x"}))
    assert counts(scene.decided(20.0)) == {"s2b2n0": 3, "z": 1}


def test_whether_a_group_would_fit_without_others_is_judged_in_the_tree() -> None:
    """Two blocks with room for one each are no room for both members, whoever gives way."""
    scene = Scene(NETWORK, *nodes("s1/b1: 1, s2/b2: 1"), group(2, block="Must"), *members(2))
    assert set(scene.decided().values()) == {""}
    core, own = scene.core.gangs, scene.core.gangs.book.group_of("d/g")
    assert own is not None
    gathering = Gathering.of(core.held, core.network, own)
    fits = [
        GroupDecisions(core.held, own, scene.now, 0.0, each).fits_without(())
        for each in (gathering, None)
    ]
    assert fits == [False, True]
