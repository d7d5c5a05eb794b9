"""NodeResourcesBalancedAllocation: how even the shares of CPU and memory become.

Covers: the score. Does not cover: how full a node becomes, the amounts of a score (``resources``).

The balance is in double precision in the peer's order of operations, so that it is cut at the same
places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.plugins.resources import Chosen, weighted


class NodeResourcesBalancedAllocation(framework.Plugin):
    """Whether the pod makes the shares of CPU and memory more even or less."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._resources = weighted(wire.bodies(args, "resources"))

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        if not any(pod_class.requests.real.get(name, 0) for name, _ in self._resources):
            return None
        return Balanced(Chosen(columns, pod_class.requests.real, self._resources, nonzero=False))


class Balanced(framework.Score):
    """About 75 is neutral, more is more even than before."""

    kind = framework.Kind.LOAD

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen

    def raw(self, rows: Rows) -> Ints:
        room, held = self._chosen.room(rows), self._chosen.held(rows)
        after = evenness(held + self._chosen.asked, room)
        moved = 50 + after - evenness(held, room)
        # Cut toward zero: the difference may be negative.
        half: Ints = (np.abs(moved) >> 1) * np.sign(moved)
        return half + 50

    def one(self, row: int) -> int:
        amounts = [
            (room, held, asked) for _, room, held, asked in self._chosen.triples(row) if room
        ]
        if len(amounts) > 2:
            return super().one(row)
        before = after = 100
        if len(amounts) == 2:
            (room, held, asked), (space, taken, more) = amounts
            before = _pair(held / room, taken / space)
            after = _pair((held + asked) / room, (taken + more) / space)
        # Two shares deviate by half at most: the sum is never negative.
        return 50 + (50 + after - before) // 2


def _pair(share: float, other: float) -> int:
    """The same for two shares."""
    return int((1 - abs(min(share, 1.0) - min(other, 1.0)) / 2) * 100.0)


def evenness(wanted: Ints, room: Ints) -> Ints:
    """100 for equal shares, less the more they deviate."""
    usable = room > 0
    shares = np.where(usable, np.minimum(wanted / np.maximum(room, 1), 1.0), 0.0)
    many = usable.sum(axis=0)
    low = np.where(usable, shares, 2.0).min(axis=0, initial=2.0)
    spread = np.where(many == 2, (shares.max(axis=0, initial=0.0) - low) / 2, 0.0)
    if wanted.shape[0] > 2:
        safe = np.maximum(many, 1)
        squares = np.where(usable, (shares - shares.sum(axis=0) / safe) ** 2, 0.0)
        spread = np.where(many > 2, np.sqrt(squares.sum(axis=0) / safe), spread)
    scores: Ints = ((1 - spread) * 100.0).astype(np.int64)
    return scores
