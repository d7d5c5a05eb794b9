"""The strategies of a node for CPU, memory, I/O, network and cache, and how they are overlaid.

Covers: the values of a NodeSLO's sections, which pod annotations may overlay field by field.
Does not cover: their defaults (``model.nodeslo``), decoding (``workloads``).

``None`` is always "not said": what lies below shows through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from koordlet.model.record import dataclass

_T = TypeVar("_T")


def overlay(below: _T, above: _T | None) -> _T:
    """Field by field what is said above, else what is said below; nested values likewise."""
    if above is None:
        return below
    # The type checker does not know that both are dataclasses of one type.
    low, high = cast("Any", below), cast("Any", above)
    changes: dict[str, object] = {}
    for field in dataclasses.fields(high):
        old, new = getattr(low, field.name), getattr(high, field.name)
        if new is None:
            continue
        both = dataclasses.is_dataclass(new) and type(old) is type(new)
        changes[field.name] = overlay(old, new) if both else new
    return cast("_T", dataclasses.replace(low, **changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """When best-effort work is suppressed or evicted. Percents are of the node's capacity."""

    enable: bool | None = None
    cpu_suppress_threshold_percent: int | None = None
    cpu_suppress_min_percent: int | None = None
    cpu_suppress_policy: str | None = None
    memory_evict_threshold_percent: int | None = None
    memory_evict_lower_percent: int | None = None
    memory_allocatable_evict_threshold_percent: int | None = None
    memory_allocatable_evict_lower_percent: int | None = None
    cpu_evict_be_satisfaction_upper_percent: int | None = None
    cpu_evict_be_satisfaction_lower_percent: int | None = None
    cpu_evict_be_usage_threshold_percent: int | None = None
    cpu_evict_time_window_seconds: int | None = None
    cpu_evict_threshold_percent: int | None = None
    cpu_evict_lower_percent: int | None = None
    cpu_allocatable_evict_threshold_percent: int | None = None
    cpu_allocatable_evict_lower_percent: int | None = None
    cpu_evict_policy: str | None = None
    evict_enabled_priority_threshold: int | None = None
    allocatable_evict_priority_threshold: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBurst:
    """CPU burst strategy: how far a container may exceed its CPU limit."""

    policy: str | None = None
    cpu_burst_percent: int | None = None
    cfs_quota_burst_percent: int | None = None
    cfs_quota_burst_period_seconds: int | None = None
    share_pool_threshold_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuQos:
    """The kernel's view of a class: group identity, idle scheduling, core expelling."""

    enable: bool | None = None
    group_identity: int | None = None
    sched_idle: int | None = None
    core_expeller: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQos:
    """Protection and throttling of memory."""

    #: Of annotations only: ``default``, ``none``, ``auto``.
    policy: str | None = None
    enable: bool | None = None
    min_limit_percent: int | None = None
    low_limit_percent: int | None = None
    throttling_percent: int | None = None
    wmark_ratio: int | None = None
    wmark_scale_permill: int | None = None
    wmark_min_adj: int | None = None
    priority_enable: int | None = None
    priority: int | None = None
    oom_kill_group: int | None = None
    page_cache_limit_enable: bool | None = None
    page_cache_limit_size: int | None = None
    page_cache_limit_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IoLimits:
    """Limits and weights of one block device; zero is unlimited."""

    read_iops: int | None = None
    write_iops: int | None = None
    read_bps: int | None = None
    write_bps: int | None = None
    io_weight_percent: int | None = None
    read_latency: int | None = None
    write_latency: int | None = None
    read_latency_percent: int | None = None
    write_latency_percent: int | None = None
    enable_user_model: bool | None = None
    model_read_bps: int | None = None
    model_write_bps: int | None = None
    model_read_seq_iops: int | None = None
    model_write_seq_iops: int | None = None
    model_read_rand_iops: int | None = None
    model_write_rand_iops: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block device, volume group or volume of the pod."""

    name: str = ""
    type: str = "device"
    io_cfg: IoLimits = IoLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlkioQos:
    """Limits of block devices."""

    enable: bool | None = None
    blocks: tuple[Block, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResctrlQos:
    """A class's part of cache and memory bandwidth."""

    enable: bool | None = None
    cat_range_start_percent: int | None = None
    cat_range_end_percent: int | None = None
    mba_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of the node's bandwidth: percent of it, or bits per second."""

    percent: int | None = None
    bits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkQos:
    """A class's part of the network."""

    enable: bool | None = None
    ingress_request: Share | None = None
    ingress_limit: Share | None = None
    egress_request: Share | None = None
    egress_limit: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassQos:
    """Everything about one QoS class."""

    cpu: CpuQos = CpuQos()
    memory: MemoryQos = MemoryQos()
    blkio: BlkioQos = BlkioQos()
    resctrl: ResctrlQos = ResctrlQos()
    network: NetworkQos = NetworkQos()


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Files of the whole node; ``None`` leaves one alone."""

    min_free_kbytes_factor: int | None = None
    watermark_scale_factor: int | None = None
    memcg_reap_back_ground: int | None = None
    sched_group_identity_enabled: int | None = None
    sched_idle_saver_wmark: int | None = None
    sched_features: Mapping[str, bool] | None = None
    page_cache_limit_enabled: bool | None = None
    total_network_bandwidth: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Colocation:
    """Colocation strategy: how batch and mid resources are computed."""

    enable: bool | None = None
    metric_aggregate_duration_seconds: int | None = None
    metric_report_interval_seconds: int | None = None
    metric_memory_collect_policy: str | None = None
    cpu_reclaim_threshold_percent: int | None = None
    cpu_calculate_policy: str | None = None
    memory_reclaim_threshold_percent: int | None = None
    memory_calculate_policy: str | None = None
    degrade_time_minutes: int | None = None
    update_time_threshold_seconds: int | None = None
    resource_diff_threshold: float | None = None
    mid_cpu_threshold_percent: int | None = None
    mid_memory_threshold_percent: int | None = None
    mid_unallocated_percent: int | None = None
    mid_reclaim_mode: str | None = None
    mid_static_cpu_reserved_percent: int | None = None
    mid_static_memory_reserved_percent: int | None = None
    batch_cpu_threshold_percent: int | None = None
    batch_memory_threshold_percent: int | None = None
