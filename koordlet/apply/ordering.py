"""The order of writes: every prefix of a plan is valid to the kernel and safe to stop at.

Covers: sets that nest (cpuset.cpus, cpuset.mems), switches, directories, tasks, the turns of all
other files.
Does not cover: what to write (``policy``), dropping what is so already (``apply.planner``).

Theory of operation. Let ``old`` and ``new`` be the values of each group of a tree.

0. A v2 group that lives on its parent's set is given that set as its own, where the parent will be
   widened: it would grow with it.
1. Top-down, each group that has groups inside it is widened to ``old | new`` where that is more
   than ``old``. Each write is legal: on v1 the parent was widened before. Afterwards every parent
   contains both the old and the new set of each child.
2. Each group goes to ``new``, bottom-up: first those that only give CPUs up, then those that swap,
   then those that only gain, so that a CPU is given up before another group gets it wherever the
   tree allows. On v1 each write is legal: its children are already inside ``new``, its parent
   still contains it.
3. A group that shall have no set, or on v2 one that is wider than what the groups above leave (as
   an empty one is put back where tasks are), gets that last, from the bottom: in step 2 it goes to
   what it will live on. Before, the group above could still be wider than that. Only where nothing
   planned bounds it, and somebody inside may need what it lacks, is it emptied in step 1.

So a task is never on fewer CPUs than ``old & new`` leaves it, no set is ever empty, and no set on
v2 ever loses touch with its parent's effective set, which would silently widen it to all of that.

Other files have turns. A row of the table says in which turn its file is raised and in which it is
lowered; raising goes from the top down, lowering from the bottom up. So, whatever becomes whatever:

* a v1 quota is raised when the groups above are raised already, and lowered when those below are
  lowered already: no child ever has more than the next limited group above it (EINVAL)
* a burst is lowered before any quota and raised after all: it is never more than its quota (EINVAL)
* ``cpu.idle`` is cleared before weights and set after them: an idle group takes none (EINVAL)
* memory and swap together are raised before and lowered after memory alone (EINVAL)
* protections (memory.min, memory.low) come before limits; a hard limit is raised before the soft
  one and lowered after it, so that a group is slowed down before it is killed
* threads are ordinary again before their groups give up real time (EBUSY)
* a device's cost (io.cost.qos, io.cost.model) comes before weights on it: until one of them named
  the device these are refused (ENOTSUP). On the way back too: what was named once stays so
* nothing is ever above both its old and its new value, because each file is written once

Clearing ``cpu.idle`` gives the usual weight, not that of before (``sched_group_set_idle``,
kernel/sched/fair.c). So the weight is written, and remembered, also where its file already says
what it shall; and it is written back whatever the file says while the group still idles.

Kernel facts, tried on 6.1 and 6.18: on v1 a child outside its parent is EACCES, a parent that drops
a child's CPU is EBUSY, an empty set with tasks is ENOSPC. On v2 every order is accepted, and a set
without overlap with its parent's effective set falls back to that whole set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from koordlet.apply import kinds
from koordlet.model import action, cgroup, cpuset, knob
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """One action in its place."""

    action: action.Action
    #: True for an intermediate value; the final one follows.
    interim: bool = False


def order(
    actions: Iterable[action.Action],
    texts: Mapping[str, str],
    in_effect: Mapping[str, str] | None = None,
) -> tuple[Ordered, ...]:
    """Put actions into a safe order.

    ``texts`` are the current contents by path; a set without one is taken as empty. ``in_effect``
    has the sets that are not what their text says, because they live on their parent's.
    """
    effects = in_effect or {}
    phases: dict[kinds.Phase, list[action.Action]] = {phase: [] for phase in kinds.Phase}
    for wanted in actions:
        phases[_phase(wanted, texts)].append(wanted)
    ordered: list[Ordered] = []
    for phase, members in phases.items():
        if phase is kinds.Phase.SETS:
            writes = [write for write in members if isinstance(write, action.WriteFile)]
            ordered.extend(_sets(writes, texts, effects))
        elif phase in (kinds.Phase.CLEAR, kinds.Phase.FREE):
            writes = [write for write in members if isinstance(write, action.WriteFile)]
            writes.sort(key=lambda write: turn(write, texts.get(write.target, "")))
            threads = [change for change in members if not isinstance(change, action.WriteFile)]
            ordered.extend(Ordered(action=change) for change in (*threads, *writes))
        else:
            # Directories and switches: on from the top, off from the bottom.
            falling = phase in (kinds.Phase.SWITCH_OFF, kinds.Phase.REMOVE)
            members.sort(key=_top_down, reverse=falling)
            ordered.extend(Ordered(action=placed) for placed in members)
    return tuple(ordered)


def _phase(wanted: action.Action, texts: Mapping[str, str]) -> kinds.Phase:
    """The phase of an action; writes that clear the way for limits come in their own."""
    phase = kinds.phase(wanted)
    if phase is kinds.Phase.FREE and isinstance(wanted, action.WriteFile):
        return kinds.Phase.CLEAR if clears(wanted, texts.get(wanted.target, "")) else phase
    return phase


def _top_down(wanted: action.Action) -> tuple[int, str]:
    return (cgroup.depth(wanted.group), wanted.target)


@dataclass(frozen=True, slots=True)
class _Move:
    """One set on its way from old to new."""

    write: action.WriteFile
    old: cpuset.CPUSet
    new: cpuset.CPUSet
    #: True where ``old`` is the parent's, and so changes with it.
    borrowed: bool


def _sets(
    writes: Sequence[action.WriteFile], texts: Mapping[str, str], effects: Mapping[str, str]
) -> Iterable[Ordered]:
    """Order the writes of nested sets, each row of the table by itself."""
    # Mems first: a v1 group without mems takes no task, and more memory never hurts.
    rows = sorted(
        {write.knob for write in writes}, key=lambda row: (row != knob.CPUSET_MEMS.name, row)
    )
    for row in rows:
        moves = [_move(write, texts, effects) for write in writes if write.knob == row]
        moves.sort(key=lambda move: _top_down(move.write))
        tree = _tree(moves)
        yield from _pin(moves)
        yield from _widen(moves, tree)
        yield from _narrow(moves, tree)


def _move(wanted: action.WriteFile, texts: Mapping[str, str], effects: Mapping[str, str]) -> _Move:
    borrowed = wanted.target in effects
    text = effects[wanted.target] if borrowed else texts.get(wanted.target, "")
    return _Move(wanted, cpuset.lenient(text), cpuset.lenient(wanted.value), borrowed)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Planned cgroups by path."""

    #: Levels of planned groups below it: 0 for a leaf.
    heights: Mapping[str, int]
    #: The set that it will live on, as far as the planned groups above it decide that.
    effects: Mapping[str, cpuset.CPUSet]
    #: Emptied groups around such as keep a set, which nothing planned bounds: they are first.
    free: frozenset[str]


