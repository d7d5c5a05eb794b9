"""Sections of policies about memory and the kernel: QoS, page cache, OOM scores, kernel settings.

Covers: their fields under Koordinator's names. Does not cover: the policies (``policy.memory_io``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import cpu_sections, fieldtypes, sections

Percent = Annotated[int, Field(ge=0, le=100)]


class MemoryQosClass(sections.Section):
    """Memory protection and throttling of one class."""

    enable: bool = Field(default=False, description="Apply the settings of this class.")
    min_limit_percent: Percent = Field(
        default=0,
        description="Percent of the memory request that the kernel never reclaims (`memory.min`).",
    )
    low_limit_percent: Percent = Field(
        default=0,
        description="Percent of the memory request that the kernel reclaims last (`memory.low`).",
    )
    throttling_percent: Percent = Field(
        default=0,
        description="Position of `memory.high` between request and limit, in percent; 0 sets no"
        " throttling.",
    )
    oom_kill_group: Annotated[int, Field(ge=0, le=1)] = Field(
        default=0,
        description="1: an OOM kill ends all processes of the cgroup (`memory.oom.group`).",
    )
    wmark_ratio: Percent = Field(
        default=0,
        description="Percent of the limit at which background reclaim starts (vendor kernels).",
    )
    wmark_scale_permill: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=50,
        description="How much background reclaim frees, in 1/1000 of the limit (vendor kernels).",
    )
    wmark_min_adj: Annotated[int, Field(ge=-25, le=50)] = Field(
        default=0,
        description="Adjustment of the global minimum watermark, in percent (vendor kernels).",
    )
    priority_enable: Annotated[int, Field(ge=0, le=1)] = Field(
        default=0, description="1: the OOM killer prefers cgroups of low priority (vendor kernels)."
    )
    priority: Annotated[int, Field(ge=0, le=12)] = Field(
        default=0, description="Priority for the OOM killer (vendor kernels)."
    )


class MemoryQosLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_percent: Percent = Field(
        default=100,
        description="Upper bound of the protection of one pod, in percent of the node's memory.",
    )


class MemoryQos(sections.Section):
    """Protection and throttling of memory, by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: MemoryQosLimits = Field(
        default_factory=MemoryQosLimits, description="Upper bounds that no source can exceed."
    )
    lsr_class: MemoryQosClass = Field(
        default_factory=MemoryQosClass, description="Settings of LSE and LSR pods."
    )
    ls_class: MemoryQosClass = Field(
        default_factory=MemoryQosClass, description="Settings of LS pods."
    )
    be_class: MemoryQosClass = Field(
        default_factory=MemoryQosClass, description="Settings of BE pods."
    )


class PageCacheClass(sections.Section):
    """Page cache limit of pods of one class."""

    page_cache_limit_enable: bool = Field(
        default=False, description="Limit the page cache of pods of this class."
    )
    page_cache_limit_size: fieldtypes.OptionalQuantity = Field(
        default=None, description="Page cache limit of each pod, such as `512Mi`."
    )
    page_cache_limit_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="Page cache limit in percent of the pod's memory limit, if no size is set.",
    )


class PageCacheLimits(sections.Section):
    """Bounds that no source can exceed."""

    max_bytes: Annotated[int, Field(ge=1 << 20, le=2**50)] = Field(
        default=256 << 20, description="Most bytes to reclaim from a pod at once."
    )


class PageCacheReclaim(sections.Section):
    """Page cache limits of pods. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: PageCacheLimits = Field(
        default_factory=PageCacheLimits, description="Bounds that no source can exceed."
    )
    lsr_class: PageCacheClass = Field(
        default_factory=PageCacheClass, description="Settings of LSE and LSR pods."
    )
    ls_class: PageCacheClass = Field(
        default_factory=PageCacheClass, description="Settings of LS pods."
    )
    be_class: PageCacheClass = Field(
        default_factory=PageCacheClass, description="Settings of BE pods."
    )


class OomScore(sections.Section):
    """``oom_score_adj`` of every workload's processes, by its class or its annotation."""

    mode: sections.PolicyModeField = "off"
    limits: cpu_sections.NoLimits = Field(
        default_factory=cpu_sections.NoLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )


Switch = Annotated[int | None, Field(ge=0, le=1)]


class SystemQosLimits(sections.Section):
    """Bounds that no source can exceed."""

    max_free_percent: Annotated[int, Field(ge=0, le=20)] = Field(
        default=5,
        description="Upper bound of `vm.min_free_kbytes`, in percent of the machine's memory.",
    )


class SystemQos(sections.Section):
    """Knobs of the whole kernel; null leaves one alone. A NodeSLO replaces them."""

    mode: sections.PolicyModeField = "off"
    limits: SystemQosLimits = Field(
        default_factory=SystemQosLimits, description="Bounds that no source can exceed."
    )
    min_free_kbytes_factor: Annotated[int | None, Field(ge=0, le=10_000)] = Field(
        default=None,
        description="`vm.min_free_kbytes` in 1/10000 of the memory, limited to 10 MiB … 10 GiB.",
    )
    watermark_scale_factor: Annotated[int | None, Field(ge=10, le=400)] = Field(
        default=None, description="Value of `vm.watermark_scale_factor`."
    )
    memcg_reap_back_ground: Switch = Field(
        default=None, description="Reap dead memory cgroups in the background (vendor kernels)."
    )
    sched_group_identity_enabled: Switch = Field(
        default=None, description="Enable group identity in the scheduler (vendor kernels)."
    )
    sched_idle_saver_wmark: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = Field(
        default=None,
        description="How long the scheduler may spare an idle CPU, in ns (vendor kernels).",
    )
    page_cache_limit_enabled: bool | None = Field(
        default=None, description="Let the kernel limit page cache by itself (vendor kernels)."
    )
