"""Amounts of resources as Kubernetes prints them.

Covers: the canonical text of an amount, in powers of two or of ten.
Does not cover: reading quantities (``quantity``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")


def cpu(milli: int) -> str:
    """``500m``, ``4``."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def amount(units: int, *, decimal: bool = False) -> str:
    """With the largest suffix that leaves a whole number: ``800Mi``; ``800M`` in powers of ten."""
    base, suffixes = (1000, _DECIMAL) if decimal else (1024, _BINARY)
    place = 0
    while units and place < len(suffixes) - 1 and units % base == 0:
        units //= base
        place += 1
    return f"{units}{suffixes[place]}"


def is_decimal(spelled: object) -> bool:
    """Whether a quantity was written without a binary suffix: its sums are printed alike."""
    return not str(spelled).endswith("i")


def resources(amounts: Mapping[str, int], decimal: Iterable[str] = ()) -> dict[str, str]:
    """A resource list; CPU is given in thousandths."""
    ten = set(decimal)
    return {
        name: cpu(value) if name == "cpu" else amount(value, decimal=name in ten)
        for name, value in amounts.items()
    }
