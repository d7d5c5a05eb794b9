"""Amounts of resources: one integer for each name, in one unit for each name.

Covers: names, units, reading quantities, adding, comparing, printing back.
Does not cover: what a pod asks for in total (``kubeapi.pod_amounts``).

Units: ``cpu`` is in thousandths of a core. Everything else is in the quantity's own unit, rounded
up: memory in bytes, devices in pieces. ``batch-cpu`` and ``mid-cpu`` count thousandths of a core by
their definition, so their quantity is already the amount.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from koordlet.model import qos, quantity, quantity_text

Amounts = Mapping[str, int]

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
BATCH_CPU = "kubernetes.io/batch-cpu"
BATCH_MEMORY = "kubernetes.io/batch-memory"
MID_CPU = "kubernetes.io/mid-cpu"
MID_MEMORY = "kubernetes.io/mid-memory"

#: The resources that stand for CPU and memory of nodes in bands of their own.
BY_BAND: Mapping[qos.Band, Mapping[str, str]] = {
    qos.Band.BATCH: {CPU: BATCH_CPU, MEMORY: BATCH_MEMORY},
    qos.Band.MID: {CPU: MID_CPU, MEMORY: MID_MEMORY},
}

NONE: Amounts = {}

#: The peer's older names of the same resources.
_ALIASES = {"koordinator.sh/batch-cpu": BATCH_CPU, "koordinator.sh/batch-memory": BATCH_MEMORY}
#: Different texts of quantities on a node are few; the exact arithmetic is slow.
_REMEMBERED = 4096


@functools.lru_cache(maxsize=_REMEMBERED)
def amount(name: str, text: str | float) -> int:
    """One quantity in the unit of its resource; ``ValueError`` for what is none."""
    return quantity.milli(text) if name == CPU else quantity.units(text)


def current_name(name: str) -> str:
    """The name of a resource as it is spelled now."""
    return _ALIASES.get(name, name)


def read(body: Mapping[str, object], problems: list[str], where: str) -> dict[str, int]:
    """A resource list; an entry that is no quantity, or negative, is dropped with a problem."""
    result: dict[str, int] = {}
    for name, spelled in body.items():
        if isinstance(spelled, bool) or not isinstance(spelled, str | int | float):
            problems.append(
                f"{where}.{name[:80]} is not a quantity: found {type(spelled).__name__}"
            )
            continue
        try:
            value = amount(name, spelled)
        except ValueError as error:
            problems.append(f"{where}.{name[:80]}: {error}")
            continue
        if value < 0:
            problems.append(f"{where}.{name[:80]} is negative: {str(spelled)[:40]!r}")
            continue
        known = current_name(name)
        # Where both spellings are there, the current one counts.
        if known == name or known not in body:
            result[known] = value
    return result


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    """The sum by name."""
    result: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            result[name] = result.get(name, 0) + value
    return result


def most(parts: Iterable[Amounts]) -> dict[str, int]:
    """The largest by name."""
    result: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            result[name] = max(result.get(name, value), value)
    return result


def texts(amounts: Amounts) -> dict[str, str]:
    """As quantities: ``{"cpu": 1500}`` prints as ``1500m``, whole cores as ``2``."""
    return {name: text(name, value) for name, value in amounts.items()}


def canonical(amounts: Amounts, decimal: Iterable[str] = ()) -> dict[str, str]:
    """As Kubernetes prints them, with the largest suffix; some in powers of ten."""
    tens = frozenset(decimal)
    return {
        name: text(name, value)
        if name == CPU
        else (quantity_text.decimal if name in tens else quantity_text.binary)(value)
        for name, value in amounts.items()
    }


def text(name: str, value: int) -> str:
    """One amount as a quantity."""
    if name != CPU:
        return str(value)
    cores, rest = divmod(value, 1000)
    return f"{value}m" if rest else str(cores)
