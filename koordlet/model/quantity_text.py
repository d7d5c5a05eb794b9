"""Kubernetes quantities in their canonical spelling, as events and messages print them.

Covers: a text to its canonical form, numbers in binary and decimal form.
Does not cover: what a text is worth (``model.quantity``).

The canonical form has no fraction and the largest suffix that leaves a whole number; the family of
suffixes (binary, decimal, exponent) stays that of the text. Numbers below 1024 in binary form have
the decimal form, because there is no smaller binary suffix.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from koordlet.model import quantity

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_EXPONENT = re.compile(r"[eE][+-]?\d+\Z", re.ASCII)
_NANO = 10**9


def canonical(text: str) -> str:
    """A quantity as the API prints it; ``ValueError`` for what is none."""
    value = quantity.exact(text)
    if text.endswith("i"):
        return binary(value)
    return _scaled(value, exponent=_EXPONENT.search(text) is not None)


def binary(value: int | Fraction) -> str:
    """Bytes: ``1572864000`` is ``1500Mi``. Fractions are rounded up."""
    if -1024 < value < 1024:
        return decimal(value)
    whole = math.ceil(value)
    power = 0
    while whole % 1024 == 0 and whole and power < len(_BINARY) - 1:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY[power]}"


def decimal(value: int | Fraction) -> str:
    """Counts: ``1500000`` is ``1500k``."""
    return _scaled(Fraction(value), exponent=False)


def is_decimal(spelled: object) -> bool:
    """Whether a quantity was written without a binary suffix: its sums are printed alike."""
    return not str(spelled).endswith("i")


def _scaled(value: Fraction, *, exponent: bool) -> str:
    """In thousandths of thousandths of thousandths, rounded up, then as few digits as possible."""
    whole = math.ceil(value * _NANO)
    if whole == 0:
        return "0"
    place = 0
    while whole % 1000 == 0 and place < len(_DECIMAL) - 1:
        whole //= 1000
        place += 1
    power = 3 * (place - 3)
    if exponent:
        return f"{whole}e{power}" if power else str(whole)
    return f"{whole}{_DECIMAL[place]}"
