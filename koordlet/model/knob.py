"""The typed table of cgroup files: one row per file, for both cgroup versions.

Covers: every row by name. Does not cover: what a row says (``model.knob_row``), the form of a text
(``model.forms``), where a hierarchy is mounted (``model.cgroup``), what a value means on the other
version (``model.limits``), when to write (``policy``), ordering (``apply.ordering``).

Kernel facts: Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst; what was tried, and on which
kernel, is in docs/kernel-answers.md. The table as a page, in the order of this module:
docs/cgroup-files.md.
"""

from __future__ import annotations

from koordlet.model import forms, schemata
from koordlet.model.knob_row import Access, Knob, Shape, Turn, on_both, on_v1, on_v2

#: Of other modules, and named here with the rows that they are about.
__all__ = ("Access", "Knob", "Shape", "Turn")

#: Switched on or off.
_FLAG = forms.Number(low=0, high=1)
_INVALID = "anything else: EINVAL"
_ANOLIS = "Alibaba Cloud Linux"
_ELSEWHERE = "on other kernels: ENOENT"

# Sets of CPUs and NUMA nodes, and groups themselves ----------------------------------------------

CPUSET_CPUS = on_both(
    "cpuset.cpus",
    form=forms.List(),
    shape=Shape.SUBSET,
    unit="CPUs",
    answers="v1: outside of the group above EACCES, still needed below EBUSY, offline EINVAL; both:"
    " not possible ERANGE, empty with processes ENOSPC (v2: before 7.0)",
)
#: Writing mems migrates pages (always on v2, with memory_migrate on v1), so it may take long.
CPUSET_MEMS = on_both(
    "cpuset.mems",
    form=forms.List(),
    shape=Shape.SUBSET,
    unit="NUMA nodes",
    may_block=True,
    answers="as cpuset.cpus; v1: a node without memory EINVAL",
)
CPUSET_EFFECTIVE = on_both(
    "cpuset.cpus.effective",
    v1="cpuset.effective_cpus",
    form=forms.List(),
    access=Access.READ,
    unit="CPUs",
)
MEMS_EFFECTIVE = on_both(
    "cpuset.mems.effective",
    v1="cpuset.effective_mems",
    form=forms.List(),
    access=Access.READ,
    unit="NUMA nodes",
)
PARTITION = on_v2(
    "cpuset.cpus.partition",
    since="5.0",
    answers="taken always; the file then says `root invalid (…)` and why, also later by itself",
)
#: Controllers that a v2 group hands down to its children. Written as ``+name``, read as words.
SUBTREE = on_v2(
    "cgroup.subtree_control",
    controller="",
    form=forms.Words(),
    shape=Shape.SWITCHES,
    answers="not handed down to this group ENOENT, in use below or processes here EBUSY",
)
#: ``populated 1`` while the group or a descendant has a process (v2 only).
EVENTS = on_v2("cgroup.events", controller="", access=Access.READ)
#: The processes of a group; writing one pid moves it.
PROCS = on_both(
    "cgroup.procs",
    controller="",
    answers="a process that ended ESRCH; v1: a set that is empty ENOSPC; v2: EBUSY, EOPNOTSUPP",
)
FREEZE = on_v2("cgroup.freeze", controller="", form=_FLAG, since="5.2")
KILL = on_v2(
    "cgroup.kill",
    controller="",
    form=forms.Plain("1"),
    access=Access.TRIGGER,
    since="5.14",
    answers="anything but 1: ERANGE or EINVAL",
)

# CPU time -----------------------------------------------------------------------------------------

_RANGE = "outside of the range: ERANGE; no number: EINVAL"
_BURST = forms.Number(low=0, high=forms.QUOTAS[-1])

