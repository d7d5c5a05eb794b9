"""The order of writes that are not nested sets: rows first, then the tree. Pure.

Covers: the sort key of one write, weights beside ``cpu.idle``.
Does not cover: sets, switches, directories (``apply.ordering``).

Theory of operation. A row of the table says in which turn its file is raised and in which it is
lowered; raising goes from the top down, lowering from the bottom up. So, whatever becomes whatever:

* a v1 quota is raised when the groups above are raised already, and lowered when those below are
  lowered already: no child ever has more than the next limited group above it (EINVAL)
* a burst is lowered before any quota and raised after all: it is never more than its quota (EINVAL)
* ``cpu.idle`` is cleared before weights and set after them: an idle group takes none (EINVAL)
* memory and swap together are raised before and lowered after memory alone (EINVAL)
* protections (memory.min, memory.low) come before limits; a hard limit is raised before the soft
  one and lowered after it, so that a group is slowed down before it is killed
* a device's cost (io.cost.qos, io.cost.model) comes before weights on it: until one of them named
  the device these are refused (ENOTSUP). On the way back too: what was named once stays so
* nothing is ever above both its old and its new value, because each file is written once

Clearing ``cpu.idle`` gives the usual weight, not that of before (``sched_group_set_idle``,
kernel/sched/fair.c). So the weight is written, and remembered, also where its file already says
what it shall; and it is written back whatever the file says while the group still idles.
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.apply import kinds
from koordlet.model import action, cgroup, knob

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
