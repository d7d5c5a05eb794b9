"""Parsers of machine-wide counters below ``/proc``.

Covers: processor time, memory, NUMA memory, load, run delay, network, as numbers of meters.
Does not cover: when they are read (``node``). Pure functions of one text each.

Kernel facts: proc(5); Documentation/scheduler/sched-stats.rst. CPU time in use is user, nice,
system, irq and softirq, as the peer counts it: not iowait, not steal; guest time is in user
already. Used memory is what is not available to new work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from koordlet.model import counters, meter

_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_NANO = 1e-9
_KIB = 1024

Values = Mapping[meter.Meter, float]

_NAN = counters.NAN


def stat(text: bytes) -> tuple[Values, dict[str, float]]:
    """Parse ``/proc/stat``: CPU time of the node and of each online CPU."""
    cpus: dict[str, float] = {}
    node: Values = {}
    for line in text.split(b"\n"):
        if not line.startswith(b"cpu"):
            break
        words = line.split()
        user, system = int(words[1]) + int(words[2]), int(words[3]) + int(words[6]) + int(words[7])
        if words[0] == b"cpu":
            node = {
                meter.CPU: (user + system) * _TICK,
                meter.CPU_USER: user * _TICK,
                meter.CPU_SYSTEM: system * _TICK,
            }
        else:
            cpus[words[0][3:].decode()] = (user + system) * _TICK
    if not node:
        raise ValueError("/proc/stat has no line for all CPUs")
    return node, cpus


_MEMINFO = re.compile(
    rb"^(?:Node +\d+ +)?(MemTotal|MemFree|MemAvailable|Active\(file\)|Inactive\(file\)|SReclaimable"
    rb"|SwapTotal|SwapFree): +(\d+)",
    re.MULTILINE,
)


def _meminfo(text: bytes) -> dict[bytes, int]:
    amounts = {name: int(number) * _KIB for name, number in _MEMINFO.findall(text)}
    if b"MemTotal" not in amounts or b"MemFree" not in amounts:
        raise ValueError("no MemTotal or MemFree")
    return amounts


def meminfo(text: bytes) -> Values:
    """Parse ``/proc/meminfo``."""
    amounts = _meminfo(text)
    total, free = amounts[b"MemTotal"], amounts[b"MemFree"]
    available = amounts.get(b"MemAvailable", _NAN)
    return {
        meter.MEMORY: total - free,
        meter.WORKING_SET: total - available,
        meter.MEMORY_TOTAL: total,
        meter.MEMORY_FREE: free,
        meter.MEMORY_AVAILABLE: available,
        meter.MEMORY_CACHE: amounts.get(b"Active(file)", _NAN)
        + amounts.get(b"Inactive(file)", _NAN),
        meter.SWAP_TOTAL: amounts.get(b"SwapTotal", _NAN),
        meter.SWAP_FREE: amounts.get(b"SwapFree", _NAN),
    }


def node_meminfo(text: bytes) -> Values:
    """Parse a NUMA node's ``meminfo``, which has no available memory."""
    amounts = _meminfo(text)
    total, free = amounts[b"MemTotal"], amounts[b"MemFree"]
    names = (b"Active(file)", b"Inactive(file)", b"SReclaimable")
    reclaimable = sum(amounts.get(name, 0) for name in names)
    return {
        meter.MEMORY: total - free,
        meter.WORKING_SET: max(0, total - free - reclaimable),
        meter.MEMORY_TOTAL: total,
        meter.MEMORY_FREE: free,
    }


def loadavg(text: bytes) -> Values:
    """Parse ``/proc/loadavg``."""
    load_1, load_5, load_15 = map(float, text.split()[:3])
    return {meter.LOAD_1: load_1, meter.LOAD_5: load_5, meter.LOAD_15: load_15}


def schedstat(text: bytes) -> Values:
    """Parse ``/proc/schedstat``: the eighth number of a CPU is the run delay of tasks."""
    waited = [int(line.split()[8]) for line in text.split(b"\n") if line.startswith(b"cpu")]
    if not waited:
        raise ValueError("/proc/schedstat has no CPUs")
    return {meter.RUN_DELAY: sum(waited) * _NANO}


_VMSTAT = {
    b"pgmajfault": meter.MAJOR_FAULTS,
    b"pswpin": meter.SWAPPED_IN,
    b"pswpout": meter.SWAPPED_OUT,
    b"oom_kill": meter.OOM_KILLS,
}


def vmstat(text: bytes) -> Values:
    """Parse ``/proc/vmstat``; counters that the kernel lacks are missing."""
    words = text.split()
    counts = dict(zip(words[::2], words[1::2], strict=True))
    return {what: int(counts[key]) for key, what in _VMSTAT.items() if key in counts}


def net(text: bytes) -> dict[str, Values]:
    """Parse ``/proc/net/dev``: bytes by interface, without the loopback."""
    links: dict[str, Values] = {}
    for line in text.decode("utf-8", "replace").splitlines()[2:]:
        name, _, numbers = line.rpartition(":")
        words = numbers.split()
        if name.strip() != "lo":
            links[name.strip()] = {meter.RECEIVED: int(words[0]), meter.SENT: int(words[8])}
    return links


_LINE = rb"%s avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)\s*"
_FILE = re.compile(_LINE % b"some" + rb"(?:" + _LINE % b"full" + rb")?")
_MICROSECOND = 1e-6


def pressure(text: bytes) -> tuple[float, ...]:
    """Parse a pressure file: for some and for full, three averages (percent) and stalled seconds.

    ``ValueError`` for anything else. Before 5.13 the file of the CPU has no ``full`` line
    (Documentation/accounting/psi.rst).
    """
    match = _FILE.match(text)
    if match is None:
        raise ValueError(f"not a pressure file: {text[:60]!r}")
    some = match.group(1, 2, 3, 4)
    full = match.group(5, 6, 7, 8)
    return (*_half(some), *(_half(full) if full[3] is not None else (counters.NAN,) * 4))


def _half(numbers: tuple[bytes, ...]) -> tuple[float, float, float, float]:
    ten, sixty, long, total = numbers
    return float(ten), float(sixty), float(long), int(total) * _MICROSECOND
