"""Naming a process to a person.

Covers: pid, command and start time of a process of this machine. Does not cover: its cgroups.
"""

from __future__ import annotations

from datetime import UTC, datetime

_MAX = 100


def describe(pid: str) -> str:
    """``pid 312, koordlet run, since 2026-01-02 03:04:05 UTC``; the pid alone when it is gone."""
    import psutil  # noqa: PLC0415 -- only where somebody is in our way

    try:
        one = psutil.Process(int(pid))
        with one.oneshot():
            words = " ".join(one.cmdline())
            since = datetime.fromtimestamp(one.create_time(), UTC)
    except (ValueError, psutil.Error):
        return f"pid {pid}"
    shown = words if len(words) <= _MAX else words[:_MAX] + "…"
    return f"pid {pid}, {shown}, since {since:%Y-%m-%d %H:%M:%S} UTC"
