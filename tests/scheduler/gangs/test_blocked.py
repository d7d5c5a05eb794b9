"""Two gangs that wait and hold what the other lacks: the younger gives way."""

from __future__ import annotations

from typing import Any

from tests.kit import clusters
from tests.kit.gang_scene import Scene
from tests.scheduler.gangs.test_held_room import held, member, plain

Body = dict[str, Any]


def test_the_younger_of_two_that_block_each_other_gives_way_and_the_older_is_bound() -> None:
    """A holds n1 and lacks n2; b comes when n2 is free, is tried first, holds it and lacks n1."""
    stage = Scene(clusters.node("n1"), clusters.node("n2"), clusters.node("wide", cpu="9"))
    stage.put(plain("block", cpu="4", on="n2"))
    stage.put(*(member(f"a{node}", node, 2, "a", cpu="3") for node in ("n1", "n2")))
    stage.decided(0.0)
    assert held(stage) == {"an1": "n1"}
    urgent = [member(f"b{node}", node, 2, "b", cpu="3", priority=1) for node in ("n1", "n2")]
    for body in urgent:
        body["spec"]["preemptionPolicy"] = "Never"
    stage.drop("block")
    stage.put(*urgent)
    places = stage.decided(0.0)
    assert (places["an1"], places["an2"]) == ("n1", "n2")
    text = 'GangGroup "d/b" gets rejected due to GangGroup "d/a", which waits for longer'
    assert stage.messages["bn1"].startswith(text)
    assert held(stage) == {"an1": "n1", "an2": "n2"}


def test_an_older_gang_takes_the_room_of_a_younger_one_in_its_own_turn() -> None:
    """B holds what is left of n2, which does not suffice for a; with more of n2 free a needs it."""
    stage = Scene(clusters.node("n1"), clusters.node("n2"), clusters.node("wide", cpu="9"))
    stage.put(plain("block", cpu="2", on="n2"))
    for gang, cpu in (("a", "3"), ("b", "2")):
        stage.put(*(member(f"{gang}{node}", node, 2, gang, cpu=cpu) for node in ("n1", "n2")))
        stage.decided(0.0)
    assert held(stage) == {"an1": "n1", "bn2": "n2"}
    stage.drop("block")
    places = stage.decided(1.0)
    assert (places["an1"], places["an2"], places["bn2"]) == ("n1", "n2", "")


def test_gangs_that_lack_something_else_wait_side_by_side() -> None:
    """Each holds a node; what both lack is nobody's: neither gives way."""
    nodes = [clusters.node(name) for name in ("n1", "n2", "n3")]
    stage = Scene(*nodes, plain("block", cpu="4", on="n3"))
    for gang, node in (("a", "n1"), ("b", "n2")):
        stage.put(member(f"{gang}1", node, 2, gang), member(f"{gang}2", "n3", 2, gang))
    stage.decided()
    assert held(stage) == {"a1": "n1", "b1": "n2"}
