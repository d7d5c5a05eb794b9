"""The sets that ours go back to: read once while no entry of the journal comes or goes."""

from __future__ import annotations

from koordlet.apply import originals
from koordlet.model import cpuset
from koordlet.state import journal


def entry(group: str, original: str | None, knob: str = "cpuset.cpus") -> journal.Entry:
    """One file of ours, and what it said before."""
    return journal.Entry(
        kind="WriteFile",
        target=f"/c/{group}/{knob}",
        policy="p",
        original=original,
        values=("1",),
        knob=knob,
        group=group,
        inode=1,
    )


def test_sets_of_cpus_alone_are_known_by_group() -> None:
    """Other files, and sets that nobody could read, are none; an empty one is an empty set."""
    entries = [entry("a", "0-3"), entry("b", ""), entry("c", None), entry("d", "2", "cpu.shares")]
    found = originals.Originals().follow({each.target: each for each in entries}, None)

    assert found == {"a": cpuset.CPUSet.parse("0-3"), "b": cpuset.CPUSet()}


def test_the_same_groups_give_the_same_object() -> None:
    """Policies compare by identity: an equal journal is the same answer."""
    known = originals.Originals()
    entries = {"x": entry("a", "0-3")}
    groups = ("a",)
    first = known.follow(entries, groups)

    assert known.follow({}, groups) is first
    assert known.follow({"x": entry("a", "0-3")}, ("a", "b")) is first
    assert known.follow({}, None) == {}
