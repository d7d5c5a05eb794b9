"""Merges all decisions into one plan: what to do, what to put back, in which order. Pure.

Covers: merging and conflicts, the diff, putting back what no policy wants any more, restore.
Does not cover: the order inside a phase (``apply.ordering``), doing it (``apply.executor``).

Rules:
1. A target wanted by two policies with different values goes to the one earlier in the registry;
   the other is reported as a conflict.
2. What the journal holds and no policy names any more is put back, unless its policy failed or is
   missing from this round: then it stays as it is.
3. Putting back is three-way: only where our last value still stands, in the same group (by inode).
   Anything else is left and reported.
4. What is put back is cut to what the machine has now: CPU lists to online CPUs, and never to
   nothing. An empty v2 set of a group with processes comes back as its parent's effective set,
   because the kernel refuses to empty it (ENOSPC).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from koordlet.apply import kinds, ordering, present
from koordlet.model import action, cgroup, cpuset, knob, plan, snapshot
from koordlet.policy import chain
from koordlet.state import journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Something of ours that is not put back, and why."""

    target: str
    why: str
    #: The journal need not keep it.
    forget: bool
    #: A person should know: it is not as it was before us.
    tell: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The plan, and what its carrying out has to know beside it."""

    plan: plan.Plan
    left: tuple[Left, ...] = ()


@dataclass(slots=True)
class _Wanted:
    """Desired state, merged: the action of each target and the mode of its policy."""

    actions: dict[str, action.Action] = field(default_factory=dict)
    modes: dict[str, plan.Mode] = field(default_factory=dict)
    conflicts: list[plan.Conflict] = field(default_factory=list)

    def add(self, one: action.Action, mode: plan.Mode) -> None:
        kept = self.actions.get(one.target)
        # A policy in shadow never displaces one that enforces.
        if kept is None or (mode is plan.Mode.ENFORCE and self.modes[one.target] is not mode):
            self.actions[one.target] = one
            self.modes[one.target] = mode
        elif self.modes[one.target] is mode and _value(kept) != _value(one):
            self.conflicts.append(
                plan.Conflict(
                    target=one.target,
                    kept=_value(kept),
                    kept_policy=kept.policy,
                    dropped=_value(one),
                    dropped_policy=one.policy,
                )
            )


def _value(one: action.Action) -> str:
    return one.value if isinstance(one, action.WriteFile) else action.kind(one)


def desired(outcomes: Iterable[chain.Outcome]) -> tuple[action.Action, ...]:
    """Every action that any policy wants: what ``present.read`` must look at."""
    return tuple(a for o in outcomes if o.decision is not None for a in o.decision.actions)


def draft(
    said: chain.Round,
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Mapping[str, journal.Entry],
) -> Draft:
    """The plan that takes the machine from what is there to what the policies want."""
    wanted = _Wanted()
    for outcome in said.outcomes:
        for one in outcome.decision.actions if outcome.decision is not None else ():
            wanted.add(one, outcome.mode)
    failed = {outcome.stem for outcome in said.outcomes if outcome.failure}
    enforced = {t: a for t, a in wanted.actions.items() if wanted.modes[t] is plan.Mode.ENFORCE}
    keep = {t for t, entry in entries.items() if t in enforced or entry.policy in failed}
    undoing = _undo(now, there, (e for t, e in entries.items() if t not in keep), enforced.values())
    steps = _steps(enforced.values(), there, undo=undoing.actions)
    shadow = _shadow_steps(wanted, there, len(steps))
    return Draft(
        plan=_plan(said, now, (*steps, *shadow), wanted.conflicts), left=tuple(undoing.left)
    )


def restore(
    now: snapshot.Snapshot, there: present.Present, entries: Mapping[str, journal.Entry]
) -> Draft:
    """The plan that puts everything back. The same code path as forgetting one target."""
    undoing = _undo(now, there, entries.values(), ())
    steps = _steps((), there, undo=undoing.actions)
    return Draft(plan=plan.Plan(steps=tuple(steps)), left=tuple(undoing.left))


def _plan(
    said: chain.Round,
    now: snapshot.Snapshot,
    steps: tuple[plan.Step, ...],
    conflicts: Sequence[plan.Conflict],
) -> plan.Plan:
    decisions = [(o.stem, o.decision) for o in said.outcomes if o.decision is not None]
    return plan.Plan(
        steps=steps,
        signals=tuple(s for _, d in decisions for s in d.signals),
        conditions=tuple(c for _, d in decisions for c in d.conditions),
        ledger=said.ledger,
        conflicts=tuple(conflicts),
        failures=tuple(
            plan.Failure(policy=o.stem, error=o.failure) for o in said.outcomes if o.failure
        ),
        unsupported=now.unsupported,
        explanations={stem: d.explanation for stem, d in decisions},
    )


def _steps(
    actions: Iterable[action.Action],
    there: present.Present,
    undo: Sequence[action.Action],
) -> list[plan.Step]:
    undone = {one.target for one in undo}
    todo = [
        one for one in (*actions, *undo) if not kinds.satisfied(one, there.texts.get(one.target))
    ]
    return [
        plan.Step(
            order=number,
            action=placed.action,
            was=there.texts.get(placed.action.target),
            undo=placed.action.target in undone,
            interim=placed.interim,
        )
        for number, placed in enumerate(ordering.order(todo, there.texts))
    ]


def _shadow_steps(wanted: _Wanted, there: present.Present, first: int) -> list[plan.Step]:
    shadow = [one for t, one in wanted.actions.items() if wanted.modes[t] is plan.Mode.SHADOW]
    changes = [one for one in shadow if not kinds.satisfied(one, there.texts.get(one.target))]
    return [
        plan.Step(
            order=first + number,
            action=placed.action,
            was=there.texts.get(placed.action.target),
            mode=plan.Mode.SHADOW,
            interim=placed.interim,
        )
        for number, placed in enumerate(ordering.order(changes, there.texts))
    ]


# Putting back ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Undoing:
    actions: list[action.Action] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    #: Sets that groups will have, by (knob, group): a child comes back inside its parent's new set.
    sets: dict[tuple[str, str], cpuset.CPUSet] = field(default_factory=dict)

    def leave(
        self, entry: journal.Entry, why: str, *, forget: bool = True, tell: bool = False
    ) -> None:
        self.left.append(Left(target=entry.target, why=why, forget=forget, tell=tell))


def _undo(
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Iterable[journal.Entry],
    wanted: Iterable[action.Action],
) -> _Undoing:
    undoing = _Undoing()
    for one in wanted:
        if isinstance(one, action.WriteFile) and one.knob in _CUT:
            undoing.sets[one.knob, one.group] = cpuset.CPUSet.parse(one.value)
    todo = sorted(entries, key=lambda entry: (cgroup.depth(entry.group), entry.target))
    removed = {e.target for e in todo if e.kind == action.MakeDir.__name__}
    for entry in todo:
        if entry.kind == action.MoveTasks.__name__:
            _forget_move(undoing, entry, there, removed)
        elif entry.kind == action.MakeDir.__name__:
            _undo_directory(undoing, entry, now, there, todo)
        elif entry.target.rpartition("/")[0] in removed:
            undoing.leave(entry, "goes with its group")
        else:
            _undo_file(undoing, entry, now, there)
    return undoing


def _same_group(entry: journal.Entry, there: present.Present) -> bool:
    return entry.inode in (0, there.inodes.get(entry.target, 0))


def _forget_move(
    undoing: _Undoing, entry: journal.Entry, there: present.Present, removed: set[str]
) -> None:
    """Tasks go back when the group that we made for them goes; ``_undo_directory`` sees to it."""
    directory = entry.target.rpartition("/")[0]
    if directory not in removed or directory not in there.inodes:
        undoing.leave(entry, "its group is gone or not ours")


def _undo_directory(
    undoing: _Undoing,
    entry: journal.Entry,
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Sequence[journal.Entry],
) -> None:
    if entry.target not in there.inodes:
        undoing.leave(entry, "already gone")
        return
    if not _same_group(entry, there):
        undoing.leave(entry, "another group has taken its name since", tell=True)
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
            reason="koordlet made this group and it is not needed any more",
        )
    )


def _top(layout: cgroup.Layout, directory: str) -> str:
    """The root of the hierarchy that a directory is in."""
    mounts = (h.directory("") for h in layout.hierarchies if directory.startswith(h.mount + "/"))
    return next(mounts, directory.rpartition("/")[0])


def _undo_file(
    undoing: _Undoing, entry: journal.Entry, now: snapshot.Snapshot, there: present.Present
) -> None:
    current = there.texts.get(entry.target)
    if current is None or not _same_group(entry, there):
        undoing.leave(entry, "its group is gone")
        return
    write = action.WriteFile(
        target=entry.target,
        value=entry.original or "",
        policy=entry.policy,
        reason="back to what it was before koordlet",
        knob=entry.knob,
        group=entry.group,
    )
    if kinds.row_of(write) is knob.SUBTREE:
        _undo_switches(undoing, entry, write, current)
        return
    if kinds.same(write, write.value, current):
        undoing.leave(entry, "already as it was")
        return
    if not any(kinds.same(write, ours, current) for ours in entry.values):
        why = f"holds {current!r}, written by somebody else after our {entry.values[-1]!r}"
        undoing.leave(entry, why, tell=True)
        return
    back, problem = _original(entry, now, undoing)
    if problem:
        undoing.leave(entry, problem, forget=False, tell=True)
    elif kinds.same(write, back, current):
        undoing.leave(entry, "already as wide as it may be")
    else:
        undoing.actions.append(_with(write, back))


def _with(write: action.WriteFile, value: str) -> action.WriteFile:
    return action.WriteFile(
        target=write.target,
        value=value,
        policy=write.policy,
        reason=write.reason,
        knob=write.knob,
        group=write.group,
    )


def _undo_switches(
    undoing: _Undoing, entry: journal.Entry, write: action.WriteFile, current: str
) -> None:
    """Switch off what we switched on: what the original did not have, and is still on."""
    before = (entry.original or "").split()
    ours = {word[1:] for value in entry.values for word in value.split() if word.startswith("+")}
    on_now = [word for word in current.split() if word in ours and word not in before]
    if not on_now:
        undoing.leave(entry, "already as it was")
        return
    undoing.actions.append(_with(write, " ".join(f"-{word}" for word in on_now)))


def _original(entry: journal.Entry, now: snapshot.Snapshot, undoing: _Undoing) -> tuple[str, str]:
    """The value to put back, and why there is none."""
    text = entry.original or ""
    if entry.knob not in _CUT:
        return text, ""
    try:
        wish = cpuset.CPUSet.parse(text)
    except ValueError:
        return text, ""
    room = _room(entry, now, undoing) & _CUT[entry.knob](now)
    back = wish & room or room
    if not back:
        return "", "its parent has no CPU or node to give"
    undoing.sets[entry.knob, entry.group] = back
    group = now.groups.get(entry.group)
    if not wish and group is not None and "populated 0" in group.values.get(knob.EVENTS.name, ""):
        # The kernel's own "unset": an empty line. Zero bytes would be ignored.
        return "\n", ""
    return str(back), ""


#: What a set can be made of now, by knob.
_CUT: Mapping[str, Callable[[snapshot.Snapshot], cpuset.CPUSet]] = {
    knob.CPUSET_CPUS.name: lambda now: now.topology.online,
    knob.CPUSET_MEMS.name: lambda now: now.topology.memory_nodes,
}
_EFFECTIVE = {
    knob.CPUSET_CPUS.name: knob.CPUSET_EFFECTIVE.name,
    knob.CPUSET_MEMS.name: knob.MEMS_EFFECTIVE.name,
}


def _room(entry: journal.Entry, now: snapshot.Snapshot, undoing: _Undoing) -> cpuset.CPUSet:
    """What the groups above will leave: the nearest planned one, else the parent as observed."""
    for above in cgroup.ancestors(entry.group):
        planned = undoing.sets.get((entry.knob, above))
        if planned is not None:
            return planned
    parent = now.groups.get(entry.group.rpartition("/")[0])
    text = parent.values.get(_EFFECTIVE[entry.knob], "") if parent is not None else ""
    try:
        found = cpuset.CPUSet.parse(text)
    except ValueError:
        found = cpuset.CPUSet()
    return found or _CUT[entry.knob](now)
