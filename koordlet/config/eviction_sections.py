"""The section ``eviction``, and the eviction policies under Koordinator's names.

Covers: how koordlet evicts, evictions by CPU and memory, by use and by requests.
Does not cover: node pressure (``node_pressure_section``), evicting (``apply.evictor``).
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
    """Common fields of these sections."""

    mode: sections.PolicyModeField = "shadow"
    limits: EvictLimits = Field(
        default_factory=EvictLimits, description="Upper bounds that no source can exceed."
    )
    enable: bool = Field(
        default=False,
        description="Enable evictions by this policy. In a cluster a NodeSLO overrides this and"
        " the keys below.",
    )


class CpuEvict(Evict):
    """Evictions while best-effort work starves of CPU, or the node's CPU use is too high."""

    cpu_evict_be_satisfaction_upper_percent: Annotated[int, Field(ge=1, le=99)] | None = Field(
        default=None,
        alias="cpuEvictBESatisfactionUpperPercent",
        description="Stop evicting when best-effort pods get this percent of their CPU requests.",
    )
    cpu_evict_be_satisfaction_lower_percent: Annotated[int, Field(ge=1, le=60)] | None = Field(
        default=None,
        alias="cpuEvictBESatisfactionLowerPercent",
        description="Evict when best-effort pods get this percent of their CPU requests or less;"
        " null disables this reason.",
    )
    cpu_evict_be_usage_threshold_percent: _Percent = Field(
        default=90,
        alias="cpuEvictBEUsageThresholdPercent",
        description="Evict only if best-effort pods use at least this percent of their CPU limit,"
        " and more than one core.",
    )
    cpu_evict_time_window_seconds: Annotated[int, Field(ge=1, le=600)] | None = Field(
        default=None, description="Averaging window; null uses the newest second."
    )
    cpu_evict_policy: Literal["evictByRealLimit", "evictByAllocatable"] = Field(
        default="evictByRealLimit",
        description="What counts as the CPU of best-effort pods: their limits in force, or the"
        " node's `batch-cpu`.",
    )
    cpu_evict_threshold_percent: _Percent | None = Field(
        default=None,
        description="Evict pods that allow eviction when the node's CPU use reaches"
        " this percent; null disables this reason.",
    )
    cpu_evict_lower_percent: _Percent | None = Field(
        default=None,
        description="Stop evicting at this percent; null is two percent below the threshold.",
    )
    evict_enabled_priority_threshold: int | None = Field(
        default=None,
        description="Highest priority of pods that may be evicted because of node"
        " use; null disables this reason.",
    )


class MemoryEvict(Evict):
    """Evictions while the node's memory use is too high."""

    memory_evict_threshold_percent: _Percent = Field(
        default=70, description="Evict pods when the node's memory use reaches this percent."
    )
    memory_evict_lower_percent: _Percent | None = Field(
        default=None,
        description="Stop evicting at this percent; null is two percent below the threshold.",
    )
    evict_enabled_priority_threshold: int | None = Field(
        default=None,
        description="Also evict pods of other classes that allow eviction, up to this priority;"
        " null disables this.",
    )


_PRIORITY = "Highest priority of pods whose requests count and that may be evicted."


class CpuAllocatableEvict(Evict):
    """Evictions while CPU requests exceed what the node offers to mid and batch work."""

    cpu_allocatable_evict_threshold_percent: _Share | None = Field(
        default=None,
        description="Evict pods when requests exceed this percent of the offered"
        " resources; null disables this reason.",
    )
    cpu_allocatable_evict_lower_percent: _Share | None = Field(
        default=None, description="Stop evicting at this percent."
    )
    allocatable_evict_priority_threshold: Annotated[int, Field(le=7999)] | None = Field(
        default=None, description=_PRIORITY
    )


class MemoryAllocatableEvict(Evict):
    """Evictions while memory requests exceed what the node offers to mid and batch work."""

    memory_allocatable_evict_threshold_percent: _Share | None = Field(
        default=None,
        description="Evict pods when requests exceed this percent of the offered"
        " resources; null disables this reason.",
    )
    memory_allocatable_evict_lower_percent: _Share | None = Field(
        default=None, description="Stop evicting at this percent."
    )
    allocatable_evict_priority_threshold: Annotated[int, Field(le=7999)] | None = Field(
        default=None, description=_PRIORITY
    )


class Eviction(sections.Section):
    """How koordlet evicts pods."""

    by: Literal["auto", "api", "delete", "local"] = Field(
        default="auto",
        description="`api` uses the eviction API, which respects PodDisruptionBudgets; `delete`"
        " deletes pods without them; `local` stops units and kills processes. `auto` is `api`"
        " in a cluster and `local` elsewhere.",
    )
    dry_run: bool = Field(
        default=False,
        description="Send evictions to the API server as dry runs: no pod is removed.",
    )
