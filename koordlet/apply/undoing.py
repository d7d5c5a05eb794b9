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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from koordlet.apply import (
    core_cookies,
    devices,
    intents,
    kinds,
    network,
    present,
    real_time,
    resctrl,
    units,
)
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


#: A unit keeps its properties when its group goes: what counts is what systemd says. Who has a
#: cookie only the kernel knows.
_WITHOUT_LOOKING: Mapping[str, Callable[[journal.Entry], action.Action]] = {
    action.SetUnitProperty.__name__: units.undo,
    action.ShareCore.__name__: core_cookies.undo,
}
#: What a set can be made of now, by knob.
_CUT: Mapping[str, Callable[[snapshot.Snapshot], cpuset.CPUSet]] = {
    knob.CPUSET_CPUS.name: lambda now: now.topology.online,
    knob.CPUSET_MEMS.name: lambda now: now.topology.memory_nodes,
}
EFFECTIVE = {
    knob.CPUSET_CPUS.name: knob.CPUSET_EFFECTIVE.name,
    knob.CPUSET_MEMS.name: knob.MEMS_EFFECTIVE.name,
}


def _parts(entry: journal.Entry, write: action.WriteFile, current: str) -> tuple[str, str] | None:
    """Of a file with parts: what goes back, and what others wrote since; ``None``: another file."""
    if write.knob == knob.SUBTREE.name:
        # Off goes what we switched on: what the original did not have, and is still on.
        before = (entry.original or "").split()
        ours = {w[1:] for value in entry.values for w in value.split() if w.startswith("+")}
        on_now = [word for word in current.split() if word in ours and word not in before]
        return " ".join(f"-{word}" for word in on_now), ""
    if write.knob == knob.SCHEMATA.name:
        return resctrl.undo(entry, current)
    return devices.undo(entry, write, current) if devices.form_of(write) is not None else None


def undo(
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Iterable[journal.Entry],
    wanted: Iterable[action.Action],
) -> Undoing:
    """Restore journal entries that no policy wants, beside what is wanted."""
    undoing = Undoing(now, there, entries, wanted)
    for entry in undoing.entries:
        undoing.undo(entry)
    return undoing


