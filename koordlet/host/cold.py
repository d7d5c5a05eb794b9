"""Cold memory: what nobody touched for five minutes, where a kernel keeps count of it.

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
"""

from __future__ import annotations

from koordlet.host import root
from koordlet.model import absence, cgroup

#: Kidled's file in every memory group, the root group as well.
FILE = "memory.idle_page_stats"
_KINDS = (b"cfei", b"dfei", b"cfui", b"dfui")
#: The kind, and the columns below sixty scans.
_WARM = 6
_COLD_MS = 300_000
_PERCENTS = 101


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


def node(host: root.HostRoot, layout: cgroup.Layout, total: float) -> float | absence.Unsupported:
    """The node's cold memory in bytes. A text that says something else raises ``ValueError``."""
    holder = layout.holder("memory")
    if holder is not None and not holder.unified:
        try:
            return idle(host.read(host.at(f"{holder.directory('')}/{FILE}")))
        except OSError:
            pass
    parameters = host.sys("module", "damon_stat", "parameters")
    try:
        if host.read(host.below(parameters, "enabled")).strip() != b"Y":
            return _none("DAMON_STAT is not enabled (damon_stat.enabled=Y)")
        return total * share(host.read(host.below(parameters, "memory_idle_ms_percentiles")))
    except OSError:
        return _none("this kernel has neither kidled nor DAMON_STAT")


def _none(why: str) -> absence.Unsupported:
    return absence.Unsupported("memory.cold", why)