#: CPU time so far: nanoseconds on v1, the ``usage_usec`` line on v2.
CPU_USAGE = Knob(
    name="cpu.usage",
    controller="cpuacct",
    v1="cpuacct.usage",
    v2="cpu.stat",
    access=Access.READ,
    unit="ns, or lines in µs",
)
CPU_STAT = on_both("cpu.stat", access=Access.READ)
CPU_SHARES = on_v1(
    "cpu.shares",
    form=forms.Number(low=2, high=262_144, clamps=True),
    twin="cpu.weight",
    answers="outside of the range: cut to it; while cpu.idle is 1: EINVAL",
)
CPU_WEIGHT = on_v2(
    "cpu.weight",
    # An idle group's reads 0 before 6.12, and the least after.
    form=forms.Number(low=1, high=10_000, also_low=0),
    twin="cpu.shares",
    answers=f"{_RANGE}; while cpu.idle is 1: EINVAL, and it reads 0",
)
# Burst is lowered before the quota and raised after it, because it may never be more. Quotas are
# raised from the top and lowered from the bottom, because v1 lets no child have more than the next
# limited group above it.
CPU_CFS_QUOTA = on_v1(
    "cpu.cfs_quota_us",
    form=forms.Number(low=1_000, high=forms.QUOTAS[-1], unlimited="-1"),
    turn=Turn(rises=20, falls=30),
    unit="µs each period",
    twin="cpu.max",
    least=True,
    answers="less than 1 ms, less than the burst, more of a period than the next limited group"
    " above or less than one below: EINVAL",
)
CPU_CFS_PERIOD = on_v1(
    "cpu.cfs_period_us",
    form=forms.Number(low=1_000, high=1_000_000),
    access=Access.READ,
    unit="µs",
    twin="cpu.max",
    answers="never written: quota and period cannot change together, so quotas keep to the period"
    " that is there",
)
CPU_MAX = on_v2(
    "cpu.max",
    form=forms.Bandwidth(),
    turn=Turn(rises=20, falls=30),
    unit="µs each period, and the period",
    twin="cpu.cfs_quota_us",
    least=True,
    answers="less than 1 ms, less than the burst: EINVAL; groups above and below do not matter",
)
CPU_CFS_BURST = on_v1(
    "cpu.cfs_burst_us",
    form=_BURST,
    turn=Turn(rises=40, falls=10),
    unit="µs",
    twin="cpu.max.burst",
    since="5.14",
    answers="more than the quota: EINVAL",
)
CPU_BURST = on_v2(
    "cpu.max.burst",
    form=_BURST,
    turn=Turn(rises=40, falls=10),
    unit="µs",
    twin="cpu.cfs_burst_us",
    since="5.14",
    answers="more than the quota: EINVAL; without a quota it is kept, and a quota below fails",
)
#: Cleared before weights are written, set after them: a group that idles takes none.
CPU_IDLE = on_both(
    "cpu.idle",
    form=_FLAG,
    turn=Turn(rises=90, falls=0),
    since="5.15",
    answers=f"{_INVALID}; clearing it sets the usual weight, not the one before",
)
#: Real time of a group, where the kernel shares it out (CONFIG_RT_GROUP_SCHED): raised after it
#: was lowered elsewhere, since all children together have at most what their parent has.
CPU_RT_RUNTIME = on_v1(
    "cpu.rt_runtime_us",
    form=forms.Number(low=0, high=1_000_000),
    turn=Turn(rises=50, falls=10),
    unit="µs each period",
    since="CONFIG_RT_GROUP_SCHED",
    answers="more than the group above has left, or less than those below have: EINVAL; 0 with"
    " real-time threads inside: EBUSY",
)
CPU_BVT = on_both(
    "cpu.bvt_warp_ns", form=forms.Number(low=-1, high=2), since=_ANOLIS, answers=_ELSEWHERE
)
CPU_PRESSURE = on_v2("cpu.pressure", controller="", access=Access.READ, since="4.20")

# Memory -------------------------------------------------------------------------------------------

#: Of x86, and of other architectures as their kernels are built.
_PAGES = (1 << 12, 1 << 14, 1 << 16)
#: As many pages as the kernel can count are no limit: v2 shows ``max``, v1 their bytes.
_ALL_PAGES = 2**63 - _PAGES[-1]
#: Written and shown in bytes; the kernel rounds down to pages.
_BYTES = forms.Number(
    low=0, high=2**63 - 1, unlimited="max", also_unlimited=_ALL_PAGES, pages=_PAGES
)
_V1_BYTES = forms.Number(
    low=0, high=2**63 - 1, unlimited="-1", also_unlimited=_ALL_PAGES, pages=_PAGES
)
_COUNT = forms.Number(low=0, high=2**63 - 1)
_NEGATIVE = "negative, fractions: EINVAL; an empty line is 0; rounded down to pages"