class Undoing:
    """Actions and leftovers of a restore."""

    def __init__(
        self,
        now: snapshot.Snapshot,
        there: present.Present,
        entries: Iterable[journal.Entry],
        wanted: Iterable[action.Action],
    ) -> None:
        self.actions: list[action.Action] = []
        self.left: list[Left] = []
        self._now, self._there = now, there
        self._unified = now.layout.unified("cpuset")
        self.entries = sorted(entries, key=lambda entry: (cgroup.depth(entry.group), entry.target))
        #: Sets that groups will have, by (knob, group): a child comes back inside its parent's new
        #: set.
        self._sets = {
            (write.knob, write.group): cpuset.CPUSet.parse(write.value)
            for write in (wanted if self.entries else ())
            if isinstance(write, action.WriteFile) and write.knob in _CUT
        }
        todo = self.entries
        #: Groups that idle no more: their weights come back whatever the files say before.
        self._woken = {e.group for e in todo if e.knob == knob.CPU_IDLE.name}
        #: The groups that are removed.
        self._removed = {e.target for e in todo if e.kind == action.MakeDir.__name__}
        #: Sets, by (knob, group), that were empty before us and are not yet again.
        self._born_empty = {
            (e.knob, e.group) for e in todo if e.original == "" and there.texts.get(e.target)
        }
        #: Files that go back (sets that still hold what we wrote) or go away, to what they held
        #: before.
        self._targets = {
            e.target: e.original or ""
            for e in todo
            if self._goes_back(e) or e.target.rpartition("/")[0] in self._removed
        }

    def leave(
        self, entry: journal.Entry, why: str, *, forget: bool = True, tell: bool = False
    ) -> None:
        """Record an entry that is not restored."""
        self.left.append(Left(target=entry.target, why=why, forget=forget, tell=tell))

    def undo(self, entry: journal.Entry) -> None:
        """Restore one entry, or record why it is not restored."""
        of_its_kind = {
            action.MoveTasks.__name__: self._undo_move,
            action.MakeDir.__name__: self._undo_directory,
            action.Mount.__name__: self._undo_mount,
            action.SetQdisc.__name__: self._undo_queueing,
            action.SetRealTime.__name__: self._undo_real_time,
        }
        if entry.kind in of_its_kind:
            of_its_kind[entry.kind](entry)
        elif entry.target.rpartition("/")[0] in self._removed:
            self.leave(entry, "removed with its cgroup")
        elif entry.kind in _WITHOUT_LOOKING:
            self.actions.append(_WITHOUT_LOOKING[entry.kind](entry))
        else:
            self._undo_file(entry)

    def _same_group(self, entry: journal.Entry) -> bool:
        return entry.inode in (0, self._there.inodes.get(entry.target, 0))

    def _goes_back(self, entry: journal.Entry) -> bool:
        if entry.knob not in _CUT or entry.original is None or not self._same_group(entry):
            return False
        text = self._there.texts.get(entry.target, "")
        return kinds.is_ours(
            intents.back(entry), entry.values, text, self._now.taken_out(entry.group)
        )

    def _undo_move(self, entry: journal.Entry) -> None:
        """Tasks go back when koordlet's group is removed; ``_undo_directory`` does it.

        Threads of workloads in a resctrl group that was there before us go back by themselves.
        """
        directory = entry.target.rpartition("/")[0]
        if self._now.resctrl is not None and entry.target.startswith(f"{self._now.resctrl.mount}/"):
            back = resctrl.give_back(entry, self._now.resctrl)
            if directory not in self._removed and back is not None:
                self.actions.append(back)
                return
        if directory not in self._removed or directory not in self._there.inodes:
            self.leave(entry, "its group is gone or was made by another program")

    def _undo_directory(self, entry: journal.Entry) -> None:
        if entry.target not in self._there.inodes:
            self.leave(entry, "already gone")
            return
        if not self._same_group(entry):
            self.leave(entry, "another cgroup has its name now", tell=True)
            return
        if entry.original is not None:
            self.leave(entry, "it existed before koordlet")
            return
        members = self._there.procs.get(entry.target, ())
        if members:
            procs = f"{entry.target}/{knob.PROCS.v2}"
            homes = [e.original for e in self.entries if e.target == procs and e.original]
            # Else the root of the hierarchy that the group is in.
            homes += [
                tree.directory("")
                for tree in self._now.layout.hierarchies
                if entry.target.startswith(f"{tree.mount}/")
            ]
            homes.append(entry.target.rpartition("/")[0])
            self.actions.append(
                action.MoveTasks(
                    target=f"{homes[0]}/{knob.PROCS.v2}",
                    pids=members,
                    policy=entry.policy,
                    reason=f"out of {entry.group}, which is removed",
                )
            )
        self.actions.append(
            action.RemoveDir(
                target=entry.target,
                group=entry.group,
                policy=entry.policy,
                reason="koordlet made this group and no longer needs it",
            )
        )

    def _undo_queueing(self, entry: journal.Entry) -> None:
        current = self._there.texts.get(entry.target)
        if not self._same_group(entry):
            self.leave(entry, "its link is in another network namespace", forget=False, tell=True)
        elif current is not None and queueing.is_ours(current):
            self.actions.append(network.undo(entry))
        else:
            foreign = current is not None and not queueing.is_free(current)
            self.leave(entry, f"{current or 'no link'} found, not set by koordlet", tell=foreign)

    def _undo_real_time(self, entry: journal.Entry) -> None:
        if self._same_group(entry):
            self.actions.append(real_time.undo(entry))
        else:
            self.leave(entry, "its cgroup is gone, and its threads with it")

    def _undo_mount(self, entry: journal.Entry) -> None:
        if entry.target not in self._there.texts:
            self.leave(entry, "already gone")
            return
        others = resctrl.foreign(self._now.resctrl, self._removed)
        if others:
            self.leave(entry, f"stays mounted: it holds the groups {', '.join(others)}", tell=True)
            return
        self.actions.append(resctrl.unmount(entry))

    def _undo_file(self, entry: journal.Entry) -> None:
        current = self._there.texts.get(entry.target)
        if current is None or not self._same_group(entry):
            self.leave(entry, "its cgroup is gone")
            return
        if entry.original is None:
            why = f"koordlet's {entry.values[-1]!r} stays: the value before it could not be read"
            self.leave(entry, why, tell=True)
            return
        write = intents.back(entry)
        parts = _parts(entry, write, current)
        if parts is not None:
            back, foreign = parts
            if foreign:
                why = f"another program has written {foreign} since"
                self.leave(entry, why, forget=not back, tell=True)
            if back:
                self.actions.append(replace(write, value=back))
            elif not foreign:
                self.leave(entry, "already restored")
        else:
            self._undo_whole_file(entry, write, current)

    def _undo_whole_file(self, entry: journal.Entry, write: action.WriteFile, current: str) -> None:
        moves = entry.knob in knob.WEIGHTS and entry.group in self._woken
        if kinds.same(write, write.value, current) and not moves:
            self.leave(entry, "already restored")
            return
        if not kinds.is_ours(write, entry.values, current, self._now.taken_out(entry.group)):
            why = f"holds {current!r}, which another program wrote over {entry.values[-1]!r}"
            self.leave(entry, why, tell=True)
            return
        if self._waits_for_children(entry):
            self.leave(entry, "waits for the sets of its child cgroups", forget=False)
            return
        back, problem = self._original(entry)
        if problem:
            self.leave(entry, problem, forget=False, tell=True)
        elif kinds.same(write, back, current) and not moves:
            self.leave(entry, "already as wide as its parent allows")
        else:
            self.actions.append(replace(write, value=back))

    def _original(self, entry: journal.Entry) -> tuple[str, str]:
        """The value to restore, or the reason that there is none."""
        text = entry.original or ""
        if entry.knob not in _CUT:
            return (text, "") if text else ("", "it was empty before, which cannot be written")
        try:
            wish = cpuset.CPUSet.parse(text)
        except ValueError:
            return text, ""
        room = self._room(entry) & _CUT[entry.knob](self._now)
        back = wish & room or room
        if not back:
            return "", "its parent cgroup has no CPU or NUMA node left"
        if wish and not self._unified:
            back |= self._needed(entry) & room
            wish |= back
        self._sets[entry.knob, entry.group] = back
        if not wish and self._may_be_empty(entry):
            # The kernel's own "unset": an empty line. Zero bytes would be ignored.
            return "\n", ""
        if self._unified:
            # All members that a v2 set accepts; the kernel refuses others (ERANGE).
            everything = _CUT[entry.knob](self._now)
            if entry.knob == knob.CPUSET_CPUS.name:
                everything = self._now.topology.possible
            return str(wish or everything | back), ""
        return str(back), ""

    def _needed(self, entry: journal.Entry) -> cpuset.CPUSet:
        """CPUs that v1 child groups have or get back, which the kernel keeps in the parent's set.

        The kernel takes no CPU from a set that one below has (EBUSY). Who was born in our set has a
        copy of it. Who was first written when a CPU was away had been cut; those below maybe not.
        """
        row, before = knob.TABLE[entry.knob], self._targets
        return cpuset.union(
            cpuset.lenient(
                before.get(self._now.layout.file(row, path) or "", group.values.get(entry.knob, ""))
            )
            for path, group in self._now.groups.items()
            if cgroup.is_below(path, entry.group) and (entry.knob, path) not in self._sets
        )

    def _may_be_empty(self, entry: journal.Entry) -> bool:
        """Whether a set may be emptied: no process uses it, and on v1 no child set."""
        group = self._now.groups.get(entry.group)
        if group is None:
            return False
        holder = self._now.layout.holder("cpuset")
        if holder is not None and holder.unified:
            return holder.empty_sets or "populated 0" in group.values.get(knob.EVENTS.name, "")
        if self._there.procs.get(entry.target.rpartition("/")[0], (0,)):
            return False
        return not any(
            group.values.get(entry.knob)
            for path, group in self._now.groups.items()
            if cgroup.is_below(path, entry.group)
        )

    def _waits_for_children(self, entry: journal.Entry) -> bool:
        """Whether child sets must be emptied first (v1)."""
        if entry.original or entry.knob not in _CUT or self._unified:
            return False
        return any(
            knob_name == entry.knob and cgroup.is_below(path, entry.group)
            for knob_name, path in self._born_empty
        )

    def _room(self, entry: journal.Entry) -> cpuset.CPUSet:
        """Members that the parent groups will leave.

        The nearest planned one, cut to those in between; without one, the parent as observed.
        """
        between = _CUT[entry.knob](self._now)
        for above in cgroup.ancestors(entry.group):
            planned = self._sets.get((entry.knob, above))
            if planned is not None:
                return planned & between
            group = self._now.groups.get(above)
            own = cpuset.lenient(group.values.get(entry.knob, "")) if group is not None else None
            between = between & own if own else between
        parent = self._now.groups.get(entry.group.rpartition("/")[0])
        text = parent.values.get(EFFECTIVE[entry.knob], "") if parent is not None else ""
        return cpuset.lenient(text) or _CUT[entry.knob](self._now)
