"""Restore: actions for journal entries that no policy wants any more. Pure.

Covers: files, switches, groups and the tasks in them, one function for each.
Does not cover: which entries those are (``apply.planner``), doing it (``apply.executor``).

Rules:
1. A restore is three-way: a file is restored only where koordlet's last value still stands in the
   same cgroup (by inode). Anything else is left and reported.
2. On v1 a set is cut to what the machine has now: to online CPUs and to what the groups above
   leave, and never to nothing. On v2 the wish itself is written: the kernel cuts it, and follows
   when the groups above get more again. What is judged is the set in effect.
3. An empty set comes back as empty where the kernel takes that: on v2 from 7.0 on, or without
   processes (v1: and sets below it). Elsewhere (ENOSPC, EBUSY) on v1 as its parent's effective set,
   on v2 as every CPU that there can be, which it stands for: offline ones come back, too.
4. An unreadable original is not guessed: koordlet's value stays and is reported.
5. Only cgroups that koordlet made are removed, together with their files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from koordlet.apply import core_cookies, devices, intents, kinds, network, present, resctrl, units
from koordlet.model import action, cgroup, cpuset, knob, queueing, snapshot
from koordlet.model.record import dataclass
from koordlet.state import journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A journal entry that is not restored, and why."""

    target: str
    why: str
    #: The journal need not keep it.
    forget: bool
    #: A person should know: it is not as it was before us.
    tell: bool = False


@dataclass(slots=True)
class Undoing:
    """Actions and leftovers of a restore."""

    actions: list[action.Action] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    #: Sets that groups will have, by (knob, group): a child comes back inside its parent's new set.
    sets: dict[tuple[str, str], cpuset.CPUSet] = field(default_factory=dict)
    #: Sets, by (knob, group), that were empty before us and are not yet again.
    born_empty: frozenset[tuple[str, str]] = frozenset()
    #: Files that go back (sets that still hold what we wrote) or go away, to what they held before.
    targets: Mapping[str, str] = field(default_factory=dict)
    #: Groups that idle no more: their weights come back whatever the files say before.
    woken: frozenset[str] = frozenset()

    def leave(
        self, entry: journal.Entry, why: str, *, forget: bool = True, tell: bool = False
    ) -> None:
        """Record an entry that is not restored."""
        self.left.append(Left(target=entry.target, why=why, forget=forget, tell=tell))


def undo(
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Iterable[journal.Entry],
    wanted: Iterable[action.Action],
) -> Undoing:
    """Restore journal entries that no policy wants, beside what is wanted."""
    todo = sorted(entries, key=lambda entry: (cgroup.depth(entry.group), entry.target))
    undoing = Undoing()
    for write in wanted if todo else ():
        if isinstance(write, action.WriteFile) and write.knob in _CUT:
            undoing.sets[write.knob, write.group] = cpuset.CPUSet.parse(write.value)
    undoing.woken = frozenset(e.group for e in todo if e.knob == knob.CPU_IDLE.name)
    removed = {e.target for e in todo if e.kind == action.MakeDir.__name__}
    undoing.born_empty = frozenset(
        (e.knob, e.group) for e in todo if e.original == "" and there.texts.get(e.target)
    )
    goes = [e for e in todo if _goes_back(e, now, there) or e.target.rpartition("/")[0] in removed]
    undoing.targets = {e.target: e.original or "" for e in goes}
    for entry in todo:
        if entry.kind == action.MoveTasks.__name__:
            _undo_move(undoing, entry, now, there, removed)
        elif entry.kind == action.MakeDir.__name__:
            _undo_directory(undoing, entry, now, there, todo)
        elif entry.kind == action.Mount.__name__:
            _undo_mount(undoing, entry, now, there, removed)
        elif entry.kind == action.SetQdisc.__name__:
            _undo_queueing(undoing, entry, there)
        elif entry.target.rpartition("/")[0] in removed:
            undoing.leave(entry, "removed with its cgroup")
        elif entry.kind in _WITHOUT_LOOKING:
            undoing.actions.append(_WITHOUT_LOOKING[entry.kind](entry))
        else:
            _undo_file(undoing, entry, now, there)
    return undoing


