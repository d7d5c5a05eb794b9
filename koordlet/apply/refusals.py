"""Kernel refusals: their meaning, whether their cause is gone already, and pauses after them.

Covers: a sentence for each errno, telling a race from a refusal, one exponential delay per target.
Does not cover: what a refusal costs (``apply.executor``), what to retry (the plan says so anew).

A refusal is a race where its reason was true when the kernel looked and is not any more: the sets
above and below are read again, and judged as the kernel judges. Anything else would be refused a
second time, so it is not asked a second time.
"""

from __future__ import annotations

import errno

from koordlet.apply import kinds
from koordlet.host.fs import root
from koordlet.model import action, cgroup, cpuset, knob
from koordlet.model.record import dataclass

#: Asked again without a look: the call was interrupted, or the kernel itself says "again".
_AGAIN = frozenset({errno.EINTR, errno.EAGAIN})

#: What a refusal of a cgroup file usually means, in the operator's words.
_MEANING = {
    errno.EACCES: "not a subset of the parent cgroup, or no permission",
    errno.EBUSY: "a child cgroup still needs what would be removed, or has processes",
    errno.ENAMETOOLONG: "nested deeper than a path may be long (4096 bytes), so it cannot be"
    " reached, and on v1 the cgroups above cannot have less than it: end the workload that nests"
    " so",
    errno.ENOSPC: "the set would be empty while processes are in it",
    errno.EINVAL: "the kernel does not take this value",
    errno.ERANGE: "a CPU or NUMA node that this machine lacks, or a number out of range",
    errno.EROFS: "mounted read-only",
    errno.EPERM: "not permitted: is koordlet running as root, with its capabilities?",
    errno.ENOENT: "no such file: this kernel lacks it, or its controller is not enabled here",
    errno.ENODEV: "the cgroup was removed, or the device does not exist",
    errno.EOPNOTSUPP: "not supported in this cgroup, or io.cost.qos does not name the device",
    errno.EAGAIN: "the kernel cannot do it now",
    errno.EIO: "the kernel took only part of the value",
    errno.ETIMEDOUT: "no answer in time",
}
#: … of a set, where that is something else: v1 keeps exclusive siblings apart (validate_change,
#: kernel/cgroup/cpuset.c), v2 gives way and takes the partition of a sibling apart.
_OF_SETS = {
    errno.EINVAL: "a CPU of it is offline, a NUMA node of it has no memory, or a sibling cgroup has"
    " it alone (cpuset.cpu_exclusive, cpuset.mem_exclusive)",
}
#: … and of a call about cookies of core scheduling.
_OF_CORES = {
    errno.ENODEV: "no core has two threads that are online now",
    errno.ESRCH: "the process that had the cookie ended",
    errno.EAGAIN: "processes were forked faster than their cookie could be taken",
}
#: … and of a scheduling class (kernel/sched/syscalls.c: a group without real time takes no such
#: thread where CONFIG_RT_GROUP_SCHED shares it out; on v2 no group but the root has any).
_OF_CLASSES = {
    errno.EPERM: "no right to it (CAP_SYS_NICE), or this kernel shares real time out by cgroup"
    " (CONFIG_RT_GROUP_SCHED) and this one has none: on v2 boot with rt_group_sched=0",
    errno.EAGAIN: "threads are forked faster than they could be made ordinary",
}
#: … and of reclaiming beside swap (mm/vmscan.c and memcontrol.c, memory_reclaim).
_NO_CACHE_ALONE = (
    "this kernel cannot reclaim page cache alone (swappiness= of memory.reclaim), and with swap it"
    " would take other memory: nothing is reclaimed; use a newer kernel, or switch swap off"
)


#: … and of real time that is shared out (kernel/sched/rt.c, __rt_schedulable).
_NO_REAL_TIME = (
    "the groups above have less real time left, or those below need more: see cpu.rt_runtime_us of"
    " each group from the top of the hierarchy on, which all groups in it share"
)


