"""Crowding: what a node says with guests on it, the pods that are nominated for it.

Covers: a pod that the node takes alone, and one that it refuses anyway. Does
not cover: who is nominated (``loop.outcomes``), the dry runs of preemption (``dryrun``).

Of a node that refuses a pod anyway the reasons are those with its guests: kube-scheduler looks at
it with them first, and without them only where it passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import Verdict
from koordlet.scheduler.framework.dryrun import (
    CachedRefusal,
    ResourceSums,
    joined,
    more_than_amounts,
)
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.resources import NodeResourcesFit


def beside(
    columns: Columns,
    view: View,
    row: int,
    guests: Sequence[Pod],
    known: dict[int, CachedRefusal],
) -> Verdict | None:
    """Why a feasible node is none with guests on it; ``known`` takes in what sums say."""
    sums = ResourceSums.of(columns, view)
    if sums is None or any(map(more_than_amounts, guests)):
        return _joined(columns, view, row, guests)
    spare = sums.spare(row, guests, ())
    if min(spare) >= 0:
        return None
    verdict = _refusal(sums, row, spare)
    known[row] = CachedRefusal(columns.looks[row], tuple(guests), verdict)
    return verdict


def refused_beside(
    columns: Columns,
    view: View,
    known: dict[int, CachedRefusal],
    promised: Callable[[int], Sequence[Pod]],
) -> dict[int, Verdict]:
    """What ``beside`` found of nodes for an equal pod, as far as it holds; the rest is dropped."""
    if ResourceSums.of(columns, view) is None:
        known.clear()
    for row, refusal in [*known.items()]:
        if refusal.look != columns.looks[row] or refusal.guests != tuple(promised(row)):
            del known[row]
    return {row: refusal.verdict for row, refusal in known.items()}


def crowded(
    columns: Columns,
    view: View,
    alone: Mapping[int, Verdict],
    guests: Mapping[int, Sequence[Pod]],
    known: dict[int, CachedRefusal],
) -> dict[int, Verdict]:
    """What nodes that refuse a pod ``alone`` say otherwise with guests, by row.

    ``known`` takes in what sums say, and answers as long as it holds.
    """
    sums = ResourceSums.of(columns, view)
    verdicts = {}
    for row, several in guests.items():
        own, refusal = alone[row], known.get(row) if sums is not None else None
        # Nearly always: whoever finds no room comes by everybody who waits for theirs.
        if (
            refusal is not None
            and refusal.look == columns.looks[row]
            and refusal.guests == tuple(several)
        ):
            verdict = refusal.verdict
        elif sums is None or any(map(more_than_amounts, several)):
            verdict = _joined(columns, view, row, several) or own
        else:
            spare, verdict = sums.spare(row, several, ()), own
            if min(spare) < 0 and own.plugin == NodeResourcesFit.name:
                verdict = _refusal(sums, row, spare)
            elif min(spare) < 0:
                # Who refuses it may be asked before the amounts, or after them.
                verdict = _joined(columns, view, row, several) or own
            verdict = own if verdict == own else verdict
            known[row] = CachedRefusal(columns.looks[row], tuple(several), verdict)
        if verdict is not own and verdict != own:
            verdicts[row] = verdict
    return verdicts


def _refusal(sums: ResourceSums, row: int, spare: list[int]) -> Verdict:
    return replace(sums.fit.refusal(row, spare), plugin=NodeResourcesFit.name)


def _joined(columns: Columns, view: View, row: int, guests: Sequence[Pod]) -> Verdict | None:
    with joined(columns, row, guests):
        return None if view.passes(row) else view.verdict(row)
