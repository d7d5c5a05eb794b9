"""Which step comes first: the phases of a plan, and sets that nest. Random trees: test_prefixes."""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.apply import ordering
from koordlet.model import action

TOP = "/sys/fs/cgroup/cpuset"


def sets(**wanted: str) -> list[action.WriteFile]:
    """Writes of sets by group; ``a__b`` is the group ``b`` in ``a``."""
    return [
        action.WriteFile(
            target=f"{TOP}/{group}/cpuset.cpus",
            value=value,
            policy="p",
            reason="r",
            knob="cpuset.cpus",
            group=group,
        )
        for group, value in ((name.replace("__", "/"), value) for name, value in wanted.items())
    ]


def texts(**there: str) -> Mapping[str, str]:
    """What those files hold."""
    return {one.target: one.value for one in sets(**there)}


def ordered(*given: object, **there: str) -> list[tuple[str, str, bool]]:
    """Group, value, and whether it is on the way only."""
    actions = [one for one in given if isinstance(one, action.WriteFile)]
    return [
        (one.action.group, getattr(one.action, "value", ""), one.interim)
        for one in ordering.order(actions, texts(**there))
    ]


def test_parents_are_widened_before_children() -> None:
    """v1 refuses a child outside its parent."""
    found = ordered(*sets(a__b="0-3", a="0-3"), a="0", a__b="0")

    assert found == [("a", "0-3", False), ("a/b", "0-3", False)]


def test_children_are_narrowed_before_parents() -> None:
    """v1 refuses a parent that drops a CPU of its child."""
    found = ordered(*sets(a="0", a__b="0"), a="0-3", a__b="0-3")

    assert found == [("a/b", "0", False), ("a", "0", False)]


def test_a_set_that_moves_has_both_on_the_way() -> None:
    """Where old and new have nothing in common, the parent has both while its child changes."""
    found = ordered(*sets(a="2-3", a__b="2-3"), a="0-1", a__b="0-1")

    assert found == [("a", "0-3", True), ("a/b", "2-3", False), ("a", "2-3", False)]


def test_a_cpu_is_given_up_before_another_group_gets_it() -> None:
    """Siblings that swap a CPU: the giver comes first, whatever the names."""
    found = ordered(*sets(a__a="0-1", a__z="2"), a__a="0", a__z="1-2")

    assert found == [("a/z", "2", False), ("a/a", "0-1", False)]


def test_a_set_that_reaches_beyond_its_parent_waits_for_it() -> None:
    """v2 takes it, and its tasks would have what the parent is about to lose."""
    found = ordered(*sets(a="0", a__b="0-4"), a="0-1", a__b="0")
    assert found == [("a", "0", False), ("a/b", "0-4", False)]
    found = ordered(*sets(a="0-1", a__b="0-4"), a="0-2", a__b="0")
    assert found == [("a/b", "0-1", True), ("a", "0-1", False), ("a/b", "0-4", False)]


def test_memory_nodes_come_before_cpus() -> None:
    """A v1 group takes no task without memory nodes."""
    mems = action.WriteFile(
        target=f"{TOP}/a/cpuset.mems",
        value="0",
        policy="p",
        reason="r",
        knob="cpuset.mems",
        group="a",
    )
    found = ordering.order([*sets(a="0"), mems], {})

    assert [one.action.knob for one in found if isinstance(one.action, action.WriteFile)] == [
        "cpuset.mems",
        "cpuset.cpus",
    ]


def test_groups_are_made_from_the_top_and_removed_from_the_bottom() -> None:
    """Whatever is written comes after the groups are there and before they go."""
    made = [
        action.MakeDir(target=f"{TOP}/{group}", policy="p", reason="r", group=group)
        for group in ("n/m", "n")
    ]
    gone = [
        action.RemoveDir(target=f"{TOP}/{group}", policy="p", reason="r", group=group)
        for group in ("o", "o/p")
    ]
    found = ordering.order([*gone, *sets(n="0"), *made], {})

    assert [one.action.group for one in found] == ["n", "n/m", "n", "o/p", "o"]
