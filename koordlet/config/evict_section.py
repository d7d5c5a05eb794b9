"""The sections of evictions as the co-location peer does them, under the peer's names.

Covers: four sections, by CPU and memory, by use and by requests.
Does not cover: the policies, what a NodeSLO says instead.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import sections

_Percent = Annotated[int, Field(ge=0, le=100)]
_Share = Annotated[int, Field(ge=0, le=1_000_000)]


class EvictLimits(sections.Section):
    """The bounds of all evictions are those of ``node_pressure``."""


class Evict(sections.Section):
    """What these sections share."""

    mode: sections.PolicyModeField = Field(
        default="shadow", description="What may be done with its decisions."
    )
    limits: EvictLimits = Field(
        default_factory=EvictLimits, description="Upper bounds, applied last."
    )
    enable: bool = Field(
        default=False,
        description="Whether anybody goes. A NodeSLO decides instead, with these keys.",
    )


class CpuEvict(Evict):
    """Pods go while best-effort work is starved of CPU, or the node uses too much of it."""

    cpu_evict_be_satisfaction_upper_percent: Annotated[int, Field(ge=1, le=99)] | None = Field(
        default=None,
        alias="cpuEvictBESatisfactionUpperPercent",
        description="What part of their requests best-effort pods shall have afterwards.",
    )
    cpu_evict_be_satisfaction_lower_percent: Annotated[int, Field(ge=1, le=60)] | None = Field(
        default=None,
        alias="cpuEvictBESatisfactionLowerPercent",
        description="At or below what part they go; null: not for that reason.",
    )
    cpu_evict_be_usage_threshold_percent: _Percent = Field(
        default=90,
        alias="cpuEvictBEUsageThresholdPercent",
        description="Part of their limit that they must use, beyond one core.",
    )
    cpu_evict_time_window_seconds: Annotated[int, Field(ge=1, le=600)] | None = Field(
        default=None, description="Over how long averages count; null: the newest second."
    )
    cpu_evict_policy: Literal["evictByRealLimit", "evictByAllocatable"] = Field(
        default="evictByRealLimit",
        description="What they may have: their limits in force, or the node's `batch-cpu`.",
    )
    cpu_evict_threshold_percent: _Percent | None = Field(
        default=None, description="Use of the node from which on consenting pods go; null: none."
    )
    cpu_evict_lower_percent: _Percent | None = Field(
        default=None, description="Down to which use; null is two percent less."
    )
    evict_enabled_priority_threshold: int | None = Field(
        default=None, description="Up to which priority consenting pods go; null: none."
    )


class MemoryEvict(Evict):
    """Pods go while the node uses too much memory."""

    memory_evict_threshold_percent: _Percent = Field(
        default=70, description="Part of the node's memory in use from which on pods go."
    )
    memory_evict_lower_percent: _Percent | None = Field(
        default=None, description="Down to which part; null is two percent less."
    )
    evict_enabled_priority_threshold: int | None = Field(
        default=None,
        description="Pods of any class up to this priority that consented go as well; null: none.",
    )


_PRIORITY = "Up to which priority requests count and consenting pods go."


class CpuAllocatableEvict(Evict):
    """Pods go that asked for more CPU than the node offers to mid and batch work."""

    cpu_allocatable_evict_threshold_percent: _Share | None = Field(
        default=None, description="Requests by what is offered above which pods go; null: none."
    )
    cpu_allocatable_evict_lower_percent: _Share | None = Field(
        default=None, description="Down to which part."
    )
    allocatable_evict_priority_threshold: Annotated[int, Field(le=7999)] | None = Field(
        default=None, description=_PRIORITY
    )


class MemoryAllocatableEvict(Evict):
    """Pods go that asked for more memory than the node offers to mid and batch work."""

    memory_allocatable_evict_threshold_percent: _Share | None = Field(
        default=None, description="Requests by what is offered above which pods go; null: none."
    )
    memory_allocatable_evict_lower_percent: _Share | None = Field(
        default=None, description="Down to which part."
    )
    allocatable_evict_priority_threshold: Annotated[int, Field(le=7999)] | None = Field(
        default=None, description=_PRIORITY
    )
