"""The strategies of a node for CPU, memory, I/O, network and cache: one table of their fields.

Covers: name, form, bounds, default and meaning of every field of a NodeSLO's sections; which of
them pods' annotations and the configuration file have too.
Does not cover: how a field is declared and overlaid (``strategy_field``), what a class of pods
gets by default (``nodeslo``), ``colocation-config`` (``colocation``).

Rules:
1. A field stands here and nowhere else. The readers of NodeSLO, ConfigMap and annotations, the
   section of the configuration file with its reference page, the settings of the policy and the
   custom resource come from its row.
2. A field has one pair of bounds, whoever says it.
3. A field of the configuration file is in effect with the next tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.model.colocation import Colocation
from koordlet.model.record import dataclass
from koordlet.model.strategy_field import INT32, field, overlay, percent, switch, whole, word

#: Of other modules, and named here with the strategies that they are about.
__all__ = ("Colocation", "overlay")

_ENABLE = "Apply the settings of this class."
_LOWER = "Stop evicting at this percent; null is two percent below the threshold."
_ALLOCATABLE = "Evict pods when requests exceed this percent of what is offered; null never does."
_STOP = "Stop evicting at this percent."
_SHARE = 1_000_000
#: More than any device does; the kernel's own numbers have 64 bits.
_COUNT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Thresholds at which best-effort work is limited or evicted."""

    # What it switches depends on the policy, so each section has its own words.
    enable: bool | None = switch(default=False)
    cpu_suppress_threshold_percent: int | None = percent(
        default=65,
        file="cpu_suppress",
        doc="Target use of the node's CPU by all workloads together, in percent.",
    )
    cpu_suppress_min_percent: int | None = percent(
        file="cpu_suppress", doc="Least CPU of best-effort work, in percent of the node's CPU."
    )
    cpu_suppress_policy: str | None = word(
        *("cpuset", "cfsQuota"),
        default="cpuset",
        file="cpu_suppress",
        doc="How the limit is enforced: `cpuset` limits the CPUs, `cfsQuota` limits the CPU time.",
    )
    memory_evict_threshold_percent: int | None = percent(
        default=70,
        file="memory_evict",
        doc="Evict pods when the node's memory use reaches this percent.",
    )
    memory_evict_lower_percent: int | None = percent(file="memory_evict", doc=_LOWER)
    memory_allocatable_evict_threshold_percent: int | None = whole(
        0, _SHARE, file="memory_allocatable_evict", doc=_ALLOCATABLE
    )
    memory_allocatable_evict_lower_percent: int | None = whole(
        0, _SHARE, file="memory_allocatable_evict", doc=_STOP
    )
    cpu_evict_be_satisfaction_upper_percent: int | None = percent(
        file="cpu_evict",
        doc="Stop evicting when best-effort pods get this percent of their CPU requests.",
    )
    cpu_evict_be_satisfaction_lower_percent: int | None = percent(
        file="cpu_evict",
        doc="Evict when best-effort pods get this percent of their CPU requests or less; null"
        " disables this reason.",
    )
    cpu_evict_be_usage_threshold_percent: int | None = percent(
        file="cpu_evict",
        file_default=90,
        doc="Evict only if best-effort pods use at least this percent of their CPU limit, and more"
        " than one core.",
    )
    cpu_evict_time_window_seconds: int | None = whole(
        1, file="cpu_evict", doc="Averaging window; null uses the newest second."
    )
    cpu_evict_threshold_percent: int | None = percent(
        file="cpu_evict",
        doc="Evict pods that allow eviction when the node's CPU use reaches this percent; null"
        " disables this reason.",
    )
    cpu_evict_lower_percent: int | None = percent(file="cpu_evict", doc=_LOWER)
    cpu_allocatable_evict_threshold_percent: int | None = whole(
        0, _SHARE, file="cpu_allocatable_evict", doc=_ALLOCATABLE
    )
    cpu_allocatable_evict_lower_percent: int | None = whole(
        0, _SHARE, file="cpu_allocatable_evict", doc=_STOP
    )
    cpu_evict_policy: str | None = word(
        *("evictByRealLimit", "evictByAllocatable"),
        default="evictByRealLimit",
        file="cpu_evict",
        doc="What counts as the CPU of best-effort pods: their limits in force, or the node's"
        " `batch-cpu`.",
    )
    evict_enabled_priority_threshold: int | None = whole(
        -INT32,
        INT32 - 1,
        file=("cpu_evict", "memory_evict"),
        doc="Highest priority of the pods that allow eviction and are evicted because of the node's"
        " use; null evicts none of these pods.",
    )
    allocatable_evict_priority_threshold: int | None = whole(
        -INT32,
        7999,
        file=("cpu_allocatable_evict", "memory_allocatable_evict"),
        doc="Highest priority of pods whose requests count and that may be evicted.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBurst:
    """CPU time beyond the CPU limit."""

    policy: str | None = word(
        *("none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"),
        default="none",
        file="cpu_burst",
        doc="`cpuBurstOnly` lets containers accumulate unused CPU time, `cfsQuotaBurstOnly` raises"
        " the quota of throttled containers, `auto` does both. A NodeSLO replaces what the"
        " configuration file says about bursts.",
    )
    cpu_burst_percent: int | None = whole(
        *(0, 10_000),
        default=1000,
        file="cpu_burst",
        doc="Burst that a container may accumulate, in percent of its CPU limit; the kernel allows"
        " 100 at most.",
    )
    cfs_quota_burst_percent: int | None = whole(
        100, default=300, file="cpu_burst", doc="Highest raised quota, in percent of the CPU limit."
    )
    cfs_quota_burst_period_seconds: int | None = whole(
        -1,
        default=-1,
        file="cpu_burst",
        doc="How long a container may keep the highest raised quota; -1 sets no time limit.",
    )
    share_pool_threshold_percent: int | None = percent(
        default=50,
        file="cpu_burst",
        doc="Use of the shared pool, in percent, above which koordlet lowers raised quotas.",
        only="node",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuQos:
    """CPU scheduler settings of a QoS class."""

    enable: bool | None = switch(default=False, file="cpu_qos", doc=_ENABLE)
    group_identity: int | None = whole(
        *(-1, 2),
        default=0,
        file="cpu_qos",
        doc="Group identity (`cpu.bvt_warp_ns`): 2 preempts other classes, -1 yields to all of"
        " them.",
    )
    sched_idle: int | None = whole(
        *(0, 1),
        default=0,
        file="cpu_qos",
        doc="1: run the pods as `SCHED_IDLE` (`cpu.idle`, in cgroups that koordlet created).",
    )
    core_expeller: bool | None = switch(default=False)


_MEMORY: dict[str, Any] = {"default": 0, "file": "memory_qos"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQos:
    """Memory protection and reclaim of a QoS class."""

    policy: str | None = word("default", "none", "auto", only="pod")
    enable: bool | None = switch(default=False, file="memory_qos", doc=_ENABLE)
    min_limit_percent: int | None = percent(
        **_MEMORY,
        doc="Percent of the memory request that the kernel never reclaims (`memory.min`).",
    )
    low_limit_percent: int | None = percent(
        **_MEMORY, doc="Percent of the memory request that the kernel reclaims last (`memory.low`)."
    )
    throttling_percent: int | None = percent(
        **_MEMORY,
        doc="Position of `memory.high` between request and limit, in percent; 0 sets no"
        " throttling.",
    )
    oom_kill_group: int | None = whole(
        0, 1, **_MEMORY, doc="1: an OOM kill ends all processes of the cgroup (`memory.oom.group`)."
    )
    wmark_ratio: int | None = percent(
        **_MEMORY, doc="Percent of the limit at which background reclaim starts (vendor kernels)."
    )
    wmark_scale_permill: int | None = whole(
        *(1, 1000),
        default=50,
        file="memory_qos",
        doc="How much background reclaim frees, in 1/1000 of the limit (vendor kernels).",
    )
    wmark_min_adj: int | None = whole(
        -25,
        50,
        **_MEMORY,
        doc="Adjustment of the global minimum watermark, in percent (vendor kernels).",
    )
    priority_enable: int | None = whole(
        0, 1, **_MEMORY, doc="1: the OOM killer prefers cgroups of low priority (vendor kernels)."
    )
    priority: int | None = whole(
        0, 12, **_MEMORY, doc="Priority for the OOM killer (vendor kernels)."
    )
    page_cache_limit_enable: bool | None = switch(
        file="page_cache_reclaim",
        file_default=False,
        doc="Limit the page cache of pods of this class.",
    )
    page_cache_limit_size: int | None = field(
        "amount", "Page cache limit of each pod, such as `512Mi`.", file="page_cache_reclaim"
    )
    page_cache_limit_percent: int | None = percent(
        file="page_cache_reclaim",
        file_default=0,
        doc="Page cache limit in percent of the pod's memory limit, if no size is set.",
    )


def _io(doc: str) -> Any:
    """Declare a number of bytes, operations or microseconds; the file says 0 for none."""
    return whole(0, _COUNT, file="blkio_qos", file_default=0, doc=doc)


@dataclass(frozen=True, slots=True, kw_only=True)
class IoLimits:
    """I/O limits of one block device."""

    read_iops: int | None = _io("Reads per second.")
    write_iops: int | None = _io("Writes per second.")
    read_bps: int | None = _io("Bytes read per second.")
    write_bps: int | None = _io("Bytes written per second.")
    io_weight_percent: int | None = whole(
        *(1, 100),
        file="blkio_qos",
        file_default=100,
        doc="I/O weight of the class on this device, in percent.",
    )
    read_latency: int | None = _io(
        "Latency target of reads in µs (`cgroupRoot` only); 0 sets no target."
    )
    write_latency: int | None = _io(
        "Latency target of writes in µs (`cgroupRoot` only); 0 sets no target."
    )
    read_latency_percent: int | None = percent(
        file="blkio_qos",
        file_default=95,
        doc="Percent of reads that should meet the latency target.",
    )
    write_latency_percent: int | None = percent(
        file="blkio_qos",
        file_default=95,
        doc="Percent of writes that should meet the latency target.",
    )
    enable_user_model: bool | None = switch(
        file="blkio_qos",
        file_default=False,
        doc="Use the six `model…` values below as the device's cost model.",
    )
    model_read_bps: int | None = _io("Cost model: bytes read per second.")
    model_write_bps: int | None = _io("Cost model: bytes written per second.")
    model_read_seq_iops: int | None = _io("Cost model: sequential reads per second.")
    model_write_seq_iops: int | None = _io("Cost model: sequential writes per second.")
    model_read_rand_iops: int | None = _io("Cost model: random reads per second.")
    model_write_rand_iops: int | None = _io("Cost model: random writes per second.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block device and its limits."""

    name: str = field("text", unsaid="")
    type: str = word("device", "volumegroup", "podvolume", unsaid="device")
    io_cfg: IoLimits = field("part", of=IoLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlkioQos:
    """Block I/O limits of a QoS class."""

    enable: bool | None = switch(file="blkio_qos", file_default=False, doc=_ENABLE)
    blocks: tuple[Block, ...] | None = field("parts", of=Block)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResctrlQos:
    """Cache ways and memory bandwidth of a QoS class."""

    enable: bool | None = switch(
        default=False,
        file="resctrl",
        file_default=True,
        doc="Create a resctrl group for this class.",
    )
    cat_range_start_percent: int | None = percent(
        default=0, file="resctrl", doc="Start of the range of cache ways, in percent."
    )
    cat_range_end_percent: int | None = percent(
        default=100, file="resctrl", doc="End of the range of cache ways, in percent."
    )
    mba_percent: int | None = whole(
        *(1, 100),
        default=100,
        file="resctrl",
        doc="Memory bandwidth limit in percent; 100 sets no limit.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of the node's bandwidth: percent of it, or bits per second."""

    percent: int | None = None
    bits: int | None = None


def _share(doc: str) -> Any:
    """Declare a part of the bandwidth: a number is percent, a quantity is bits per second."""
    return field("share", doc, of=Share, file="network_qos")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkQos:
    """Network bandwidth of a QoS class, each as a percentage or a quantity."""

    enable: bool | None = switch(default=False)
    ingress_request: Share | None = _share("Guaranteed receive bandwidth.")
    ingress_limit: Share | None = _share("Receive bandwidth limit.")
    egress_request: Share | None = _share("Guaranteed send bandwidth.")
    egress_limit: Share | None = _share("Send bandwidth limit.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassQos:
    """All settings of one QoS class."""

    cpu: CpuQos = field("part", of=CpuQos, key="cpuQOS")
    memory: MemoryQos = field("part", of=MemoryQos, key="memoryQOS")
    blkio: BlkioQos = field("part", of=BlkioQos, key="blkioQOS")
    resctrl: ResctrlQos = field("part", of=ResctrlQos, key="resctrlQOS")
    network: NetworkQos = field("part", of=NetworkQos, key="networkQOS")


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Kernel settings of the whole machine."""

    min_free_kbytes_factor: int | None = whole(
        0,
        10_000,
        file="system_qos",
        doc="`vm.min_free_kbytes` in 1/10000 of the memory, limited to 10 MiB … 10 GiB.",
    )
    watermark_scale_factor: int | None = whole(
        10, 400, file="system_qos", doc="Value of `vm.watermark_scale_factor`."
    )
    memcg_reap_back_ground: int | None = whole(
        0, 1, file="system_qos", doc="Reap dead memory cgroups in the background (vendor kernels)."
    )
    sched_group_identity_enabled: int | None = whole(
        0, 1, file="system_qos", doc="Enable group identity in the scheduler (vendor kernels)."
    )
    sched_idle_saver_wmark: int | None = whole(
        0,
        1_000_000_000,
        file="system_qos",
        doc="How long the scheduler may spare an idle CPU, in ns (vendor kernels).",
    )
    sched_features: Mapping[str, bool] | None = field("switches")
    page_cache_limit_enabled: bool | None = switch(
        file="system_qos", doc="Let the kernel limit page cache by itself (vendor kernels)."
    )
    total_network_bandwidth: int | None = field("amount", default=0)
