"""Kubernetes quantities, in exact integers.

Covers: parsing every spelling of ``resource.Quantity`` into milli-units or units.
Does not cover: printing them back in the canonical form (``model.quantity_text``).

Rounding is up, as ``Quantity.MilliValue`` and ``Quantity.Value`` do: 0.5m of CPU is 1m.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

_FORM = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)"
    r"(?:(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?\d{1,3}))?\Z",
    re.ASCII,
)
_SUFFIX: dict[str | None, Fraction] = {
    None: Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    **{name: Fraction(10 ** (3 * power)) for power, name in enumerate("kMGTPE", 1)},
    **{name + "i": Fraction(2 ** (10 * power)) for power, name in enumerate("KMGTPE", 1)},
}
#: The peer stores quantities in 64 bits and clamps what is larger.
_LIMIT = 2**63 - 1
_MAX_TEXT = 64


def milli(text: str | float) -> int:
    """Thousandths, rounded up: ``"1.5"`` is 1500. ``ValueError`` for what is no quantity."""
    return _ceil(exact(text) * 1000)


def units(text: str | float) -> int:
    """The quantity in whole units, rounded up: ``"1Ki"`` → 1024."""
    return _ceil(exact(text))


def exact(text: str | float) -> Fraction:
    """The quantity as it is written; ``ValueError`` for what is none."""
    spelled = str(text).strip()
    match = _FORM.match(spelled) if len(spelled) <= _MAX_TEXT else None
    if match is None:
        raise ValueError(f"not a quantity: {spelled[:_MAX_TEXT]!r}")
    sign, number, suffix, exponent = match.groups()
    value = Fraction(number) * (Fraction(10) ** int(exponent) if exponent else _SUFFIX[suffix])
    return -value if sign == "-" else value


def _ceil(value: Fraction) -> int:
    return max(-_LIMIT, min(_LIMIT, math.ceil(value)))
