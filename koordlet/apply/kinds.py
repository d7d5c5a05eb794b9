"""The table of action kinds: how each is diffed, ordered, verified, journaled and undone. Pure.

Covers: one function per question, exhaustive over the closed union.
Does not cover: system calls (``apply.perform``), ordering inside a phase (``apply.ordering``).

| kind | already so when | journaled original | undone by |
|---|---|---|---|
| MakeDir | the directory is there and usable | absence | its tasks to where they came from, rmdir |
| WriteFile | the texts mean the same | the text found | writing the original, if ours is there |
| MoveTasks | every live pid is in the group | where the first came from | with its MakeDir |
| Mount | it is mounted | nothing was there | unmounting, where only our groups are in it |
| RemoveDir | nothing is there | nothing: it only undoes MakeDir | not reversible, nothing is lost |
| Evict | nobody names the pod any more | nothing | not reversible: what ended does not come back |
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import assert_never

from koordlet.model import action, cpuset, knob

#: What ``Present.texts`` holds for a directory that is there and usable.
PRESENT = "present"
#: … and for one that is there and takes no task yet.
INCOMPLETE = "incomplete"


class Phase(enum.IntEnum):
    """The coarse order of a plan. Inside a phase ``apply.ordering`` decides."""

    MOUNT = -1
    MAKE = 0
    #: v2 controllers switched on, before the files that they bring are written.
    SWITCH_ON = 1
    #: Sets: widened from the top, then narrowed from the bottom.
    SETS = 2
    FREE = 3
    MOVE = 4
    SWITCH_OFF = 5
    REMOVE = 6
    UNMOUNT = 7
    #: Whatever protects others is in place before anybody has to go.
    EVICT = 8


def row_of(one: action.WriteFile) -> knob.Knob | None:
    """The knob of a write; ``None`` for a file outside the table."""
    return knob.TABLE.get(one.knob)


def phase(one: action.Action) -> Phase:
    """When in a plan an action takes place."""
    match one:
        case action.MakeDir():
            return Phase.MAKE
        case action.MoveTasks():
            return Phase.MOVE
        case action.RemoveDir():
            return Phase.REMOVE
        case action.Mount():
            return Phase.UNMOUNT if one.gone else Phase.MOUNT
        case action.Evict():
            return Phase.EVICT
        case action.WriteFile():
            return _phase_of_write(one)
        case _:
            assert_never(one)


def _phase_of_write(one: action.WriteFile) -> Phase:
    row = row_of(one)
    if row is None or row.shape is knob.Shape.FREE:
        return Phase.FREE
    if row.shape is knob.Shape.SUBSET:
        return Phase.SETS
    return Phase.SWITCH_OFF if one.value.startswith("-") else Phase.SWITCH_ON


def satisfied(one: action.Action, current: str | None) -> bool:
    """Whether the machine already is as the action wants it. ``None``: nothing is there."""
    match one:
        case action.MakeDir():
            return current == PRESENT
        case action.RemoveDir():
            return current is None
        case action.Mount():
            return (current is None) is one.gone
        case action.Evict():
            # Whether it is under way already, only the evictor knows.
            return False
        case action.MoveTasks():
            # ``current`` is the origin of the first live pid that is elsewhere.
            return current == ""
        case action.WriteFile():
            return current is not None and same(one, one.value, current)
        case _:
            assert_never(one)


def same(one: action.WriteFile, wanted: str, current: str) -> bool:
    """Whether a wanted text and a text read from the file mean the same value."""
    row = row_of(one)
    if row is None:
        return wanted.strip() == current.strip()
    if row.shape is knob.Shape.SWITCHES:
        words = current.split()
        return all(
            (word[1:] in words) == word.startswith("+")
            for word in wanted.split()
            if word[:1] in "+-"
        )
    return row.same(wanted, current)


def is_ours(
    one: action.WriteFile, values: Iterable[str], current: str, lost: cpuset.CPUSet
) -> bool:
    """Whether a text read from a file is one that we wrote.

    ``lost`` are CPUs that went offline: the v1 kernel takes those out of a set by itself, and does
    not bring them back.
    """
    return any(same(one, ours, current) or _shrunk(one, ours, current, lost) for ours in values)


def _shrunk(one: action.WriteFile, ours: str, current: str, lost: cpuset.CPUSet) -> bool:
    if one.knob != knob.CPUSET_CPUS.name or not lost:
        return False
    try:
        wrote, reads = cpuset.CPUSet.parse(ours), cpuset.CPUSet.parse(current)
    except ValueError:
        return False
    return bool(reads) and reads <= wrote and wrote - reads <= lost


def journaled(one: action.Action) -> bool:
    """Whether an original must be on disk before the action is done."""
    return not isinstance(one, action.RemoveDir | action.Evict)
