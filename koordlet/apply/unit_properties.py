"""Table of systemd unit properties and the cgroup files that they set. Pure.

Covers: the table, values as D-Bus has them.
Does not cover: asking systemd (``host.systemd.bus``), when to (``apply.units``).

A property is spelled as its D-Bus type and value: ``t:100``, ``ay:0f`` (bytes in hex, the lowest
CPU first), so that the journal can keep it. Types and names: org.freedesktop.systemd1(5). Files
without a property (``cpu.max.burst``, ``cpuset.cpus.partition``, …) are written directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from koordlet.model import cpuset
from koordlet.model.record import dataclass

#: What systemd says of a number without a limit, or of one that is not set.
INFINITY = (1 << 64) - 1
_SECOND = 1_000_000
_PERIOD = 100_000

Properties = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One file of cgroup v2: its properties, and how a text becomes their values."""

    names: tuple[str, ...]
    convert: Callable[[str], tuple[str, ...]]


def _set(text: str) -> tuple[str, ...]:
    cpus = cpuset.CPUSet.parse(text)
    bits = sum(1 << cpu for cpu in cpus)
    return ("ay:" + bits.to_bytes((bits.bit_length() + 7) // 8, "little").hex(),)


def _number(text: str) -> tuple[str, ...]:
    return (f"t:{INFINITY if text == 'max' else int(text)}",)


def _weight(text: str) -> tuple[str, ...]:
    return (f"t:{int(text.removeprefix('default '))}",)


def _idle(text: str) -> tuple[str, ...]:
    """``CPUWeight=idle`` is the number 0; no other property says that a group does not idle."""
    if text != "1":
        raise ValueError(text)
    return ("t:0",)


def _quota(text: str) -> tuple[str, ...]:
    quota, _, period = text.partition(" ")
    length = int(period or _PERIOD)
    per_second = INFINITY if quota == "max" else int(quota) * _SECOND // length
    return (f"t:{per_second}", f"t:{length}")


TABLE: Mapping[str, Row] = {
    "cpuset.cpus": Row(("AllowedCPUs",), _set),
    "cpuset.mems": Row(("AllowedMemoryNodes",), _set),
    "cpu.weight": Row(("CPUWeight",), _weight),
    "cpu.idle": Row(("CPUWeight",), _idle),
    "cpu.max": Row(("CPUQuotaPerSecUSec", "CPUQuotaPeriodUSec"), _quota),
    "io.weight": Row(("IOWeight",), _weight),
    "memory.min": Row(("MemoryMin",), _number),
    "memory.low": Row(("MemoryLow",), _number),
    "memory.high": Row(("MemoryHigh",), _number),
    "memory.max": Row(("MemoryMax",), _number),
    "memory.swap.max": Row(("MemorySwapMax",), _number),
    "pids.max": Row(("TasksMax",), _number),
}


def of(file: str, text: str) -> Properties:
    """The properties that make a file say ``text``; none where there are no such."""
    row = TABLE.get(file)
    if row is None or not text.strip():
        return ()
    try:
        return tuple(zip(row.names, row.convert(text.strip()), strict=True))
    except (ValueError, OverflowError):
        return ()