MEMORY_USAGE = on_both(
    "memory.current", v1="memory.usage_in_bytes", form=_COUNT, access=Access.READ, unit="bytes"
)
MEMSW_USAGE = on_v1("memory.memsw.usage_in_bytes", form=_COUNT, access=Access.READ, unit="bytes")
MEMORY_STAT = on_both("memory.stat", access=Access.READ, unit="bytes")
MEMORY_MIN = on_v2(
    "memory.min", form=_BYTES, turn=Turn(rises=50, falls=50), unit="bytes", answers=_NEGATIVE
)
MEMORY_LOW = on_v2(
    "memory.low", form=_BYTES, turn=Turn(rises=51, falls=51), unit="bytes", answers=_NEGATIVE
)
MEMORY_HIGH = on_v2(
    "memory.high",
    form=_BYTES,
    turn=Turn(rises=54, falls=54),
    unit="bytes",
    usage="memory.current",
    least=True,
    may_block=True,
    answers=f"{_NEGATIVE}; below the use it reclaims until it is not, or gives up",
)
MEMORY_MAX = on_v2(
    "memory.max",
    form=_BYTES,
    turn=Turn(rises=53, falls=55),
    unit="bytes",
    twin="memory.limit_in_bytes",
    usage="memory.current",
    least=True,
    may_block=True,
    answers=f"{_NEGATIVE}; below the use it kills",
)
MEMORY_LIMIT = on_v1(
    "memory.limit_in_bytes",
    form=_V1_BYTES,
    turn=Turn(rises=53, falls=55),
    unit="bytes",
    twin="memory.max",
    usage="memory.current",
    least=True,
    may_block=True,
    answers="`max`, above memory and swap: EINVAL; below what cannot be reclaimed: EBUSY",
)
# Memory and swap together are never less than memory alone.
MEMSW_LIMIT = on_v1(
    "memory.memsw.limit_in_bytes",
    form=_V1_BYTES,
    turn=Turn(rises=52, falls=56),
    unit="bytes",
    usage="memory.memsw.usage_in_bytes",
    may_block=True,
    answers="below memory.limit_in_bytes: EINVAL",
)
MEMORY_RECLAIM = on_v2(
    "memory.reclaim",
    form=_COUNT,
    access=Access.TRIGGER,
    unit="bytes",
    may_block=True,
    since="5.19",
    answers="less could be reclaimed: EAGAIN; reading it: EINVAL",
)
OOM_GROUP = on_v2("memory.oom.group", form=_FLAG, since="4.19", answers=_INVALID)


def _anolis(name: str, low: int, high: int) -> Knob:
    """A file of memory that only one vendor's kernel has, on both versions."""
    form = forms.Number(low=low, high=high)
    return on_both(name, form=form, since=_ANOLIS, answers=_ELSEWHERE)


WMARK_RATIO = _anolis("memory.wmark_ratio", 0, 100)
WMARK_SCALE = _anolis("memory.wmark_scale_factor", 1, 1000)
WMARK_MIN_ADJ = _anolis("memory.wmark_min_adj", -25, 50)
MEMORY_PRIORITY = _anolis("memory.priority", 0, 12)
USE_PRIORITY_OOM = _anolis("memory.use_priority_oom", 0, 1)

# Block devices ------------------------------------------------------------------------------------
# io.max is one file with four fields on v2 and four files on v1; a line names one device.

_DEVICE = "no such device: ENODEV; no line that it understands: EINVAL"
_OF_DEVICES = Turn(rises=60, falls=60)
#: Before weights of single devices, which the kernel refuses until one of these set the device up
#: (block/blk-iocost.c, blk_iocost_init).
_COST = Turn(rises=55, falls=55)


