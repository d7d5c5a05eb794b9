"""CPU bursts capped at the quota that will be in force in their cgroup. Pure.

Covers: cutting bursts that are wanted, lowering one that is there where a quota shall go below it.
Does not cover: how much may be saved up (``cpu_burst``), the order of both (``apply.ordering``).

Rules:
1. The kernel refuses a burst above the quota, and a quota below the burst (EINVAL,
   ``tg_set_cfs_bandwidth`` in kernel/sched/core.c). Which quota comes of several policies is known
   once they are merged, so bursts are cut here and not where they are decided.
2. A burst that is in the way of a quota is lowered with it, whoever set it, and comes back with it.
3. A quota that nobody wants any more counts as the least of what it is and what it goes back to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.apply import kinds
from koordlet.model import action, cgroup, forms, knob
from koordlet.model.knob_row import Knob
from koordlet.state import journal

_BURST_OF: Mapping[str, Knob] = {
    knob.CPU_CFS_QUOTA.name: knob.CPU_CFS_BURST,
    knob.CPU_MAX.name: knob.CPU_BURST,
}
#: Each row to the one beside it.
_OTHER: Mapping[str, Knob] = {
    **_BURST_OF,
    **{burst.name: knob.TABLE[quota] for quota, burst in _BURST_OF.items()},
}


def beside(layout: cgroup.Layout, wanted: kinds.FileAction) -> tuple[str, str] | None:
    """File and row of the burst for a quota, or of the quota for a burst."""
    row = _OTHER.get(wanted.knob)
    target = None if row is None else layout.file(row, wanted.group)
    return None if row is None or target is None else (target, row.name)


def fit(
    layout: cgroup.Layout,
    wanted: Mapping[str, action.Action],
    texts: Mapping[str, str],
    going_back: Mapping[str, journal.Entry],
) -> dict[str, action.Action]:
    """Wanted actions by target, with bursts that fit their quotas.

    ``texts`` is what is there, ``going_back`` what nobody wants any more.
    """
    made = dict(wanted)
    for write in wanted.values():
        other = beside(layout, write) if isinstance(write, kinds.FILES) else None
        if other is None or not isinstance(write, kinds.FILES):
            continue
        target, row = other
        there, back = texts.get(target, ""), going_back.get(target)
        after = (back.original or there) if back is not None else there
        if write.knob not in _BURST_OF:
            quota = wanted.get(target)
            known = (quota.value,) if isinstance(quota, kinds.FILES) else (there, after)
            made[write.target] = _cut(write, min(map(_usec, known)))
        elif target not in wanted and _burst(after) > _usec(write.value):
            made[target] = _lowered(write, target, row)
    return made


def _cut(burst: kinds.FileAction, most: float) -> kinds.FileAction:
    if _burst(burst.value) <= most:
        return burst
    why = f"{burst.reason}, capped at the quota in force"
    return replace(burst, value=str(int(most)), reason=why)


def _lowered(quota: kinds.FileAction, target: str, row: str) -> action.WriteFile:
    return action.WriteFile(
        target=target,
        value=str(int(_usec(quota.value))),
        policy=quota.policy,
        reason=f"{quota.reason}; a burst may not exceed it",
        knob=row,
        group=quota.group,
    )


def _usec(text: str) -> float:
    """The quota in a text of either cgroup version; unreadable text is no bound."""
    try:
        usec = forms.Bandwidth().parse(text).usec
    except ValueError:
        return float("inf")
    return float("inf") if usec is None or usec < 0 else float(usec)


def _burst(text: str) -> float:
    return knob.CPU_BURST.form.measure(text)
