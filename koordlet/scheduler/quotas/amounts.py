"""Amounts of quotas: adding in place, the larger of two, printing as the peer does.

Covers: arithmetic on dictionaries without zeros, lists in messages.
Does not cover: reading quantities (``model.resources``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from koordlet.model import resources

Amounts = Mapping[str, int]

NONE: Amounts = {}
#: Names that the peer counts in bytes, and prints with binary suffixes.
_BYTES = ("memory", "storage", "hugepages-")


def add(amounts: dict[str, int], change: Amounts, sign: int = 1) -> None:
    """Add amounts in place; what becomes zero goes."""
    for name, much in change.items():
        after = amounts.get(name, 0) + sign * much
        if after:
            amounts[name] = after
        else:
            amounts.pop(name, None)


def difference(amounts: Amounts, before: Amounts) -> Amounts:
    """What has to be added to ``before``; without zeros."""
    if amounts is before:
        return NONE
    if not before:
        return amounts
    names = dict.fromkeys((*amounts, *before))
    changes = ((name, amounts.get(name, 0) - before.get(name, 0)) for name in names)
    return {name: change for name, change in changes if change}


def largest(amounts: Amounts, others: Amounts) -> dict[str, int]:
    """The larger of two by name."""
    return {name: much for name, much in resources.most((amounts, others)).items() if much}


def smallest(several: Sequence[Amounts], number: int) -> dict[str, int]:
    """What so many of them need at least: of each name the smallest amounts."""
    names = dict.fromkeys(name for amounts in several for name in amounts)
    return {
        name: sum(sorted(amounts.get(name, 0) for amounts in several)[: max(0, number)])
        for name in names
    }


def exceeding(amounts: Amounts, bound: Amounts) -> list[str]:
    """The names whose amount is more than their bound; a name without one is bounded by zero."""
    if amounts is bound or not amounts:
        return []
    return sorted(name for name, much in amounts.items() if much > bound.get(name, 0))


def quantities(amounts: Amounts) -> dict[str, str]:
    """As quantities: bytes with binary suffixes, counts with decimal ones."""
    tens = [name for name in amounts if not any(word in name for word in _BYTES)]
    return resources.canonical(amounts, tens)


def listed(amounts: Amounts, names: Iterable[str] | None = None) -> str:
    """A list for a message: ``cpu:5,memory:10Gi``, sorted by name."""
    chosen = amounts if names is None else {name: amounts.get(name, 0) for name in names}
    parts = (f"{name}:{spelled}" for name, spelled in sorted(quantities(chosen).items()))
    return ",".join(parts) or "<empty>"
