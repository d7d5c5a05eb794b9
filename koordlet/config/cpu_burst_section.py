"""The section ``policies.cpu_burst``: CPU time beyond the limit.

Covers: its fields under the peer's names. Does not cover: the policy (``policy.cpu.cpu_burst``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import sections


class CpuBurstLimits(sections.Section):
    """Upper bounds, applied last."""

    max_percent: Annotated[int | None, Field(ge=100)] = Field(
        default=None,
        description="No burst and no raised limit beyond this many percent of the CPU limit; null"
        " is no bound.",
    )


class CpuBurst(sections.Section):
    """CPU time beyond their limit for containers that are neither LSE, LSR nor BE."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: CpuBurstLimits = Field(
        default_factory=CpuBurstLimits, description="Upper bounds, applied last."
    )
    policy: Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"] = Field(
        default="none",
        description="`cpuBurstOnly` lets containers save up unused time, `cfsQuotaBurstOnly` raises"
        " the limit of throttled ones, `auto` does both. A NodeSLO replaces this and all below.",
    )
    cpu_burst_percent: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=1000,
        description="What may be saved up, in percent of the limit; the kernel takes 100 at most.",
    )
    cfs_quota_burst_percent: Annotated[int, Field(ge=100)] = Field(
        default=300, description="How far a limit is raised, in percent of it."
    )
    cfs_quota_burst_period_seconds: Annotated[int, Field(ge=-1)] = Field(
        default=-1,
        description="How long a container may stay at the highest raised limit; -1 is for ever.",
    )
    share_pool_threshold_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=50, description="Use of the shared CPUs above which limits are lowered again."
    )
