"""The section ``policies.memory_qos``: protection and throttling of memory.

Covers: its fields under the peer's names. Does not cover: the policy
(``policy.memory_io.memory_qos``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections

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
