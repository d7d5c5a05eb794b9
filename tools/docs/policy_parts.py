"""Further parts of each policy's page: formula, files, where to look, how to switch off.

Covers: the words, by stem. Does not cover: rules, keys, metrics (``policies`` has them from the
code). ``tests/docs`` holds that no policy is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model.record import dataclass

_SET = "`cpuset.cpus`"
_BACK = "what it wrote goes back to what was there before"
_NOBODY = "nobody goes because of it any more; evictions that have begun are finished"


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of one policy's page."""

    #: In the words of the keys, without mark-up.
    formula: str
    writes: str
    #: Beside ``plan``, ``explain write``, ``audit`` and the console, which show every policy.
    see: str
    off: str = _BACK


PARTS: Mapping[str, Parts] = {
    "reserved_cpus": Parts(
        "as many CPUs as quantity says, rounded up, whole cores first; or the list cpus",
        "nothing itself: the other policies keep workloads off these CPUs",
        "`koordlet explain cpu N`; **R** on the console's map",
        "the CPUs belong to the shared pools again with the next pass",
    ),
    "exclusive_cpus": Parts(
        "none: a set that was named is granted as a whole, a number is chosen by layout",
        "nothing itself: `shared_pools` writes the sets",
        "`koordlet explain cpu N`, `koordlet explain pod NS/NAME`; **E** on the console's map",
        "nobody holds CPUs alone: those workloads run in their pool",
    ),
    "shared_pools": Parts(
        "LS pool = online - reserved - exclusive; BE pool = the same, without those of LSE only",
        f"{_SET} of workloads, their containers and the kubelet's tiers;"
        " `cpuset.mems` where a NUMA node was given; `cgroup.subtree_control` above them",
        "`koordlet explain cpu N`, `koordlet explain pod NS/NAME`",
        "each set goes back to what it was; on v2, empty where it was empty",
    ),
    "housekeeping": Parts(
        "allowed = online - held alone (- reserved, unless ontoReserved)",
        "`/proc/irq/N/smp_affinity_list`, `/sys/devices/virtual/workqueue/cpumask`",
        "`koordlet explain write PATH`",
    ),
    "bound_quota": Parts(
        "quota = none",
        "`cpu.max`, on v1 `cpu.cfs_quota_us`, of such pods and their containers",
        "`koordlet explain pod NS/NAME`",
    ),
    "cpu_normalization": Parts(
        "quota = limit / ratio, rounded up; ratio from 1 to 5",
        "`cpu.max`, on v1 `cpu.cfs_quota_us`, of shared pods",
        "`koordlet explain pod NS/NAME`",
    ),
    "batch_limits": Parts(
        "shares = 1024 * batch-cpu; quota = batch-cpu limit; memory = batch-memory limit",
        "`cpu.weight`, `cpu.max`, `memory.max`; on v1 `cpu.shares`, `cpu.cfs_quota_us`,"
        " `memory.limit_in_bytes`",
        "`koordlet explain pod NS/NAME`",
    ),
    "cpu_suppress": Parts(
        "BE = capacity * threshold% - LS used - max(system used, node reserved)",
        f"{_SET} of best-effort work, or its quota: `cpu.max`, on v1 `cpu.cfs_quota_us`",
        "`koordlet top`, *CPU use over time* on the console, `bestEffort` in `/api/v1/node`",
    ),
    "adaptive": Parts(
        "none: it yields always; told is waiting beyond its own, and cycles per instruction beyond"
        " the usual, above their tolerance",
        "`cpu.idle` (`CPUWeight=idle` of a unit) and the least `cpu.weight`; `cpu.max`, on v1"
        " `cpu.cfs_quota_us`, where `limits.maxPercent` is set",
        "`koordlet top`, *CPU use over time* on the console, `bestEffort` in `/api/v1/node`",
    ),
    "batch_resources": Parts(
        "batch = capacity - margin - max(system used, reserved) - use of prod and mid workloads",
        "no file: the Node's `status.capacity` and `status.allocatable`, and"
        " NodeResourceTopology, where objects are written",
        "`bestEffort.offered` in `/api/v1/node`, the offer below *CPU use over time*",
        "nothing more is offered; the Node keeps the last amounts until somebody changes them",
    ),
    "resctrl": Parts(
        "ways = from start% to end% of the ways, both rounded up; bandwidth = percent of full",
        "groups below the resctrl mount: directories, `schemata`, `tasks`; the mount itself",
        "`koordlet resctrl`, the panel of cache ways",
        "its groups are removed and threads go back; a mount of ours is unmounted",
    ),
    "cpu_qos": Parts(
        "none: identity by class as the peer has it (LSR and LS 2, BE -1); idle = 1 in groups that"
        " koordlet made",
        "`cpu.bvt_warp_ns` where the kernel has it; `cpu.idle` of groups that koordlet made",
        "`koordlet explain pod NS/NAME`, `koordlet explain write PATH`",
    ),
    "core_scheduling": Parts(
        "none: one cookie for each group of pods; LSR and LS apart from BE",
        "no file: cookies of workloads' processes, prctl(PR_SCHED_CORE)",
        "`koordlet explain pod NS/NAME`, `koordlet plan`",
        "our cookies are taken from every process that has one, whoever started it",
    ),
    "cpu_burst": Parts(
        "burst = limit * cpuBurstPercent, at most the limit; a raised quota moves by a fifth each"
        " second between the limit and cfsQuotaBurstPercent of it",
        "`cpu.max.burst`, `cpu.max`; on v1 `cpu.cfs_burst_us`, `cpu.cfs_quota_us`",
        "`koordlet explain pod NS/NAME`",
    ),
    "memory_qos": Parts(
        "min = request * minLimitPercent; low = request * lowLimitPercent;"
        " high = request + (limit - request) * throttlingPercent",
        "`memory.min`, `memory.low`, `memory.high`, `memory.oom.group`; `memory.wmark_*`,"
        " `memory.priority` and `memory.use_priority_oom` where the kernel has them",
        "`koordlet explain pod NS/NAME`",
    ),
    "page_cache_reclaim": Parts(
        "too much = page cache - min(size, or percent * limit; limit)",
        "`memory.reclaim` of pods (v2)",
        "`koordlet explain pod NS/NAME`",
        "nothing is asked of the kernel any more; what it has taken back is read again on use",
    ),
    "system_qos": Parts(
        "min_free_kbytes = memory * minFreeKbytesFactor / 10000",
        "`/proc/sys/vm/min_free_kbytes`, `/proc/sys/vm/watermark_scale_factor`; switches of one"
        " vendor's kernel where they are",
        "`koordlet explain write PATH`",
    ),
    "blkio_qos": Parts(
        "as asked; on v1 in equal parts for the groups at the bottom",
        "`io.max`, `io.weight`, `io.cost.qos`, `io.cost.model`; on v1 `blkio.throttle.*_device`",
        "`koordlet explain write PATH`",
        "our lines of each device go back, those of others stay",
    ),
    "local_storage_evict": Parts(
        "use > limit, of an emptyDir volume, a pod or a container",
        "no file: evicts",
        "`koordlet explain eviction`",
        _NOBODY,
    ),
    "cpu_evict": Parts(
        "satisfaction = what best-effort work may have / what it asked for; use = mean of the"
        " window / capacity, in whole percents, cut",
        "no file: evicts",
        "`koordlet explain eviction`, *Signals* on the console",
        _NOBODY,
    ),
    "cpu_allocatable_evict": Parts(
        "requests of the class / what the node offers to it ≥ threshold",
        "no file: evicts",
        "`koordlet explain eviction`, *Signals* on the console",
        _NOBODY,
    ),
    "memory_evict": Parts(
        "used = capacity - available, in whole percents, cut, ≥ threshold; down to lower",
        "no file: evicts",
        "`koordlet explain eviction`, *Signals* on the console",
        _NOBODY,
    ),
    "memory_allocatable_evict": Parts(
        "requests of the class / what the node offers to it ≥ threshold",
        "no file: evicts",
        "`koordlet explain eviction`, *Signals* on the console",
        _NOBODY,
    ),
    "node_pressure": Parts(
        "met where available < threshold; a soft one for its grace period",
        "no file: evicts; conditions of the node",
        "`koordlet explain eviction`, *Signals* on the console",
        f"{_NOBODY}; conditions are not set any more",
    ),
    "network_qos": Parts(
        "certain = percent * link, most = percent * link, by class",
        "queueing disciplines, classes and filters of the links to the world",
        "`tc class show dev LINK` beside `koordlet plan`",
        "the trees are removed, and a link has its default queueing again",
    ),
    "oom_score": Parts(
        "1000 - 1000 * memory request / memory of the machine, from 3 to 999; guaranteed -997,"
        " best-effort 1000",
        "`/proc/PID/oom_score_adj` of workloads' processes",
        "`koordlet explain write PATH`",
    ),
}