#: A unit keeps its properties when its group goes: what counts is what systemd says. Who has a
#: cookie only the kernel knows.
_WITHOUT_LOOKING: Mapping[str, Callable[[journal.Entry], action.Action]] = {
    action.SetUnitProperty.__name__: units.undo,
    action.ShareCore.__name__: core_cookies.undo,
}


def _same_group(entry: journal.Entry, there: present.Present) -> bool:
    return entry.inode in (0, there.inodes.get(entry.target, 0))


def _goes_back(entry: journal.Entry, now: snapshot.Snapshot, there: present.Present) -> bool:
    if entry.knob not in _CUT or entry.original is None or not _same_group(entry, there):
        return False
    text = there.texts.get(entry.target, "")
    return kinds.is_ours(intents.back(entry), entry.values, text, now.went_offline)


def _undo_move(
    undoing: Undoing,
    entry: journal.Entry,
    now: snapshot.Snapshot,
    there: present.Present,
    removed: set[str],
) -> None:
    """Tasks go back when koordlet's group is removed; ``_undo_directory`` does it.

    Threads of workloads in a resctrl group that was there before us go back by themselves.
    """
    directory = entry.target.rpartition("/")[0]
    if now.resctrl is not None and entry.target.startswith(f"{now.resctrl.mount}/"):
        back = resctrl.give_back(entry, now.resctrl) if directory not in removed else None
        if back is not None:
            undoing.actions.append(back)
            return
    if directory not in removed or directory not in there.inodes:
        undoing.leave(entry, "its group is gone or was made by another program")


def _undo_directory(
    undoing: Undoing,
    entry: journal.Entry,
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Sequence[journal.Entry],
) -> None:
    if entry.target not in there.inodes:
        undoing.leave(entry, "already gone")
        return
    if not _same_group(entry, there):
        undoing.leave(entry, "another cgroup has its name now", tell=True)
        return
    if entry.original is not None:
        undoing.leave(entry, "it existed before koordlet")
        return
    members = there.procs.get(entry.target, ())
    if members:
        procs = f"{entry.target}/{knob.PROCS.v2}"
        home = next((e.original for e in entries if e.target == procs and e.original), None)
        undoing.actions.append(
            action.MoveTasks(
                target=f"{home or _top(now.layout, entry.target)}/{knob.PROCS.v2}",
                pids=members,
                policy=entry.policy,
                reason=f"out of {entry.group}, which is removed",
            )
        )
    undoing.actions.append(
        action.RemoveDir(
            target=entry.target,
            group=entry.group,
            policy=entry.policy,
            reason="koordlet made this group and no longer needs it",
        )
    )


def _undo_queueing(undoing: Undoing, entry: journal.Entry, there: present.Present) -> None:
    current = there.texts.get(entry.target)
    if not _same_group(entry, there):
        undoing.leave(entry, "its link is in another network namespace", forget=False, tell=True)
    elif current is not None and queueing.is_ours(current):
        undoing.actions.append(network.undo(entry))
    else:
        foreign = current is not None and not queueing.is_free(current)
        undoing.leave(entry, f"{current or 'no link'} found, not set by koordlet", tell=foreign)


def _undo_mount(
    undoing: Undoing,
    entry: journal.Entry,
    now: snapshot.Snapshot,
    there: present.Present,
    removed: set[str],
) -> None:
    if entry.target not in there.texts:
        undoing.leave(entry, "already gone")
        return
    others = resctrl.foreign(now.resctrl, removed)
    if others:
        undoing.leave(entry, f"stays mounted: it holds the groups {', '.join(others)}", tell=True)
        return
    undoing.actions.append(resctrl.unmount(entry))


