"""Builds disjoint groups from the sibling lists of CPUs.

Covers: dense group numbers from sibling sets, with contradictions found and left out.
Does not cover: where the sets come from (``discovery``, ``caches``).

Rules, in order:
1. Equal sets are one group. A CPU that says nothing belongs to the group whose set names it.
2. Where sets overlap, a set stands if more than half of the CPUs that have a say in it (all whose
   set meets it) agree on it; the CPUs that said otherwise belong to no known group.
3. Numbers are dense, ordered by the lowest CPU of the group.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import cpuset
from koordlet.model.record import dataclass

#: Voting compares each contested set with each other one; beyond this nobody is right.
_MAX_CONTESTED = 256


@dataclass(frozen=True, slots=True)
class Groups:
    """The outcome: a number for each CPU of a known group, and who contradicted whom."""

    number: Mapping[int, int]
    #: CPUs whose own set was refused.
    refused: tuple[int, ...] = ()


def form(claims: Mapping[int, cpuset.CPUSet]) -> Groups:
    """Groups from the set that each CPU claims; sets are already cut to online CPUs."""
    votes: dict[int, int] = {}
    for claim in claims.values():
        votes[claim.bits] = votes.get(claim.bits, 0) + 1
    contested = _contested(votes)
    standing = set(votes) - contested
    if contested and len(contested) <= _MAX_CONTESTED:
        standing |= {
            bits
            for bits in contested
            if 2 * votes[bits] > sum(votes[other] for other in contested if other & bits)
        }
    refused = tuple(sorted(cpu for cpu, claim in claims.items() if claim.bits not in standing))
    number: dict[int, int] = {}
    ordered = sorted(standing, key=lambda bits: bits & -bits)
    for index, bits in enumerate(ordered):
        for cpu in cpuset.CPUSet(bits):
            number[cpu] = index
    # A refused CPU may be a member of a standing set that it disagrees with.
    for cpu in refused:
        number.pop(cpu, None)
    return Groups(number=dense(number), refused=refused)


def _contested(votes: Mapping[int, int]) -> set[int]:
    """The sets that share a CPU with another set."""
    seen = shared = 0
    for bits in votes:
        shared |= seen & bits
        seen |= bits
    return {bits for bits in votes if bits & shared}


def dense(number: Mapping[int, int]) -> dict[int, int]:
    """Renumber by lowest remaining CPU."""
    order: dict[int, int] = {}
    return {cpu: order.setdefault(number[cpu], len(order)) for cpu in sorted(number)}
