"""Weights of groups whose ``cpu.idle`` changes: the kernel changes both. Pure.

Covers: which weights are written beside it. Does not cover: the order (``apply.turns``).

Clearing ``cpu.idle`` gives the usual weight, not that of before (``sched_group_set_idle``,
kernel/sched/fair.c). So the weight is written, and remembered, also where its file already says
what it shall; and it is written back whatever the file says while the group still idles.
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.model import action, knob


def beside(
    wishes: Iterable[action.Action], changes: Iterable[action.Action]
) -> list[action.Action]:
    """Of the wishes, the weights of groups whose ``cpu.idle`` is among the changes."""
    idle = {each.group for each in changes if _knob(each) == knob.CPU_IDLE.name}
    if not idle:
        return []
    return [each for each in wishes if _knob(each) in knob.WEIGHTS and each.group in idle]


def _knob(wanted: action.Action) -> str:
    return wanted.knob if isinstance(wanted, action.WriteFile) else ""