def _top(layout: cgroup.Layout, directory: str) -> str:
    """The root of the hierarchy that a directory is in."""
    mounts = (h.directory("") for h in layout.hierarchies if directory.startswith(h.mount + "/"))
    return next(mounts, directory.rpartition("/")[0])


def _undo_file(
    undoing: Undoing, entry: journal.Entry, now: snapshot.Snapshot, there: present.Present
) -> None:
    current = there.texts.get(entry.target)
    if current is None or not _same_group(entry, there):
        undoing.leave(entry, "its cgroup is gone")
        return
    if entry.original is None:
        why = f"koordlet's {entry.values[-1]!r} stays: the value before it could not be read"
        undoing.leave(entry, why, tell=True)
        return
    write = intents.back(entry)
    by_parts = {knob.SUBTREE.name: _undo_switches, knob.SCHEMATA.name: _undo_schemata}
    whole = _undo_devices if devices.form_of(write) is not None else None
    if parts := by_parts.get(write.knob, whole):
        parts(undoing, entry, write, current)
        return
    moves = entry.knob in knob.WEIGHTS and entry.group in undoing.woken
    if kinds.same(write, write.value, current) and not moves:
        undoing.leave(entry, "already restored")
        return
    if not kinds.is_ours(write, entry.values, current, now.went_offline):
        why = f"holds {current!r}, which another program wrote over {entry.values[-1]!r}"
        undoing.leave(entry, why, tell=True)
        return
    if _waits_for_children(entry, now, undoing):
        undoing.leave(entry, "waits for the sets of its child cgroups", forget=False)
        return
    back, problem = _original(entry, now, there, undoing)
    if problem:
        undoing.leave(entry, problem, forget=False, tell=True)
    elif kinds.same(write, back, current) and not moves:
        undoing.leave(entry, "already as wide as its parent allows")
    else:
        undoing.actions.append(replace(write, value=back))


def _undo_schemata(
    undoing: Undoing, entry: journal.Entry, write: action.WriteFile, current: str
) -> None:
    _by_parts(undoing, entry, write, resctrl.undo(entry, current))


def _undo_devices(
    undoing: Undoing, entry: journal.Entry, write: action.WriteFile, current: str
) -> None:
    _by_parts(undoing, entry, write, devices.undo(entry, write, current))


def _by_parts(
    undoing: Undoing, entry: journal.Entry, write: action.WriteFile, found: tuple[str, str]
) -> None:
    """Restore a part of a file; another program wrote the rest since."""
    back, foreign = found
    if foreign:
        why = f"another program has written {foreign} since"
        undoing.leave(entry, why, forget=not back, tell=True)
    if back:
        undoing.actions.append(replace(write, value=back))
    elif not foreign:
        undoing.leave(entry, "already restored")


def _undo_switches(
    undoing: Undoing, entry: journal.Entry, write: action.WriteFile, current: str
) -> None:
    """Switch off what we switched on: what the original did not have, and is still on."""
    before = (entry.original or "").split()
    ours = {word[1:] for value in entry.values for word in value.split() if word.startswith("+")}
    on_now = [word for word in current.split() if word in ours and word not in before]
    if not on_now:
        undoing.leave(entry, "already restored")
        return
    undoing.actions.append(replace(write, value=" ".join(f"-{word}" for word in on_now)))


def _original(
    entry: journal.Entry, now: snapshot.Snapshot, there: present.Present, undoing: Undoing
) -> tuple[str, str]:
    """The value to restore, or the reason that there is none."""
    text = entry.original or ""
    if entry.knob not in _CUT:
        return (text, "") if text else ("", "it was empty before, which cannot be written")
    try:
        wish = cpuset.CPUSet.parse(text)
    except ValueError:
        return text, ""
    room = _room(entry, now, undoing) & _CUT[entry.knob](now)
    back = wish & room or room
    if not back:
        return "", "its parent cgroup has no CPU or NUMA node left"
    if wish and not _unified(now):
        back |= _needed(entry, now, undoing) & room
        wish |= back
    undoing.sets[entry.knob, entry.group] = back
    if not wish and _may_be_empty(entry, now, there):
        # The kernel's own "unset": an empty line. Zero bytes would be ignored.
        return "\n", ""
    if _unified(now):
        return str(wish or _all(entry, now) | back), ""
    return str(back), ""