def explain(number: int | None, wanted: action.Action) -> str:
    """Explain a refusal in a sentence."""
    if isinstance(wanted, action.ShareCore) and number in _OF_CORES:
        return _OF_CORES[number]
    if isinstance(wanted, action.SetRealTime) and number in _OF_CLASSES:
        return _OF_CLASSES[number]
    if isinstance(wanted, action.Reclaim) and wanted.cache_only and number == errno.EINVAL:
        return _NO_CACHE_ALONE
    row = knob.TABLE.get(wanted.knob) if isinstance(wanted, action.WriteFile) else None
    if row is knob.CPU_RT_RUNTIME and number == errno.EINVAL:
        return _NO_REAL_TIME
    of_sets = _OF_SETS if row is not None and row.shape is knob.Shape.SUBSET else {}
    meaning = of_sets.get(number or 0) or _MEANING.get(number or 0, "refused by the kernel")
    return f"{meaning} (wanted {kinds.value(wanted)!r})"


def is_over(
    host: root.HostRoot, layout: cgroup.Layout, wanted: action.Action, number: int | None
) -> bool:
    """Whether the cause of a refusal is gone, so that one retry makes sense."""
    if number in _AGAIN:
        return not isinstance(wanted, action.Reclaim)
    row = knob.TABLE.get(wanted.knob) if isinstance(wanted, action.WriteFile) else None
    if (
        not isinstance(wanted, action.WriteFile)
        or row is None
        or row.shape is not knob.Shape.SUBSET
    ):
        return False
    value = _parsed(wanted.value)
    if value is None:
        return False
    if number == errno.EACCES:
        above = layout.file(row, wanted.group.rpartition("/")[0])
        parent = _read(host, above)
        return parent is not None and value <= parent
    if number == errno.EBUSY:
        inside = _below(host, layout, row, wanted.group)
        return bool(inside) and all(below <= value for below in inside)
    return False


def _below(
    host: root.HostRoot, layout: cgroup.Layout, row: knob.Knob, group: str
) -> list[cpuset.CPUSet]:
    """The sets of the groups directly inside."""
    holder = layout.holder(row.controller)
    try:
        names = host.list(host.at(holder.directory(group))) if holder is not None else []
    except OSError:
        return []
    files = (layout.file(row, f"{group}/{name}") for name in names)
    return [cpus for cpus in (_read(host, file) for file in files) if cpus is not None]


def _read(host: root.HostRoot, path: str | None) -> cpuset.CPUSet | None:
    try:
        return None if path is None else _parsed(host.text(host.at(path)))
    except OSError:
        return None


def _parsed(text: str) -> cpuset.CPUSet | None:
    try:
        return cpuset.CPUSet.parse(text)
    except ValueError:
        return None


FIRST = 1.0
LONGEST = 60.0


@dataclass(frozen=True, slots=True)
class _Wait:
    """How long a target is left alone, and the delay that this was."""

    until: float
    delay: float


class Backoff:
    """Exponential delays of targets that failed. Time is passed in."""

    def __init__(self) -> None:
        #: Target to its wait; empty where all is well.
        self.waits: dict[str, _Wait] = {}

    def waiting(self, target: str, now: float) -> float:
        """Seconds still to wait, 0 when it may be tried."""
        wait = self.waits.get(target)
        return max(0.0, wait.until - now) if wait is not None else 0.0

    def failed(self, target: str, now: float) -> float:
        """Note a failure: the delay doubles each time up to ``LONGEST``."""
        before = self.waits.get(target)
        delay = FIRST if before is None else min(LONGEST, before.delay * 2)
        self.waits[target] = _Wait(until=now + delay, delay=delay)
        return delay

    def succeeded(self, target: str, now: float) -> None:
        """Forget a target once it has been quiet for as long as its last delay."""
        wait = self.waits.get(target)
        if wait is not None and now >= wait.until + wait.delay:
            del self.waits[target]

    def keep_only(self, targets: set[str]) -> None:
        """Drop targets that no plan wants, so that memory stays bounded."""
        for target in [target for target in self.waits if target not in targets]:
            del self.waits[target]
