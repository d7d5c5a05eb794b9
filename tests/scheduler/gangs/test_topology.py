"""All members of a gang in one domain of a label."""

from __future__ import annotations

from typing import Any

from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene

Body = dict[str, Any]
RACK = {"topology": [{"key": "rack"}]}


def racks(**sizes: int) -> list[Body]:
    """Nodes of four CPUs by the name of their rack; ``none``: without the label."""
    return [
        clusters.node(f"{rack}{place}", labels={} if rack == "none" else {"rack": rack})
        for rack, size in sizes.items()
        for place in range(size)
    ]


def members(number: int, **more: Any) -> list[Body]:
    """Pods of three CPUs: one a node."""
    return [gangs.own(f"k{place}", "k", cpu="3", **more) for place in range(number)]


def test_all_members_go_to_the_domain_that_takes_the_most() -> None:
    """Two racks take the minimum, and one of them takes a member more."""
    group = gangs.own_group("k", 2, schedulingConstraints=RACK)
    scene = Scene(*racks(none=4, a=2, b=3, c=1), group, *members(3))
    assert sorted(scene.decided().values()) == ["b0", "b1", "b2"]


def test_of_equal_domains_the_first_by_name_is_taken() -> None:
    """Twice the same input is twice the same answer."""
    group = gangs.own_group("k", 2, schedulingConstraints=RACK)
    scene = Scene(*racks(b=2, a=2), group, *members(2))
    assert sorted(scene.decided().values()) == ["a0", "a1"]


def test_no_domain_is_large_enough() -> None:
    """There is room for all, but not in one rack: nothing is bound, nothing is held."""
    group = gangs.own_group("k", 3, schedulingConstraints=RACK)
    scene = Scene(*racks(a=2, b=2), group, *members(3))
    assert set(scene.decided().values()) == {""}
    assert scene.messages["k0"] == (
        "0/2 placements are available, first placement status: 0/4 nodes are available: 2"
        " Insufficient cpu, 2 node(s) are outside of the pod group's topology domain."
    )
    assert scene.requested() == 0


def test_bound_members_say_which_domain_it_is() -> None:
    """Members that come later join them, or wait; two domains are an error."""
    group = gangs.own_group("k", 1, schedulingConstraints=RACK)
    there = gangs.own("k9", "k", on="b0", cpu="3")
    scene = Scene(*racks(a=3, b=2), group, there, gangs.own("k0", "k", cpu="3"))
    assert scene.decided() == {"k0": "b1"}
    scene = Scene(*racks(a=2, b=2), group, there, gangs.own("k8", "k", on="a0"), *members(1))
    assert scene.decided() == {"k0": ""}
    assert scene.messages["k0"].endswith("more than 1 domain found for pod group: a, b")
    scene = Scene(*racks(a=2, none=1), group, gangs.own("k8", "k", on="none0"), *members(1))
    scene.decided()
    assert scene.messages["k0"].endswith("no topology domain found for pod d/k8")


def test_victims_leave_the_domain_that_comes_closest() -> None:
    """One more node of rack ``a`` is needed: its pod of lower priority leaves, no other."""
    group = gangs.own_group("k", 2, schedulingConstraints=RACK)
    low = [
        clusters.pod(f"low-{name}", on=name, cpu="4", meta={"uid": f"low-{name}"})
        for name in ("a0", "b0", "b1")
    ]
    scene = Scene(*racks(a=2, b=2), group, *low, *members(2, priority=9))
    scene.now = 400.0
    outcome = scene.core.step(scene.now)
    assert [victim.name for victim in getattr(outcome, "victims", ())] == ["low-a0"]
