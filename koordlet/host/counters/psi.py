"""Pressure stall information, as its files say it.

Covers: the eight numbers of a pressure file, of the node or of a group.
Does not cover: triggers (they need a descriptor of their own).

Kernel facts: Documentation/accounting/psi.rst. The averages are percents; ``total`` is microseconds
of stall. Before 5.13 the file of the CPU has no ``full`` line.
"""

from __future__ import annotations

import re

from koordlet.model import counters

_LINE = rb"%s avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)\s*"
_FILE = re.compile(_LINE % b"some" + rb"(?:" + _LINE % b"full" + rb")?")
_MICROSECOND = 1e-6


def values(text: bytes) -> tuple[float, ...]:
    """Some and full: three averages and the stall time in seconds, each. ``ValueError`` else."""
    found = _FILE.match(text)
    if found is None:
        raise ValueError(f"not a pressure file: {text[:60]!r}")
    some = found.group(1, 2, 3, 4)
    full = found.group(5, 6, 7, 8)
    return (*_half(some), *(_half(full) if full[3] is not None else (counters.NAN,) * 4))


def _half(numbers: tuple[bytes, ...]) -> tuple[float, float, float, float]:
    ten, sixty, long, total = numbers
    return float(ten), float(sixty), float(long), int(total) * _MICROSECOND