def _throttle(what: str, unit: str) -> Knob:
    return on_v1(
        f"blkio.throttle.{what}_device",
        # A limit of 0 takes a device's line away on v1.
        form=forms.Keyed("0", "`MAJOR:MINOR NUMBER`"),
        turn=_OF_DEVICES,
        unit=unit,
        twin="io.max",
        answers=f"{_DEVICE}; only the lower 32 bits count" if unit == "1/s" else _DEVICE,
    )


READ_BPS = _throttle("read_bps", "bytes/s")
WRITE_BPS = _throttle("write_bps", "bytes/s")
READ_IOPS = _throttle("read_iops", "1/s")
WRITE_IOPS = _throttle("write_iops", "1/s")
IO_MAX = on_v2(
    "io.max",
    form=forms.Keyed("max", "`MAJOR:MINOR rbps=… wbps=… riops=… wiops=…`, numbers or `max`"),
    turn=_OF_DEVICES,
    unit="bytes/s, 1/s",
    twin="blkio.throttle.*",
    answers=f"0: ERANGE; 1, and a number with a unit: EINVAL or misread; {_DEVICE}",
)
BLKIO_WEIGHT = on_v1(
    "blkio.bfq.weight",
    form=forms.Number(low=1, high=1_000),
    turn=_OF_DEVICES,
    twin="io.weight",
    since="5.0",
    answers="outside of the range: ERANGE; there only with the BFQ scheduler",
)
BLKIO_COST_WEIGHT = on_v1(
    "blkio.cost.weight",
    form=forms.Keyed("100", "`MAJOR:MINOR NUMBER`, 1…100"),
    turn=_OF_DEVICES,
    twin="io.weight",
    since=_ANOLIS,
    answers=_ELSEWHERE,
)
IO_WEIGHT = on_v2(
    "io.weight",
    form=forms.Keyed("default", "`default NUMBER` or `MAJOR:MINOR NUMBER`, 1…10000"),
    turn=_OF_DEVICES,
    twin="blkio.bfq.weight",
    since="5.4",
    answers="outside of the range: EINVAL; one device before io.cost.qos has named it: ENOTSUP; in"
    " effect with io.cost only",
)
IO_COST_QOS = on_v2(
    "io.cost.qos",
    controller="",
    form=forms.Keyed(
        "0",
        "`MAJOR:MINOR enable=… ctrl=user rpct=… rlat=… wpct=… wlat=…`",
        reset="enable=0 ctrl=auto",
    ),
    turn=_COST,
    unit="%, µs",
    answers="on the root group only; " + _DEVICE,
)
IO_COST_MODEL = on_v2(
    "io.cost.model",
    controller="",
    form=forms.Keyed("0", "`MAJOR:MINOR ctrl=user model=linear rbps=… …`", reset="ctrl=auto"),
    turn=_COST,
    unit="bytes/s, 1/s",
    answers="on the root group only; " + _DEVICE,
)
IO_LATENCY = on_v2(
    "io.latency",
    form=forms.Keyed("0", "`MAJOR:MINOR target=MICROSECONDS`"),
    turn=_OF_DEVICES,
    unit="µs",
    since="4.19",
    answers=_DEVICE,
)

# Pressure, processes, and resctrl -----------------------------------------------------------------

IO_PRESSURE = on_v2("io.pressure", controller="", access=Access.READ, since="4.20")
MEMORY_PRESSURE = on_v2("memory.pressure", controller="", access=Access.READ, since="4.20")
PIDS_CURRENT = on_both("pids.current", access=Access.READ)
PIDS_MAX = on_both(
    "pids.max",
    form=forms.Number(low=0, high=4_194_304, unlimited="max"),
    turn=Turn(rises=60, falls=60),
    usage="pids.current",
    answers="negative, too large, no number: EINVAL; below the use it only stops new ones",
)
#: Ways and bandwidth of a resctrl group: no cgroup has it. The file says more than we ask for.
SCHEMATA = Knob(
    name="schemata", controller="", v1=None, v2=None, form=forms.Held(schemata.same, "its lines")
)

#: Every row, by name.
TABLE = {row.name: row for row in tuple(globals().values()) if isinstance(row, Knob)}

#: The weight's two names: with ``cpu.idle`` the kernel changes it, too.
WEIGHTS = frozenset({CPU_SHARES.name, CPU_WEIGHT.name})
