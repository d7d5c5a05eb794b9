"""NodeSLO of ``slo.koordinator.sh``: what the control plane wants of a node's quality of service.

Covers: the sections and the types of their fields. Does not cover: defaults and meaning
(``workloads.nodeslo`` has them): an API server that filled in defaults would make every value look
as if somebody had chosen it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from koordlet.report.crds import fields


class ThresholdSchema(fields.Open):
    """Thresholds at which best-effort work is limited or evicted."""

    enable: bool | None = None
    cpu_suppress_threshold_percent: fields.Int64 | None = None
    cpu_suppress_min_percent: fields.Int64 | None = None
    cpu_suppress_policy: str | None = None
    memory_evict_threshold_percent: fields.Int64 | None = None
    memory_evict_lower_percent: fields.Int64 | None = None
    memory_allocatable_evict_threshold_percent: fields.Int64 | None = None
    memory_allocatable_evict_lower_percent: fields.Int64 | None = None
    cpu_evict_be_satisfaction_upper_percent: fields.Int64 | None = Field(
        default=None, alias="cpuEvictBESatisfactionUpperPercent"
    )
    cpu_evict_be_satisfaction_lower_percent: fields.Int64 | None = Field(
        default=None, alias="cpuEvictBESatisfactionLowerPercent"
    )
    cpu_evict_be_usage_threshold_percent: fields.Int64 | None = Field(
        default=None, alias="cpuEvictBEUsageThresholdPercent"
    )
    cpu_evict_time_window_seconds: fields.Int64 | None = None
    cpu_evict_threshold_percent: fields.Int64 | None = None
    cpu_evict_lower_percent: fields.Int64 | None = None
    cpu_allocatable_evict_threshold_percent: fields.Int64 | None = None
    cpu_allocatable_evict_lower_percent: fields.Int64 | None = None
    cpu_evict_policy: str | None = None
    evict_enabled_priority_threshold: fields.Int32 | None = None
    allocatable_evict_priority_threshold: fields.Int32 | None = None


class CpuQosSchema(fields.Open):
    """CPU scheduler settings of a QoS class."""

    enable: bool | None = None
    group_identity: fields.Int64 | None = None
    sched_idle: fields.Int64 | None = None
    core_expeller: bool | None = None


class MemoryQosSchema(fields.Open):
    """Memory protection and reclaim of a QoS class."""

    enable: bool | None = None
    min_limit_percent: fields.Int64 | None = None
    low_limit_percent: fields.Int64 | None = None
    throttling_percent: fields.Int64 | None = None
    wmark_ratio: fields.Int64 | None = None
    wmark_scale_permill: fields.Int64 | None = None
    wmark_min_adj: fields.Int64 | None = None
    priority_enable: fields.Int64 | None = None
    priority: fields.Int64 | None = None
    oom_kill_group: fields.Int64 | None = None


class IoConfigSchema(fields.Open):
    """I/O limits of one block device."""

    read_iops: fields.Int64 | None = Field(default=None, alias="readIOPS")
    write_iops: fields.Int64 | None = Field(default=None, alias="writeIOPS")
    read_bps: fields.Int64 | None = Field(default=None, alias="readBPS")
    write_bps: fields.Int64 | None = Field(default=None, alias="writeBPS")
    io_weight_percent: fields.Int64 | None = None


class BlockSchema(fields.Open):
    """A block device and its limits."""

    name: str | None = None
    type: str | None = None
    io_cfg: IoConfigSchema | None = None


class BlkioQosSchema(fields.Open):
    """Block I/O limits of a QoS class."""

    enable: bool | None = None
    blocks: list[BlockSchema] | None = None


class ResctrlQosSchema(fields.Open):
    """Cache ways and memory bandwidth of a QoS class."""

    enable: bool | None = None
    cat_range_start_percent: fields.Int64 | None = None
    cat_range_end_percent: fields.Int64 | None = None
    mba_percent: fields.Int64 | None = None


class NetworkQosSchema(fields.Open):
    """Network bandwidth of a QoS class, each as a percentage or a quantity."""

    enable: bool | None = None
    ingress_request: fields.IntOrString | None = None
    ingress_limit: fields.IntOrString | None = None
    egress_request: fields.IntOrString | None = None
    egress_limit: fields.IntOrString | None = None


class ResourceQos(fields.Open):
    """All settings of one QoS class."""

    cpu_qos: CpuQosSchema | None = Field(default=None, alias="cpuQOS")
    memory_qos: MemoryQosSchema | None = Field(default=None, alias="memoryQOS")
    blkio_qos: BlkioQosSchema | None = Field(default=None, alias="blkioQOS")
    resctrl_qos: ResctrlQosSchema | None = Field(default=None, alias="resctrlQOS")
    network_qos: NetworkQosSchema | None = Field(default=None, alias="networkQOS")


class PoliciesSchema(fields.Open):
    """Mechanisms that enforce the settings."""

    cpu_policy: str | None = None
    net_qos_policy: str | None = Field(default=None, alias="netQOSPolicy")


class QosStrategy(fields.Open):
    """Settings by QoS class."""

    policies: PoliciesSchema | None = None
    lsr_class: ResourceQos | None = None
    ls_class: ResourceQos | None = None
    be_class: ResourceQos | None = None
    system_class: ResourceQos | None = None
    cgroup_root: ResourceQos | None = None


class CpuBurstSchema(fields.Open):
    """CPU time beyond the CPU limit."""

    policy: str | None = None
    cpu_burst_percent: fields.Int64 | None = None
    cfs_quota_burst_percent: fields.Int64 | None = None
    cfs_quota_burst_period_seconds: fields.Int64 | None = None
    share_pool_threshold_percent: fields.Int64 | None = None


class SystemSchema(fields.Open):
    """Kernel settings of the whole machine."""

    min_free_kbytes_factor: fields.Int64 | None = None
    watermark_scale_factor: fields.Int64 | None = None
    memcg_reap_back_ground: fields.Int64 | None = None
    total_network_bandwidth: fields.Quantity | None = None
    sched_group_identity_enabled: bool | None = None
    sched_idle_saver_wmark: fields.Int64 | None = None
    sched_features: dict[str, bool] | None = None
    page_cache_limit_enabled: bool | None = None


class CgroupPath(fields.Open):
    """Cgroup path of a host application."""

    base: Literal[
        "CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort", "KubepodsGuaranteed"
    ] | None = None  # fmt: skip
    parent_dir: str | None = None
    relative_path: str | None = None


class HostApplicationSchema(fields.Open):
    """A host application (outside Kubernetes)."""

    name: str | None = None
    priority: str | None = None
    qos: str | None = None
    cgroup_path: CgroupPath | None = None
    strategy: fields.Free | None = None


class NodeSLOSpecSchema(fields.Open):
    """Desired QoS settings."""

    resource_used_threshold_with_be: ThresholdSchema | None = Field(
        default=None, alias="resourceUsedThresholdWithBE"
    )
    resource_qos_strategy: QosStrategy | None = Field(default=None, alias="resourceQOSStrategy")
    cpu_burst_strategy: CpuBurstSchema | None = None
    system_strategy: SystemSchema | None = None
    extensions: fields.Free | None = None
    host_applications: list[HostApplicationSchema] | None = None


class NodeSLO(fields.Closed):
    """Desired quality-of-service settings of a node."""

    spec: NodeSLOSpecSchema | None = None
    status: fields.Free | None = None
