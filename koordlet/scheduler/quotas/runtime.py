"""Dividing an amount among sibling quotas: scaled minimum and runtime, in exact integers.

Covers: one resource of one parent. Does not cover: where requests come from, which names are
divided (``tree``).

Rules:
1. Where the minimums exceed the total, those that scale share what the others leave, in proportion.
2. Who asks for no more than its floor has what it asks for, or the floor where it does not lend.
   The others have their floor and share what is left by weight.
3. Units that do not divide go singly to the largest remainders; ties go by name.
4. What somebody gets beyond its request is shared again among those who still want.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

#: Gets the name of a sibling and a sentence about how its number came about.
Trace = Callable[[str, str], None]


class Claim(NamedTuple):
    """What one sibling claims of one resource; a tuple, as each division makes one a sibling."""

    name: str
    minimum: int
    request: int
    weight: int
    lends: bool = True
    #: Never less than this, however small the total.
    guaranteed: int = 0
    scales: bool = True


def scaled_minimums(total: int, claims: Sequence[Claim]) -> list[int]:
    """The minimum of each sibling, scaled where the total is less than their sum (rule 1)."""
    if total >= sum(claim.minimum for claim in claims):
        return [claim.minimum for claim in claims]
    rest = max(0, total - sum(claim.minimum for claim in claims if not claim.scales))
    scalable = sum(claim.minimum for claim in claims if claim.scales)
    return [
        rest * claim.minimum // scalable if claim.scales and scalable else claim.minimum
        for claim in claims
    ]


def runtimes(
    total: int, claims: Sequence[Claim], *, scales: bool = True, trace: Trace | None = None
) -> list[int]:
    """What each sibling may use now."""
    minimums = scaled_minimums(total, claims) if scales else [claim.minimum for claim in claims]
    floors = [
        max(minimum, claim.guaranteed) for minimum, claim in zip(minimums, claims, strict=True)
    ]
    shares = [
        floor if claim.request > floor or not claim.lends else claim.request
        for floor, claim in zip(floors, claims, strict=True)
    ]
    left = total - sum(shares)
    if trace is not None:
        _trace_floors(trace, total, claims, minimums, shares)
    while left > 0:
        wanting = [
            place
            for place, claim in enumerate(claims)
            if claim.weight > 0 and claim.request > shares[place]
        ]
        if not wanting:
            break
        left = _pour(left, claims, shares, wanting, trace)
    return shares


def _pour(
    left: int,
    claims: Sequence[Claim],
    shares: list[int],
    wanting: Sequence[int],
    trace: Trace | None,
) -> int:
    """Share what is left among those who want (rule 3); the surplus (rule 4)."""
    weights = sum(claims[place].weight for place in wanting)
    parts = {place: divmod(left * claims[place].weight, weights) for place in wanting}
    units = left - sum(base for base, _ in parts.values())
    # Shares differ by less than one unit from the exact ones, so there are fewer units than wants.
    by_rest = sorted(wanting, key=lambda place: (-parts[place][1], claims[place].name))
    lucky = frozenset(by_rest[:units])
    surplus = 0
    for place in wanting:
        claim, share = claims[place], parts[place][0] + (place in lucky)
        kept = min(share, claim.request - shares[place])
        shares[place] += kept
        surplus += share - kept
        if trace is not None:
            words = f"{left} left, weight {claim.weight} of {weights}: +{share}"
            cut = f", {share - kept} beyond its request go back" if kept < share else ""
            trace(claim.name, f"{words}{cut} = {shares[place]}")
    return surplus


def _trace_floors(
    trace: Trace,
    total: int,
    claims: Sequence[Claim],
    minimums: Sequence[int],
    shares: Sequence[int],
) -> None:
    for claim, minimum, share in zip(claims, minimums, shares, strict=True):
        scaled = f" scaled to {minimum} by the total {total}" if minimum != claim.minimum else ""
        held = f", guaranteed {claim.guaranteed}" if claim.guaranteed else ""
        how = "the floor, and shares what is left" if claim.request > share else "its request"
        if claim.request < share:
            how = "the floor, as it does not lend"
        words = f"min {claim.minimum}{scaled}{held}, request {claim.request}: {how}"
        trace(claim.name, f"{words} = {share}")