def _tree(moves: Sequence[_Move]) -> _Tree:
    """Of moves from the top. Cost: n times the depth."""
    effects = _effects(moves)
    around = {above for move in moves if move.new for above in cgroup.ancestors(move.write.group)}
    free = frozenset(group for group, end in effects.items() if not end and group in around)
    return _Tree(_heights(moves), effects, free)


def _heights(moves: Sequence[_Move]) -> dict[str, int]:
    heights = {move.write.group: 0 for move in moves}
    for move in moves:
        own = cgroup.depth(move.write.group)
        for above in cgroup.ancestors(move.write.group):
            if above in heights:
                heights[above] = max(heights[above], own - cgroup.depth(above))
    return heights


def _pin(moves: Sequence[_Move]) -> Iterable[Ordered]:
    """Step 0: pin an inherited cpuset explicitly before widening its parent."""
    wider = {move.write.group for move in moves if move.new - move.old}
    for move in moves:
        above = wider.intersection(cgroup.ancestors(move.write.group))
        if move.borrowed and move.new and above:
            yield Ordered(
                action=replace(move.write, value=str(move.old)), interim=move.old != move.new
            )


def _widen(moves: Sequence[_Move], tree: _Tree) -> Iterable[Ordered]:
    """Step 1: groups with planned groups inside them, from the top, to ``old | new``."""
    for move in moves:
        group = move.write.group
        both = move.old | tree.effects[group]
        if group in tree.free:
            yield Ordered(action=move.write)
        elif tree.heights[group] and both != move.old:
            yield Ordered(action=replace(move.write, value=str(both)), interim=both != move.new)


def _narrow(moves: Sequence[_Move], tree: _Tree) -> Iterable[Ordered]:
    """Steps 2 and 3: every group to ``new``, from the bottom; givers before takers."""
    heights, effects = tree.heights, tree.effects

    def turn(move: _Move) -> tuple[int, int, str]:
        end = effects[move.write.group]
        gain = 0 if end <= move.old else 1 if move.old - end else 2
        return (heights[move.write.group], gain, move.write.target)

    in_turn = [move for move in sorted(moves, key=turn) if move.write.group not in tree.free]
    for move in in_turn:
        end = effects[move.write.group]
        # A parent that only gains had this value in step 1.
        widened = heights[move.write.group] and move.old < end
        if not widened and (end == move.new or end != move.old):
            yield Ordered(action=replace(move.write, value=str(end)), interim=end != move.new)
    for move in in_turn:
        if effects[move.write.group] != move.new:
            yield Ordered(action=move.write)


def _effects(moves: Sequence[_Move]) -> dict[str, cpuset.CPUSet]:
    """The set that each group will live on: its own within its parents', else the nearest parent's.

    Empty where no set is planned at all: it will live on one that does not change.
    """
    effects: dict[str, cpuset.CPUSet] = {}
    for move in moves:
        above = (
            effects[above] for above in cgroup.ancestors(move.write.group) if effects.get(above)
        )
        bound = next(above, move.new)
        effects[move.write.group] = move.new & bound or bound
    return effects


# Turns --------------------------------------------------------------------------------------------


Key = tuple[int, int, str]

#: Up to this rank a write makes way for limits and weights: systemd writes those before all files.
_CLEARS = 10


def turn(wanted: action.WriteFile, current: str) -> Key:
    """Sort key of a write: rank, depth (from the side that is written first), target."""
    row = kinds.row_of(wanted)
    depth = cgroup.depth(wanted.group)
    if row is None:
        return (50, depth, wanted.target)
    rises = row.form.measure(wanted.value) >= row.form.measure(current)
    return (
        (row.turn.rises, depth, wanted.target) if rises else (row.turn.falls, -depth, wanted.target)
    )


def clears(wanted: action.WriteFile, current: str) -> bool:
    """Whether the current value would make the kernel refuse limits of the same cgroup."""
    return turn(wanted, current)[0] <= _CLEARS


def weights_beside(
    wishes: Iterable[action.Action], changes: Iterable[action.Action]
) -> list[action.Action]:
    """Of the wishes, the weights of groups whose ``cpu.idle`` is among the changes."""
    idle = {each.group for each in changes if _knob(each) == knob.CPU_IDLE.name}
    if not idle:
        return []
    return [each for each in wishes if _knob(each) in knob.WEIGHTS and each.group in idle]


def _knob(wanted: action.Action) -> str:
    return wanted.knob if isinstance(wanted, action.WriteFile) else ""
