"""Removes sensitive data from recorded files.

Covers: boot parameters, the boot id, serial numbers in cpuinfo, mounts that are not the kernel's.
Does not cover: files that are not recorded at all (``contents`` allows by name).

Rules:
1. What is not known to be harmless goes. A parameter stays only if it is in the list below.
2. The shape stays: as many lines, the same keys, so that programs read it as before.
"""

from __future__ import annotations

import re

#: What the manifest says about it; one line for each function below.
RULES = (
    "/proc/cmdline: only parameters about CPUs, memory and cgroups are kept",
    "/proc/sys/kernel/random/boot_id: zeros",
    "/proc/cpuinfo: serial numbers are zeros",
    "/proc/self/mountinfo: source and options of mounts that are not the kernel's are left out",
    "not recorded: environment, host name, machine id, command lines, addresses, serial numbers",
)

_SAFE_PARAMETERS = frozenset(
    {
        "amd_pstate", "cgroup.memory", "cgroup_disable", "cgroup_enable", "cgroup_no_v1",
        "cpufreq.default_governor", "cpufreq.off", "cpuidle.off", "default_hugepagesz",
        "hugepages", "hugepagesz", "idle", "intel_idle.max_cstate", "intel_pstate",
        "irqaffinity", "isolcpus", "kthread_cpus", "maxcpus", "mitigations", "nmi_watchdog",
        "nohz", "nohz_full", "nosmt", "nosoftlockup", "nr_cpus", "numa", "numa_balancing",
        "possible_cpus", "preempt", "processor.max_cstate", "psi", "rcu_nocb_poll", "rcu_nocbs",
        "rdt", "skew_tick", "swapaccount", "systemd.legacy_systemd_cgroup_controller",
        "systemd.unified_cgroup_hierarchy", "transparent_hugepage", "tsc", "workqueue.unbound_cpus",
    }
)  # fmt: skip
_SAFE_VALUE = re.compile(r"[\w.,:/+-]{0,256}\Z")
_SERIAL = re.compile(rb"(?im)^(serial\s*:\s*).*$|(identification\s*=\s*)\w+")
_BOOT_ID = b"00000000-0000-0000-0000-000000000000\n"
_KERNEL_FILESYSTEMS = frozenset(
    {
        "bpf", "cgroup", "cgroup2", "debugfs", "devpts", "devtmpfs", "hugetlbfs", "mqueue", "proc",
        "resctrl", "securityfs", "sysfs", "tmpfs", "tracefs",
    }
)  # fmt: skip


def redact(path: str, data: bytes) -> bytes:
    """The content as it may leave the machine."""
    if path == "/proc/cmdline":
        return _cmdline(data)
    if path == "/proc/sys/kernel/random/boot_id":
        return _BOOT_ID
    if path == "/proc/cpuinfo":
        return _SERIAL.sub(lambda match: (match[1] or match[2]) + b"0", data)
    if path == "/proc/self/mountinfo":
        return b"".join(_mount(line) for line in data.splitlines(keepends=True))
    return data


def _cmdline(data: bytes) -> bytes:
    kept = []
    for word in data.decode("utf-8", "replace").split():
        name, _, value = word.partition("=")
        if name.replace("-", "_") in _SAFE_PARAMETERS and _SAFE_VALUE.match(value):
            kept.append(word)
    return (" ".join(kept) + "\n").encode()


def _mount(line: bytes) -> bytes:
    """``... - fstype source options``: a password may be in the last two."""
    left, dash, right = line.partition(b" - ")
    fields = right.split()
    if not dash or len(fields) < 3:
        return b""
    if fields[0].decode("ascii", "replace") in _KERNEL_FILESYSTEMS:
        return line
    options = b"ro" if fields[2].split(b",")[0] == b"ro" else b"rw"
    return left + b" - " + fields[0] + b" redacted " + options + b"\n"
