"""The agent's own ``process_*`` series, under the names that every Prometheus client library uses.

Covers: CPU time, memory, descriptors and start of this process.
Does not cover: how a family is written (``metrics``).

``prometheus_client`` has a collector for these six. Its import brings an HTTP server, TLS and a
parser of mail, a tenth of the memory of an agent with all surfaces.
"""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

from koordlet.report import families, metrics, view

_FAMILIES = families.Families()
_WRITER = metrics.MetricsWriter()


def render(now: view.ReportView, form: metrics.TextFormat) -> bytes:
    """The series, without the end mark of the format."""
    lines, _ = _WRITER.write(_FAMILIES, now, form)
    return ("\n".join(lines) + "\n").encode()


@_FAMILIES.family(form="%d")
def process_virtual_memory_bytes(_: view.ReportView) -> families.Rows:
    """Virtual memory size in bytes."""
    yield (), _pages(0)


@_FAMILIES.family(form="%d")
def process_resident_memory_bytes(_: view.ReportView) -> families.Rows:
    """Resident memory size in bytes."""
    yield (), _pages(1)


@_FAMILIES.family(form="%.15g")
def process_start_time_seconds(_: view.ReportView) -> families.Rows:
    """Start time of the process since unix epoch in seconds."""
    # proc(5): field 22, in clock ticks since boot; what stands before it in parentheses is a name.
    stat, boot = _text("self/stat"), re.search(r"^btime (\d+)$", _text("stat"), re.MULTILINE)
    if stat and boot is not None:
        ticks = int(stat.rpartition(")")[2].split()[19])
        yield (), int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK")


@_FAMILIES.family(form="%.15g", kind=families.COUNTER)
def process_cpu_seconds(_: view.ReportView) -> families.Rows:
    """Total user and system CPU time spent in seconds."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    yield (), spent.ru_utime + spent.ru_stime


@_FAMILIES.family(form="%d")
def process_open_fds(_: view.ReportView) -> families.Rows:
    """Number of open file descriptors."""
    try:
        yield (), len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return


@_FAMILIES.family(form="%d")
def process_max_fds(_: view.ReportView) -> families.Rows:
    """Maximum number of open file descriptors."""
    yield (), resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _pages(column: int) -> int | None:
    """A column of statm (proc(5)), in bytes."""
    text = _text("self/statm")
    return int(text.split()[column]) * resource.getpagesize() if text else None


def _text(name: str) -> str:
    """A file of /proc; empty where it cannot be read: the series is left out."""
    try:
        return Path("/proc", name).read_text()
    except OSError:
        return ""
