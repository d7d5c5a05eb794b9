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
    """What pods of one class are promised."""

    enable: bool = Field(default=False, description="Whether the class has a strategy.")
    min_limit_percent: Percent = Field(
        default=0, description="Part of a pod's request that is never reclaimed (`memory.min`)."
    )
    low_limit_percent: Percent = Field(
        default=0,
        description="Part of the request that is reclaimed last (`memory.low`).",
    )
    throttling_percent: Percent = Field(
        default=0,
        description="A container is slowed down this far on the way from its request to its limit"
        " (`memory.high`); 0 is never.",
    )
    oom_kill_group: Annotated[int, Field(ge=0, le=1)] = Field(
        default=0, description="1: out of memory ends all of a group's processes, not one."
    )
    wmark_ratio: Percent = Field(
        default=0, description="Background reclaim from this part of the limit on (vendor kernels)."
    )
    wmark_scale_permill: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=50, description="How far background reclaim goes, in 1/1000 (vendor kernels)."
    )
    wmark_min_adj: Annotated[int, Field(ge=-25, le=50)] = Field(
        default=0, description="Shift of the global watermark, in percent (vendor kernels)."
    )
    priority_enable: Annotated[int, Field(ge=0, le=1)] = Field(
        default=0, description="1: out of memory, groups of low priority go first (vendor kernels)."
    )
    priority: Annotated[int, Field(ge=0, le=12)] = Field(
        default=0, description="That priority (vendor kernels)."
    )


class MemoryQosLimits(sections.Section):
    """Upper bounds, applied last."""

    max_percent: Percent = Field(
        default=100, description="No promise to one pod beyond this part of the node's memory."
    )


class MemoryQos(sections.Section):
    """Protection and throttling of memory, by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: MemoryQosLimits = Field(
        default_factory=MemoryQosLimits, description="Upper bounds, applied last."
    )
    lsr_class: MemoryQosClass = Field(
        default_factory=MemoryQosClass, description="LSE and LSR pods."
    )
    ls_class: MemoryQosClass = Field(default_factory=MemoryQosClass, description="LS pods.")
    be_class: MemoryQosClass = Field(default_factory=MemoryQosClass, description="BE pods.")
