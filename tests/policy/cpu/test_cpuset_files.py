"""Sets that fit: what is above leaves room, what is inside follows, on both cgroup versions."""

from __future__ import annotations

import pytest

from koordlet.model import action, cgroup, cpuset, decision, qos
from koordlet.policy.cpu.shared_pools import Settings, State
from tests.kit import moments
from tests.kit.moments import group, workload
from tests.policy.cpu.test_shared_pools import EIGHT, SERVER, decided, given, said, sets

Qos = qos.Qos


def test_a_group_above_that_leaves_fewer_cpus() -> None:
    """A target is cut to what the group above has; where nothing remains, nothing is written."""
    pods = [workload("a/w"), workload("b/w", Qos.LSE, "7")]
    groups = [group("", "0-7"), *(group(p, "0-3") for p in ("a", "a/w", "b", "b/w"))]
    made = decided(moments.moment(EIGHT, pods, groups=groups))

    assert (sets(made), said(made)) == ({"a/w": "0-3"}, [("CPUSetNotApplied", "t/b/w")])


def test_cpus_that_are_held_alone_and_lost_are_told() -> None:
    """Nobody else has them: the pool is smaller by each, and the workload has not got it either."""
    pods = [workload("a/w", Qos.LSR, "2-5"), workload("b", Qos.LSE, "6-7"), workload("a/s")]
    groups = [group("", "0-7"), group("b", "0-7"), *(group(p, "0-3") for p in ("a", "a/w", "a/s"))]
    made = decided(moments.moment(EIGHT, pods, groups=groups))

    assert sets(made) == {"a/w": "2-3", "a/s": "0-1", "b": "6-7"}
    (condition,) = made.conditions
    assert (condition.type, condition.subject) == ("CPUSetTooNarrow", "t/a/w")
    assert condition.message == (
        "runs on CPUs 2-3 of 2-5, which it holds alone: its parent cgroup has only 0-3;"
        " widen that cgroup, or name CPUs that it has"
    )


def test_two_workloads_of_one_group() -> None:
    """A group has one owner: the second workload that names it is told."""
    pods = [workload("a", group="g"), workload("b", Qos.BE, group="g")]
    made = decided(moments.moment(EIGHT, pods))

    assert said(made) == [("CPUSetNotApplied", "t/b")]


def test_v1_groups_inside_stay_inside_and_remember_their_wish() -> None:
    """On v1 what is below a workload is cut to it, and gets its wish back when there is room."""
    pods = [workload("w"), workload("x", Qos.LSE, "0-3")]
    groups = [group("", "0-7"), group("x", "0-7"), group("w", "0-7"), group("w/in", "2-5")]
    first = decided(moments.moment(EIGHT, pods, groups=groups))
    cut = [*groups[:2], group("w", "4-7"), group("w/in", "4-5")]
    freed = [workload("w")]
    second = decided(moments.moment(EIGHT, freed, groups=cut), state=first.next_state)

    assert sets(first) == {"x": "0-3", "w": "4-7", "w/in": "4-5"}
    assert sets(second) == {"w": "0-7", "w/in": "2-5"}


def test_v1_groups_born_in_a_narrow_group_grow_with_it() -> None:
    """A new group has its parent's set, which is nobody's wish: it follows when there is room."""
    pods = [workload("w"), workload("x", Qos.LSE, "0-3")]
    groups = [group("", "0-7"), group("x", "0-3"), group("w", "4-7"), group("w/new", "4-7")]
    first = decided(moments.moment(EIGHT, pods, groups=groups))
    second = decided(moments.moment(EIGHT, pods[:1], groups=groups), state=first.next_state)

    assert sets(first) == {"w": "4-7", "w/new": "4-7", "x": "0-3"}
    assert sets(second) == {"w": "0-7", "w/new": "0-7"}


def test_v1_a_declared_group_that_cannot_have_its_set() -> None:
    """On v1 a workload inside another's group, which cannot get its CPUs there, holds nobody up."""
    pods = [workload("w"), workload("w/in", Qos.LSR, "2-3")]
    groups = [group(path, "0-7") for path in ("", "w", "w/in")]
    made = decided(moments.moment(EIGHT, pods, groups=groups))
    above, inside = (cpuset.CPUSet.parse(sets(made)[path]) for path in ("w", "w/in"))

    assert said(made) == [("CPUSetNotApplied", "t/w/in")]
    assert inside <= above


def test_v1_groups_inside_a_workload_inside_another() -> None:
    """What is inside the inner workload fits into that one, and is written once."""
    pods = [
        workload("w", Qos.BE),
        workload("w/in"),
        workload("x", Qos.LSR, "2-3"),
    ]
    groups = [group(path, "0-7") for path in ("", "w", "w/in", "w/in/y", "w/z", "x")]
    made = decided(moments.moment(EIGHT, pods, groups=groups, held=moments.reserved("0-1")))
    targets = [write.target for write in made.actions]

    assert sets(made) == {"w": "2-7", "w/in": "4-7", "w/in/y": "4-7", "w/z": "2-7", "x": "2-3"}
    assert len(targets) == len(set(targets))


def test_a_v1_group_without_nodes_gets_them() -> None:
    """A new v1 group refuses tasks until it has nodes, so they are written with its CPUs."""
    groups = [group("", "0-7"), group("w", "", nodes="")]
    made = decided(moments.moment(EIGHT, [workload("w")], groups=groups))

    written = {write.knob for write in made.actions if isinstance(write, action.WriteFile)}
    assert written == {"cpuset.cpus", "cpuset.mems"}


def nodes(made: decision.Decision[State]) -> dict[str, str]:
    """The nodes of memory that are written, by group."""
    return {
        write.group: write.value
        for write in made.actions
        if isinstance(write, action.WriteFile) and write.knob == "cpuset.mems"
    }


def test_v1_nodes_are_those_of_the_group_above() -> None:
    """A v1 kernel refuses a node that the group above does not have (EACCES)."""
    pods = [workload("a/w"), workload("w")]
    groups = [group("", "0-11", nodes="0-1"), group("a", "0-11", nodes="1")]
    groups += [group(path, "", nodes="") for path in ("a/w", "w")]
    made = decided(moments.moment(SERVER, pods, groups=groups))

    assert nodes(made) == {"a/w": "1", "w": "0-1"}


def test_v1_a_decision_for_nodes_that_the_group_above_lacks_is_told() -> None:
    """What a scheduler decided for the memory cannot be had there: a condition, and no write."""
    pods = [workload("a/w", wishes=given(0, memory=1 << 30))]
    groups = [group("", "0-11", nodes="0-1"), *(group(p, "0-11", nodes="1") for p in ("a", "a/w"))]
    made = decided(moments.moment(SERVER, pods, groups=groups))

    assert (nodes(made), said(made)) == ({}, [("CPUSetNotApplied", "t/a/w")])


@pytest.mark.parametrize("enable", [False, True])
def test_v2_groups_without_the_controller(enable: bool) -> None:
    """Without its controller a v2 group is complained about, or gets it from the top down."""
    bare = cgroup.Group(path="a/w", inode=5, values={})
    above = cgroup.Group(path="a", inode=6, values={})
    now = moments.moment(
        EIGHT,
        [workload("a/w")],
        groups=[group("", "0-7", unified=True), above, bare],
        layout=moments.V2,
    )
    made = decided(now, Settings(enable_controllers=enable))
    switched = [write.group for write in made.actions if write.target.endswith("subtree_control")]

    assert (["", "a"] if enable else []) == switched
    assert ([] if enable else [("CPUSetNotApplied", "t/a/w")]) == said(made)
