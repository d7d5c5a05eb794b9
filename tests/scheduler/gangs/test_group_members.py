"""Who takes part in a cycle of a group, in which order, and who counts already."""

from __future__ import annotations

from koordlet.scheduler.gangs.group_members import GroupMembers
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene


def members(*bodies: object) -> GroupMembers:
    """Of gang g with these pods, one node for all."""
    scene = Scene(clusters.node("n"), *bodies)  # type: ignore[arg-type]
    entry = scene.core.gangs.book.get("d/g")
    assert entry is not None
    return GroupMembers(scene.core, scene.core.gangs.book.group(entry))


def test_members_are_ordered_by_priority_then_index_then_name() -> None:
    """Without an index a member comes after those that have one."""
    index = "gang.scheduling.koordinator.sh/network-topology-index"
    bodies = [
        gangs.member("c", "g", 1),
        gangs.member("b", "g", 1),
        gangs.member("y", "g", 1, notes={index: "2"}),
        gangs.member("z", "g", 1, notes={index: "1"}),
        gangs.member("x", "g", 1, priority=7),
    ]
    group = members(*bodies)
    assert [pod.name for pod in group.ordered(group.waiting(), 0.0)] == ["x", "z", "y", "b", "c"]


def test_bound_members_count_and_gated_ones_are_not_past_the_gates() -> None:
    """One is bound, one waits, one is gated: one is needed for a minimum of two."""
    policy = {"gang.scheduling.koordinator.sh/match-policy": "waiting-and-running"}
    group = members(
        gangs.member("a", "g", 2, on="n", notes=policy),
        gangs.member("b", "g", 2, notes=policy),
        gangs.member("c", "g", 2, notes=policy, schedulingGates=[{"name": "later"}]),
    )
    assert [pod.name for pod in group.past_gates()] == ["b"]
    assert group.needs(group.past_gates()) == {"d/g": 1}
    assert not group.enough()
    assert group.too_few(group.past_gates()) is None
    assert group.too_few(()) is not None
