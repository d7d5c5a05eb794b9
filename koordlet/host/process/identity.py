"""Identity of a process: for people, and across reuse of its pid.

Covers: pid, command and start time of a process of this machine. Does not cover: its cgroups.
"""

from __future__ import annotations

from datetime import UTC, datetime

from koordlet.host.fs import root

_MAX = 100
#: The start time among what follows the name in ``/proc/PID/stat`` (proc_pid_stat(5)).
_START = 19
#: Settings of the kernel. Their inodes are made for each mount of procfs, and anew when the kernel
#: forgets and finds them (proc_sys_make_inode): another container would see another one.
_SYSCTL = "/proc/sys/"


def identity(host: root.HostRoot, directory: str) -> int:
    """Start time of the process of ``/proc/PID``, in clock ticks; 0 if the inode can be trusted.

    The directory's inode is no identity: it changes when the kernel forgets and finds it again. The
    kernel's settings are there once, whoever looks: 1.
    """
    if directory.startswith(_SYSCTL):
        return 1
    pid = directory.removeprefix("/proc/")
    if pid == directory or not pid.isdigit():
        return 0
    try:
        return int(host.read(host.proc(pid, "stat")).rpartition(b")")[2].split()[_START])
    except (ValueError, IndexError):
        return 0


def describe(pid: str) -> str:
    """``pid 312, koordlet run, since 2026-01-02 03:04:05 UTC``; the pid alone when it is gone."""
    import psutil  # noqa: PLC0415 -- only where somebody is in our way

    try:
        process = psutil.Process(int(pid))
        with process.oneshot():
            words = " ".join(process.cmdline())
            since = datetime.fromtimestamp(process.create_time(), UTC)
    except (ValueError, psutil.Error):
        return f"pid {pid}"
    shown = words if len(words) <= _MAX else words[:_MAX] + "…"
    return f"pid {pid}, {shown}, since {since:%Y-%m-%d %H:%M:%S} UTC"
