"""The table of kinds: when a thing is so already, and what must be on disk before it is done."""

from __future__ import annotations

import typing
from dataclasses import replace

import pytest

from koordlet.apply import kinds
from koordlet.model import action, cgroup, cpuset
from tests.kit import moments

MAKE = action.MakeDir(target="/c/g", policy="p", reason="r")
REMOVE = action.RemoveDir(target="/c/g", policy="p", reason="r")
MOVE = action.MoveTasks(target="/c/g/cgroup.procs", pids=(5,), policy="p", reason="r")


def write(value: str, knob: str = "cpuset.cpus") -> action.WriteFile:
    """A write of one knob."""
    return action.WriteFile(target="/c/g/f", value=value, policy="p", reason="r", knob=knob)


@pytest.mark.parametrize(
    ("value", "current", "so"),
    [
        ("0-3", "0-3\n", True),
        ("0,1,2,3", "0-3", True),
        ("0-3", "0-2", False),
        ("0-3", "", False),
        ("", "\n", True),
        ("0-3", "garbage", False),
        ("garbage", "garbage", True),
    ],
)
def test_sets_are_equal_as_sets(value: str, current: str, so: bool) -> None:
    """Lists are compared by their members; what is no list never equals one."""
    assert so is kinds.satisfied(write(value), current)


@pytest.mark.parametrize(
    ("value", "current", "so"),
    [
        ("+cpuset", "cpu cpuset memory", True),
        ("+cpuset", "cpu memory", False),
        ("-cpuset", "cpu", True),
        ("-cpuset", "cpuset", False),
        ("+cpu +cpuset", "cpuset", False),
        ("+cpu -cpuset", "cpu", True),
    ],
)
def test_switches_are_so_word_by_word(value: str, current: str, so: bool) -> None:
    """A switch is satisfied when each word is on or off as asked, whatever else is on."""
    assert so is kinds.satisfied(write(value, "cgroup.subtree_control"), current)


def test_files_outside_the_table_are_compared_as_text() -> None:
    """Without a row only white space around a value is no difference."""
    assert kinds.satisfied(write("a b", ""), "a b\n")
    assert not kinds.satisfied(write("a b", ""), "a  b\n")


def test_directories_and_tasks() -> None:
    """A group is made when it is usable, removed when nothing is there; tasks are in or not."""
    satisfied = [
        (kinds.satisfied(wanted, None), kinds.satisfied(wanted, kinds.INCOMPLETE))
        for wanted in (MAKE, REMOVE)
    ]

    assert satisfied == [(False, False), (True, False)]
    assert kinds.satisfied(MAKE, kinds.PRESENT)
    assert kinds.satisfied(MOVE, "")
    assert not kinds.satisfied(MOVE, "/c/other")


def test_what_is_missing_is_never_so_already() -> None:
    """A file that cannot be read is not as wanted, whatever is wanted."""
    assert not kinds.satisfied(write(""), None)


def test_phases_follow_each_other() -> None:
    """Groups, switches, sets, tasks, switches off, removal: in this order."""
    on = write("+cpuset", "cgroup.subtree_control")
    off = write("-cpuset", "cgroup.subtree_control")
    order: list[action.Action] = [MAKE, on, write("0"), write("1", "cpu.usage"), MOVE, off, REMOVE]
    backwards = order[::-1]

    assert order == sorted(backwards, key=kinds.phase)


def test_every_kind_has_a_phase() -> None:
    """That of a write depends on its file, of mounts and classes on the way; others have one."""
    of_their_own = {action.WriteFile, action.Mount, action.SetRealTime}

    assert set(typing.get_args(action.Action)) == kinds.PHASES.keys() | of_their_own


def test_only_removal_has_no_original() -> None:
    """Everything that can be undone is journaled."""
    assert [kinds.journaled(wanted) for wanted in (MAKE, write("0"), MOVE, REMOVE)] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("current", "lost", "ours"),
    [
        ("1-7", "", True),
        ("2,4,6", "", False),
        ("2,4,6", "1,3,5,7", True),
        ("2,4,6", "1,3", False),
        ("2,4,6,8", "1,3,5,7", False),
        ("", "1-7", True),
        ("", "1-6", False),
        ("garbage", "1-7", False),
    ],
)
def test_what_the_kernel_took_away_is_still_ours(current: str, lost: str, ours: bool) -> None:
    """v1 takes offline CPUs out of a set; a set that lacks anything else is somebody else's."""
    gone = cpuset.CPUSet.parse(lost)

    assert ours is kinds.is_ours(write("1-7"), ("0-7", "1-7"), current, gone)


@pytest.mark.parametrize(
    ("path", "layout", "gone"),
    [
        ("kubepods/a/b", moments.V1, "3,7"),
        # Below the root that the agent has, here a group as well.
        ("kubepods", moments.V1, "5,7"),
        ("web/a", moments.V1, "7"),
        ("unseen/a", moments.V1, "7"),
        # v2 keeps the wish.
        ("kubepods/a/b", moments.V2, "7"),
    ],
)
def test_what_the_groups_around_lack_was_taken_away(
    path: str, layout: cgroup.Layout, gone: str
) -> None:
    """Offline since the start of the agent, or out of the group around them as well."""
    groups = [moments.group("", "0-4,6"), moments.group("kubepods", "0-2,4-6")]
    groups += [moments.group("web", "0-6"), moments.group("kubepods/a", "0-1")]
    now = moments.moment(moments.machine(1, 4), groups=groups, layout=layout)
    topology = replace(now.topology, online=cpuset.CPUSet.parse("0-6"))
    now = replace(now, topology=topology, went_offline=cpuset.CPUSet.parse("7"))

    assert str(now.taken_out(path)) == gone


def test_what_relies_on_what() -> None:
    """Sets on those above and below them; a file outside the table on nothing but itself."""
    above, below = (
        action.WriteFile(
            target=f"/c/{name}/f", value="1", policy="p", reason="r", knob="cpuset.cpus", group=name
        )
        for name in ("a", "a/b")
    )
    interrupt, score = (
        action.WriteFile(target=target, value="1", policy="p", reason="r", group=name)
        for target, name in (("/proc/irq/0/smp_affinity_list", ""), ("/proc/7/oom_score_adj", "a"))
    )

    assert kinds.relies(below, above)
    assert kinds.relies(above, below)
    assert kinds.relies(interrupt, interrupt)
    assert not kinds.relies(score, interrupt)
    assert not kinds.relies(interrupt, score)
    assert not kinds.relies(score, above)
