"""The table of action kinds: how each is diffed, ordered, verified, journaled and undone. Pure.

Covers: one function per question, exhaustive over the closed union.
Does not cover: system calls (``apply.perform``), ordering inside a phase (``apply.ordering``).

| kind | already so when | journaled original | undone by |
|---|---|---|---|
| MakeDir | the directory is there and usable | absence | its tasks to where they came from, rmdir |
| WriteFile | the texts mean the same | the text found | writing the original, if ours is there |
| SetUnitProperty | we set it, and the file says so | text and properties | setting those, if ours |
| MoveTasks | every live pid is in the group | where the first came from | with its MakeDir |
| SetQdisc | the side says so | the kernel's own default | taking ours away |
| ShareCore | all of them have one cookie, and nobody else | none had it | clearing that cookie |
| SetRealTime | no thread is ordinary | all were ordinary | ordinary again, where they have ours |
| Mount | it is mounted | nothing was there | unmounting, where only our groups are in it |
| RemoveDir | nothing is there | nothing: it only undoes MakeDir | not reversible, nothing is lost |
| Reclaim | never: it is asked for each time | nothing | not reversible: pages come back when used |
| Evict | nobody names the pod any more | nothing | not reversible: what ended does not come back |
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import assert_never

from koordlet.model import action, cgroup, cpuset, knob, queueing, real_time

#: The kinds that are about one file's text.
FILES = (action.WriteFile, action.SetUnitProperty)
FileAction = action.WriteFile | action.SetUnitProperty

# Tuples, because a union is made anew at each use, and these are asked for each step.
_DIRECTORIES = (action.MakeDir, action.RemoveDir)
_NOT_JOURNALED = (action.RemoveDir, action.Reclaim, action.Evict)
_BLOCKING = (action.SetUnitProperty, action.SetQdisc, action.Reclaim)

# Sets, for the same reason.
_SWITCHES = frozenset(n for n, row in knob.TABLE.items() if row.shape is knob.Shape.SWITCHES)
_SLEEPING = frozenset(n for n, row in knob.TABLE.items() if row.may_block)

#: What ``Present.texts`` holds for a directory that is there and usable.
PRESENT = "present"
#: … and for one that is there and takes no task yet.
INCOMPLETE = "incomplete"
#: Before the number of the process that gets a new cookie, in the journal.
LEADER = "of process "


class Phase(enum.IntEnum):
    """The coarse order of a plan. Inside a phase ``apply.ordering`` decides."""

    MOUNT = -1
    MAKE = 0
    #: v2 controllers switched on, before the files that they bring are written.
    SWITCH_ON = 1
    #: What would have limits and weights refused: a burst above the quota, ``cpu.idle``. Threads
    #: that are ordinary again: no group with a real-time one gives up its real time.
    CLEAR = 2
    #: Units before the groups inside them: systemd hands down what a property needs by itself.
    UNITS = 3
    #: Sets: widened from the top, then narrowed from the bottom.
    SETS = 4
    FREE = 5
    QUEUES = 6
    MOVE = 7
    RECLAIM = 8
    SWITCH_OFF = 9
    REMOVE = 10
    UNMOUNT = 11
    #: Whatever protects others is in place before anybody has to go.
    EVICT = 12


def row_of(wanted: FileAction) -> knob.Knob | None:
    """The knob of a write; ``None`` for a file outside the table."""
    return knob.TABLE.get(wanted.knob)


#: Of the kinds whose phase is always the same.
PHASES: Mapping[type[action.Action], Phase] = {
    action.MakeDir: Phase.MAKE,
    action.MoveTasks: Phase.MOVE,
    action.ShareCore: Phase.MOVE,
    action.RemoveDir: Phase.REMOVE,
    action.Reclaim: Phase.RECLAIM,
    action.SetUnitProperty: Phase.UNITS,
    action.SetQdisc: Phase.QUEUES,
    action.Evict: Phase.EVICT,
}


def phase(wanted: action.Action) -> Phase:
    """When an action is carried out."""
    if isinstance(wanted, action.WriteFile):
        return _phase_of_write(wanted)
    if isinstance(wanted, action.Mount):
        return Phase.UNMOUNT if wanted.gone else Phase.MOUNT
    if isinstance(wanted, action.SetRealTime):
        return Phase.CLEAR if wanted.back else Phase.MOVE
    return PHASES[type(wanted)]


def _phase_of_write(wanted: action.WriteFile) -> Phase:
    row = row_of(wanted)
    if row is None or row.shape is knob.Shape.FREE:
        return Phase.FREE
    if row.shape is knob.Shape.SUBSET:
        return Phase.SETS
    return Phase.SWITCH_OFF if wanted.value.startswith("-") else Phase.SWITCH_ON


def satisfied(wanted: action.Action, current: str | None) -> bool:
    """Whether the machine already is as the action wants it; ``None``: the target is absent."""
    match wanted:
        # The most by far, so the first.
        case action.WriteFile() | action.SetUnitProperty():
            return current is not None and same(wanted, wanted.value, current)
        case action.Mount():
            return (current is None) is wanted.gone
        case action.Evict() | action.Reclaim():
            # Whether an eviction is under way already, only the evictor knows.
            return False
        case action.ShareCore():
            return wanted.settled
        case action.SetRealTime():
            return not wanted.threads and not wanted.back
        case _:
            return current == _goal(wanted)


def _goal(
    wanted: action.MakeDir | action.RemoveDir | action.MoveTasks | action.SetQdisc,
) -> str | None:
    """What is read where the action has nothing left to do."""
    match wanted:
        case action.MakeDir():
            return PRESENT
        case action.RemoveDir():
            return None
        case action.MoveTasks():
            # What is read is the origin of the first live pid that is elsewhere.
            return ""
        case action.SetQdisc():
            return wanted.value


def same(write: FileAction, wanted: str, current: str) -> bool:
    """Whether a wanted text and a text read from the file mean the same value."""
    row = row_of(write)
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


def is_ours(wanted: FileAction, values: Iterable[str], current: str, lost: cpuset.CPUSet) -> bool:
    """Whether koordlet wrote a text that was read from a file.

    ``lost`` are CPUs that went offline: the v1 kernel takes those out of a set by itself, all of
    them if need be, and does not bring them back.
    """
    return any(
        same(wanted, ours, current) or _shrunk(wanted, ours, current, lost) for ours in values
    )


def _shrunk(wanted: FileAction, ours: str, current: str, lost: cpuset.CPUSet) -> bool:
    if wanted.knob != knob.CPUSET_CPUS.name or not lost:
        return False
    try:
        wrote, reads = cpuset.CPUSet.parse(ours), cpuset.CPUSet.parse(current)
    except ValueError:
        return False
    return reads <= wrote and wrote - reads <= lost


def is_switch(wanted: action.Action) -> bool:
    """Whether a file is a list of words of which some are switched on or off."""
    return isinstance(wanted, action.WriteFile) and wanted.knob in _SWITCHES


def journaled(wanted: action.Action) -> bool:
    """Whether an original must be on disk before the action is done."""
    return not isinstance(wanted, _NOT_JOURNALED)


def may_block(wanted: action.Action) -> bool:
    """Whether an action may block: systemd calls, and writes that sleep in the kernel."""
    if isinstance(wanted, action.WriteFile):
        return wanted.knob in _SLEEPING
    return isinstance(wanted, _BLOCKING)


def value(wanted: action.Action) -> str:
    """The value of an action, as the journal and reports show it."""
    match wanted:
        case action.WriteFile() | action.SetUnitProperty() | action.SetQdisc():
            return wanted.value
        case action.Reclaim():
            return str(wanted.amount_bytes)
        case action.Evict():
            return wanted.victim.pod
        case action.ShareCore():
            # Whose cookie it is that is about to be made: also one that nobody could write down.
            made = wanted.cookie or f"{LEADER}{next(iter(wanted.members), 0)}"
            return wanted.gone[-1] if wanted.gone else made
        case action.SetRealTime():
            return "" if wanted.back else real_time.GIVEN_TEXT
        case action.MakeDir() | action.RemoveDir() | action.MoveTasks() | action.Mount():
            return action.kind(wanted)
        case _:
            assert_never(wanted)


def directory(wanted: action.Action) -> str:
    """The directory of the group that an action is about."""
    if isinstance(wanted, _DIRECTORIES):
        return wanted.target
    if isinstance(wanted, action.SetQdisc):
        # What a link is in: a helper without network must not take it for gone.
        return queueing.NETWORK
    return wanted.target.rpartition("/")[0]


def relies(wanted: action.Action, failed: action.WriteFile) -> bool:
    """Whether an action depends on a failed write: the same file, or a set above or below.

    Files outside of the table are no such sets: an interrupt that cannot be moved stops nobody.
    """
    if not isinstance(wanted, action.WriteFile) or wanted.knob != failed.knob:
        return False
    return wanted.target == failed.target or (
        wanted.knob != ""
        and (
            cgroup.is_below(wanted.group, failed.group)
            or cgroup.is_below(failed.group, wanted.group)
        )
    )
