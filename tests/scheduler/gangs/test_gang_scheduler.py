"""Gangs in the loop: admission again, outcomes one by one, what is ignored."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind
from koordlet.scheduler.objects import nodes, unserved
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene


def test_keys_that_the_operator_ignores_make_no_gang_but_a_field_does() -> None:
    """The option places members alone; the field of the specification is never ignored."""
    judge = unserved.UnservedKeys(ignores_keys=True)
    core = Core({"default-scheduler": profile.default("default-scheduler")}, judge=judge)
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    for place, body in enumerate((gangs.member("a", "g", 5), gangs.own("k", "g"))):
        core.pod(None, core.decoder.decode(body, place), 0.0)
    outcomes = {outcome.pod.name: outcome for _ in "ab" if (outcome := core.step(1.0))}
    assert isinstance(outcomes["a"], Bind)
    assert not isinstance(outcomes["k"], Bind)


def test_a_member_hears_of_a_change_once_and_again_only_when_the_reason_differs() -> None:
    """A gang that becomes unreadable says so, and is silent until something changes."""
    scene = Scene(clusters.node("n"), gangs.pod_group("g", 2), gangs.labelled("a", "g"))
    assert scene.decided() == {"a": ""}
    scene.put(gangs.pod_group("g", 2))
    assert scene.decided() == {}
    scene.put(gangs.pod_group("g", "two"))
    assert scene.decided(0.1) == {"a": ""}
    assert scene.messages["a"] == "gang has not init, gangName: d/g, podName: d/a"


def test_a_gang_that_must_be_gathered_waits_before_the_queue_until_the_network_has_the_layer() -> (
    None
):
    """A constraint that cannot be judged is not passed over; what is missing is named."""
    gather = gangs.gather(rack="Must")
    group = gangs.pod_group("g", 2, gather=gather)
    scene = Scene(clusters.node("n", labels={"net/rack": "r"}), group)
    scene.put(*(gangs.labelled(name, "g") for name in "ab"))
    assert scene.decided() == {"a": "", "b": ""}
    words = "gang d/g must be gathered by layer rack"
    assert scene.messages["b"] == f'{words}: there is no ClusterNetworkTopology "default"'
    scene.put(gangs.network("block"))
    scene.core.attempt(scene.stored["d/a"], scene.now)
    assert scene.core.gangs.unserved(scene.stored["d/a"]) == (
        f"{words}: the network has the layers ClusterTopologyLayer, block, NodeTopologyLayer"
    )
    broken = gangs.network("rack")
    broken["spec"]["networkTopologySpec"].pop()
    scene.put(broken)
    assert "layer NodeTopologyLayer is missing" in scene.core.gangs.unserved(scene.stored["d/a"])
    scene.put(gangs.network("rack"))
    assert scene.decided() == {"a": "n", "b": "n"}


def test_a_gang_that_is_gathered_is_tried_again_when_nodes_have_other_labels() -> None:
    """A node that moves to the rack makes it large enough, and nothing else has changed."""
    cluster = [clusters.node(f"n{at}", cpu="1", labels={"net/rack": f"r{at}"}) for at in range(2)]
    group = gangs.pod_group("g", 2, gather=gangs.gather(rack="Must"))
    pods = [gangs.labelled(name, "g", cpu="1") for name in "ab"]
    scene = Scene(gangs.network("rack"), *cluster, group, *pods)
    assert set(scene.decided().values()) == {""}
    old, new = (
        nodes.decode({**cluster[1], "metadata": {**cluster[1]["metadata"], "labels": each}})
        for each in ({"net/rack": "r1"}, {"net/rack": "r0"})
    )
    scene.core.node(old, new, scene.now)
    assert scene.decided(30.0) == {}
    scene.core.gangs.network_changed()
    assert sorted(scene.decided(30.0).values()) == ["n0", "n1"]


def test_gathering_that_the_configuration_ignores_places_members_as_if_nothing_was_asked() -> None:
    """``awareNetworkTopology: false`` is the operator's word; without it the gang waits."""
    arguments = {"Coscheduling": {"awareNetworkTopology": False}}
    core = Core({"default-scheduler": profile.default("default-scheduler", arguments)})
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    group = gangs.pod_group("g", 1, gather=gangs.gather(rack="Must"))
    core.gangs.put_pod_group(pod_groups.pod_group(group))
    core.pod(None, core.decoder.decode(gangs.labelled("a", "g"), 1), 0.0)
    assert isinstance(core.step(1.0), Bind)
    (notice,) = core.gangs.book.take_notices()
    assert notice.message == "gang d/g: awareNetworkTopology is false: its members are not gathered"


@pytest.mark.parametrize("change", ["deleted", "raised", "smaller"])
def test_a_gang_that_may_not_be_tried_any_more_gives_up_the_room_that_was_promised_to_it(
    change: str,
) -> None:
    """Its victims have left, and nobody would ever use what they left."""
    victims = [clusters.pod(name, cpu="1", priority=5) for name in "xyz"]
    scene = Scene(clusters.node("n", cpu="3"), *victims)
    scene.decided()
    scene.confirm()
    members = [gangs.labelled(name, "g", cpu="1", priority=10) for name in "abc"]
    scene.put(gangs.pod_group("g", 3), *members)
    scene.decided()
    assert sorted(scene.core.nominated.on("n")) == ["d/a", "d/b", "d/c"]
    if change == "deleted":
        scene.core.gangs.drop_pod_group("d/g")
    elif change == "raised":
        scene.put(gangs.pod_group("g", 4))
    else:
        scene.drop("a")
    scene.decided(1.0)
    for name in "xyz":
        scene.drop(name)
    scene.put(clusters.pod("plain", cpu="3"))
    assert scene.decided(20.0) == {"plain": "n"}
