"""The sets of pods that would free enough of a node, the cheapest first. Pure.

Covers: candidates, branch and bound over them, how much is tried. Does not cover: who may move and
where to (``make_room``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.vectors import Ints
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.rescheduling.move_unit import MoveUnit

#: Pods that one plan moves to make room.
MOST_MOVES = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """Pods that may leave a node together."""

    unit: MoveUnit
    cost: float
    #: What it frees of the node where it is looked at.
    amounts: Ints

    @property
    def resident(self) -> Resident:
        """The one that leads, and most often is alone."""
        return self.unit.residents[0]


class SearchBudget:
    """So many chains, or sets, are tried in one search."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self) -> bool:
        """Whether one more may be tried."""
        self.left -= 1
        return self.left >= 0


def rank(candidate: Candidate) -> tuple[float, str]:
    """The order of candidates: the cheapest first, of equal ones the first by name."""
    return candidate.cost, candidate.resident.pod.key


def fewest(candidates: Sequence[Candidate], lacking: Ints) -> int:
    """So many pods at least have to go, by the largest of each resource."""
    least = 1
    for place in np.flatnonzero(lacking).tolist():
        largest = sorted((int(each.amounts[place]) for each in candidates), reverse=True)
        summed = np.cumsum(largest)
        least = max(least, 1 + int(np.searchsorted(summed, int(lacking[place]))))
    return least


def subsets(
    candidates: Sequence[Candidate], lacking: Ints, below: float
) -> Iterator[tuple[Candidate, ...]]:
    """The sets that free what is lacking and cost less, the cheapest first."""
    lines = np.flatnonzero(lacking)
    # In plain integers: arrays of so few elements cost ten times that.
    frees = [tuple(each.amounts[lines].tolist()) for each in candidates]
    enough: list[tuple[float, tuple[int, ...]]] = []

    def grow(start: int, chosen: tuple[int, ...], cost: float, left: Sequence[int]) -> None:
        if chosen and max(left, default=0) <= 0:
            enough.append((cost, chosen))
            return  # one more would only cost more
        if len(chosen) == MOST_MOVES:
            return
        for place in range(start, len(candidates)):
            if cost + candidates[place].cost >= below:
                return  # those that follow cost as much
            rest = [need - much for need, much in zip(left, frees[place], strict=True)]
            grow(place + 1, (*chosen, place), cost + candidates[place].cost, rest)

    grow(0, (), 0.0, lacking[lines].tolist())
    for _, chosen in sorted(enough):
        yield tuple(candidates[place] for place in chosen)