def _all(entry: journal.Entry, now: snapshot.Snapshot) -> cpuset.CPUSet:
    """All members that a v2 set accepts; the kernel refuses others (ERANGE)."""
    return now.topology.possible if entry.knob == knob.CPUSET_CPUS.name else _CUT[entry.knob](now)


def _needed(entry: journal.Entry, now: snapshot.Snapshot, undoing: Undoing) -> cpuset.CPUSet:
    """CPUs that v1 child groups have or get back, which the kernel keeps in the parent's set.

    The kernel takes no CPU from a set that one below has (EBUSY). Who was born in our set has a
    copy of it. Who was first written when a CPU was away had been cut; those below maybe not.
    """
    row, before = knob.TABLE[entry.knob], undoing.targets
    return cpuset.union(
        parsed(before.get(now.layout.file(row, path) or "", group.values.get(entry.knob, "")))
        for path, group in now.groups.items()
        if cgroup.is_below(path, entry.group) and (entry.knob, path) not in undoing.sets
    )


def _unified(now: snapshot.Snapshot) -> bool:
    holder = now.layout.holder("cpuset")
    return holder is not None and holder.unified


def _may_be_empty(entry: journal.Entry, now: snapshot.Snapshot, there: present.Present) -> bool:
    """Whether a set may be emptied: no process uses it, and on v1 no child set."""
    group = now.groups.get(entry.group)
    if group is None:
        return False
    if (holder := now.layout.holder("cpuset")) is not None and holder.unified:
        return holder.empty_sets or "populated 0" in group.values.get(knob.EVENTS.name, "")
    if there.procs.get(entry.target.rpartition("/")[0], (0,)):
        return False
    return not any(
        group.values.get(entry.knob)
        for path, group in now.groups.items()
        if cgroup.is_below(path, entry.group)
    )


def _waits_for_children(entry: journal.Entry, now: snapshot.Snapshot, undoing: Undoing) -> bool:
    """Whether child sets must be emptied first (v1)."""
    if entry.original or entry.knob not in _CUT or _unified(now):
        return False
    return any(
        knob_name == entry.knob and cgroup.is_below(path, entry.group)
        for knob_name, path in undoing.born_empty
    )


#: What a set can be made of now, by knob.
_CUT: Mapping[str, Callable[[snapshot.Snapshot], cpuset.CPUSet]] = {
    knob.CPUSET_CPUS.name: lambda now: now.topology.online,
    knob.CPUSET_MEMS.name: lambda now: now.topology.memory_nodes,
}
EFFECTIVE = {
    knob.CPUSET_CPUS.name: knob.CPUSET_EFFECTIVE.name,
    knob.CPUSET_MEMS.name: knob.MEMS_EFFECTIVE.name,
}


def _room(entry: journal.Entry, now: snapshot.Snapshot, undoing: Undoing) -> cpuset.CPUSet:
    """Members that the parent groups will leave.

    The nearest planned one, cut to those in between; without one, the parent as observed.
    """
    between = _CUT[entry.knob](now)
    for above in cgroup.ancestors(entry.group):
        planned = undoing.sets.get((entry.knob, above))
        if planned is not None:
            return planned & between
        group = now.groups.get(above)
        own = parsed(group.values.get(entry.knob, "")) if group is not None else None
        between = between & own if own else between
    parent = now.groups.get(entry.group.rpartition("/")[0])
    text = parent.values.get(EFFECTIVE[entry.knob], "") if parent is not None else ""
    return parsed(text) or _CUT[entry.knob](now)


def parsed(text: str) -> cpuset.CPUSet:
    """Parse a set; empty where the text is malformed."""
    try:
        return cpuset.CPUSet.parse(text)
    except ValueError:
        return cpuset.CPUSet()
