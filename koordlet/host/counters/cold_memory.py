"""Cold memory: not accessed for five minutes, on kernels that track it.

Covers: kidled (Alibaba's kernels) and DAMON_STAT (Linux 6.17), of the node; kidled's text, which is
the same for groups. Does not cover: starting either. Both cost processor time on the whole machine,
so whether they run is the operator's decision; we only read what they found.

Kernel facts:
1. kidled counts the bytes of each kind of page by the number of scans for which they were idle, in
   eight columns: 1, 2, 5, 15, 30, 60, 120, 240 scans and more. At its period of five seconds the
   sixth column begins at five minutes. Kinds: clean or dirty, file, evictable or not; anonymous
   and slab pages have kinds of their own, which are not page cache.
2. DAMON_STAT says for each percent of the memory for how many milliseconds at least it was idle,
   in rising order; negative is in use. Documentation/admin-guide/mm/damon/stat.rst. All other uses
   of DAMON have to be set up by writing, and may already belong to somebody.
3. What DAMON_STAT calls the memory is all addresses from the first to the last System RAM of
   /proc/iomem, holes too, and in it only pages on the kernel's lists for reclaim can be seen in use
   (mm/damon/ops-common.c, damon_get_folio): free memory, the kernel's own and the holes are idle
   for ever. So its share of idle memory says little, and that of memory in use much: what is on the
   lists and was not in use is cold.
4. /proc/iomem shows its addresses to root alone, others see zeros.
"""

from __future__ import annotations

import re

from koordlet.host.fs import root
from koordlet.model import absence, cgroup

#: Kidled's file in every memory group, the root group as well.
FILE = "memory.idle_page_stats"
_KINDS = (b"cfei", b"dfei", b"cfui", b"dfui")
#: The kind, and the columns below sixty scans.
_WARM = 6
_COLD_MS = 300_000
_PERCENTS = 101
_MEMINFO = re.compile(rb"^(MemTotal|Active|Inactive|Unevictable): +(\d+) kB$", re.MULTILINE)
_NAMES = {b"MemTotal", b"Active", b"Inactive", b"Unevictable"}
_RAM = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) : System RAM$", re.MULTILINE)


def idle(text: bytes) -> int:
    """Bytes of page cache that were idle for sixty scans and more, of kidled's text."""
    rows = [line.split() for line in text.splitlines() if not line.startswith(b"#")]
    wanted = [row for row in rows if row and row[0] in _KINDS]
    if not wanted:
        raise ValueError(f"no idle pages: {text[:60]!r}")
    return sum(int(number) for row in wanted for number in row[_WARM:])


def share(text: bytes) -> float:
    """The cold part of the memory, of DAMON_STAT's percentiles."""
    values = [int(word) for word in text.split(b",")]
    if len(values) != _PERCENTS:
        raise ValueError(f"{len(values)} percentiles where {_PERCENTS} belong")
    return sum(value >= _COLD_MS for value in values[1:]) / (_PERCENTS - 1)


def span(text: bytes) -> int:
    """Bytes from the first to the last System RAM of ``/proc/iomem``; 0 where it is not told."""
    ranges = [(int(first, 16), int(last, 16)) for first, last in _RAM.findall(text)]
    return max(last for _, last in ranges) - min(first for first, _ in ranges) + 1 if ranges else 0


def untouched(percentiles: bytes, meminfo: bytes, iomem: bytes) -> float:
    """Bytes on the lists for reclaim that were idle for five minutes, of DAMON_STAT's text."""
    have = {name: int(number) << 10 for name, number in _MEMINFO.findall(meminfo)}
    if have.keys() != _NAMES:
        raise ValueError(f"/proc/meminfo lacks {sorted(_NAMES - have.keys())}")
    watched = max(span(iomem), have.pop(b"MemTotal"))
    return max(0.0, sum(have.values()) - (1 - share(percentiles)) * watched)


def node(host: root.HostRoot, layout: cgroup.Layout) -> float | absence.Unsupported:
    """The node's cold memory in bytes. A text that says something else raises ``ValueError``.

    Silence raises as it is.
    """
    holder = layout.holder("memory")
    if holder is not None and not holder.unified:
        try:
            return idle(host.read(host.at(f"{holder.directory('')}/{FILE}")))
        except OSError as error:
            host.silence.pass_on(error)
    parameters = host.sys("module", "damon_stat", "parameters")
    try:
        if host.read(host.below(parameters, "enabled")).strip() != b"Y":
            return _none("DAMON_STAT is not enabled (damon_stat.enabled=Y)")
        percentiles = host.read(host.below(parameters, "memory_idle_ms_percentiles"))
        meminfo = host.read(host.proc("meminfo"))
    except OSError as error:
        host.silence.pass_on(error)
        return _none("this kernel has neither kidled nor DAMON_STAT")
    iomem = host.silence.answer(lambda: host.read(host.proc("iomem")), b"")
    return untouched(percentiles, meminfo, iomem)


def _none(why: str) -> absence.Unsupported:
    return absence.Unsupported("memory.cold", why)
